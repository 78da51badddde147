"""What only the store in memory does: it remembers what it told heirs, no longer than they may ask again."""

from typing import Any

import pytest

from daws.model.states import FAILED, READY
from daws.model.task import TaskSpec
from daws.store.log.state import Restoring, parts_of
from daws.store.memory import MemoryStore
from daws.testing import created
from daws.wire.store import ANNOUNCE, Buried, Claim, Estate, Finish, Inspect, Story, Submit, TakeOver


def with_tasks(*tasks: int, history: bool = False) -> MemoryStore:
    """A store of two shards whose tasks belong to node 0."""
    store = MemoryStore(2, history=history)
    for row in created({task: [] for task in tasks}, 0):
        store.apply(row.spec.id >> 6, [row], 0)
    return store


def estates(store: MemoryStore) -> list[list[tuple[int, int]]]:
    return [list(shard.estates) for shard in store.shards]


def test_what_was_told_is_remembered_until_the_heir_has_heard_of_it():
    store = with_tasks(1, 65)
    for shard in (0, 1):
        store.apply(shard, [TakeOver(0, 5, shard=shard), TakeOver(0, 6, shard=shard)], 0)
    assert estates(store) == [[(0, 5)], [(0, 5)]], "nothing was left for node 6"
    store.apply(0, [Buried(0, 6)], 0)
    (again,) = store.apply(1, [TakeOver(0, 5, shard=1)], 0)
    assert isinstance(again, Estate) and [one.spec.id for one in again.ready] == [65]
    store.apply(0, [Buried(0, 5)], 0)
    assert estates(store) == [[], []]


def test_an_heir_that_is_dead_itself_will_not_ask_again():
    store = with_tasks(1, 65)
    for shard in (0, 1):
        store.apply(shard, [TakeOver(0, 5, shard=shard)], 0)
    store.apply(1, [TakeOver(5, 6, shard=1)], 0)
    assert estates(store) == [[(0, 5)], [(5, 6)]]


def test_the_last_part_of_an_estate_may_be_empty():
    store = with_tasks(1, 2)
    parts = [store.apply_one(0, TakeOver(0, 5, part, 1), 0) for part in (0, 1, 1, 2, 2, 0)]
    assert [[one.spec.id for one in part.ready] for part in parts if isinstance(part, Estate)] == [
        *([1], [2], [2]),
        *([], [], []),
    ]
    assert estates(store) == [[], []]


def test_histories_tell_of_those_who_took_over():
    store = with_tasks(1, history=True)
    for now_ns, dead in ((10, 0), (20, 5), (30, 6)):
        if dead:
            (story,) = store.apply(0, [Inspect(1)], now_ns)
            assert isinstance(story, Story)
            store.apply(0, [Claim(1, dead, story.move, dead, ANNOUNCE)], now_ns)
        store.apply(0, [TakeOver(dead, max(5, dead + 1))], now_ns)
    (story,) = store.apply(0, [Inspect(1)], 40)
    assert isinstance(story, Story)
    assert story.history == ((READY, 0, 0), (READY, 10, 5), (READY, 20, 6), (FAILED, 30, 7))


class CountedRecords(dict[int, Any]):
    """Records that count how often all of them are looked at."""

    walks = 0

    def items(self) -> Any:
        self.walks += 1
        return super().items()


def test_all_tasks_are_looked_through_twice_however_many_parts_are_taken():
    store = with_tasks(*range(60))
    shard = store.shards[0]
    shard.records = records = CountedRecords(shard.records)
    taken: list[int] = []
    for part in range(12):
        (answer,) = store.apply(0, [TakeOver(0, 5, part, 5)], 0)
        assert isinstance(answer, Estate) and answer.more == (part < 11)
        taken += [one.spec.id for one in answer.ready]
    assert taken == list(range(60)) and records.walks == 2
    assert not shard.left


def test_what_the_end_of_a_late_run_gives_to_the_dead_is_taken_as_well():
    """The run is committed, because its task is yet to be taken over."""
    store = MemoryStore(direct=True)
    for row in created({1: [], 2: [], 3: [], 4: [3]}, 0):
        store.apply(0, [row], 0)
    (first,) = store.apply(0, [TakeOver(0, 5, 0, 2)], 0)
    assert isinstance(first, Estate) and [one.spec.id for one in first.ready] == [1, 2] and first.more
    store.apply(0, [Finish(3, 0, 0)], 0)
    (last,) = store.apply(0, [TakeOver(0, 5, 1, 2)], 0)
    assert isinstance(last, Estate) and [one.spec.id for one in last.ready] == [4] and not last.more


def test_an_estate_that_is_half_taken_goes_on_after_a_restart():
    store, restored = with_tasks(*range(6)), MemoryStore(2)
    store.apply(0, [TakeOver(0, 5, 0, 2)], 0)
    restoring = Restoring(restored)
    for kept in parts_of(store, 0):
        restoring.add(kept)
    assert restored.shards[0].left == store.shards[0].left != {}
    for part in (1, 2):
        assert store.apply(0, [TakeOver(0, 5, part, 2)], 0) == restored.apply(0, [TakeOver(0, 5, part, 2)], 0)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_task_fails_when_as_many_nodes_have_died_with_it_as_the_store_allows(most: int):
    store = MemoryStore(losses_max=most)
    task, node = 1, 0
    store.apply(0, [Submit(TaskSpec(task, outputs=(task,)), (), node)], 0)
    for loss in range(most):
        record = store.record(task)
        assert record is not None and record.state == READY
        store.apply(0, [Claim(task, node, record.move, node, ANNOUNCE)], 0)
        store.apply(0, [TakeOver(node, node + 1)], 0)
        node += 1
        assert loss + 1 == most or store.record(task).owner == node  # type: ignore[union-attr]
    record = store.record(task)
    assert record is not None and record.state == FAILED and record.rare is not None
    assert record.rare.error == f"task {task} was running on {most} nodes when they died; it is not tried again"
