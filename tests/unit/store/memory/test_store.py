"""What only the store in memory does: it counts, keeps histories, and many can join at once."""

from collections.abc import Sequence
from typing import get_args

import pytest

from daws.model.states import DONE, READY, WAITING
from daws.store.memory import MemoryStore
from daws.store.memory.store import HANDLERS
from daws.testing import created, members_of
from daws.wire.store import Clear, Finish, Inspect, Lease, Leased, ReadLog, Row, RowType, Satisfy, Story


def test_it_counts_calls_and_records():
    store = MemoryStore()
    store.apply(0, created({1: [], 2: [1]}, 0), 0)
    store.apply(0, [Finish(1, 0, 0), Clear(0, (4,)), ReadLog(0)], 0)
    store.apply_one(0, Satisfy(2, 1, 0), 0)
    assert store.calls == 3
    assert store.touched == 4, "clearing and reading the log touch no record of a task"


def test_one_row_is_a_call_too():
    one, other = MemoryStore(), MemoryStore()
    (row,) = created({1: []}, 0)
    assert one.apply(0, [row], 0) == [other.apply_one(0, row, 0)]


def test_many_nodes_join_at_once():
    store = MemoryStore(lease_ns=100)
    members = store.join(members_of(3).infos, 50)
    assert members.nodes == (0, 1, 2)
    assert store.apply(0, [Lease(0, members.version)], 149) == [Leased()]
    (later,) = store.apply(0, [Lease(0, members.version)], 150)
    assert isinstance(later, Leased) and later.members is not None
    assert later.members.nodes == (0,) and later.orphans == (1, 2)


@pytest.mark.parametrize("one_by_one", [True, False])
def test_histories_say_what_happened_to_a_task_when(one_by_one: bool):
    store = MemoryStore(history=True)
    steps: list[tuple[int, Sequence[Row]]] = [
        (10, created({1: [], 2: [1]}, 3)),
        (20, [Finish(1, 0, 3)]),
        (30, [Satisfy(2, 1, 4)]),
        (40, [Finish(2, 0, 4)]),
    ]
    for now_ns, rows in steps:
        if one_by_one:
            for row in rows:
                store.apply_one(0, row, now_ns)
        else:
            store.apply(0, rows, now_ns)
    (story,) = store.apply(0, [Inspect(2)], 50)
    assert isinstance(story, Story)
    assert story.history == ((WAITING, 10, -1), (READY, 30, 4), (DONE, 40, 4))


def test_each_row_has_one_handler():
    assert set(HANDLERS) == {*get_args(RowType)}
