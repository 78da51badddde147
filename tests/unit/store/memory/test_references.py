"""What only the store in memory does: it forgets sinks together with their parent, in whichever shard they are."""

import pytest

from daws.store.memory import MemoryStore
from daws.testing import created
from daws.testing.build import object_at
from daws.wire.store import (
    CLIENT_HOLDER,
    DONE,
    OK,
    REFUSED,
    REPLICATE,
    RETRY,
    Cancel,
    Claim,
    Clear,
    Committed,
    Finish,
    Inspect,
    Register,
    Release,
    Retain,
    Satisfy,
    TakeOver,
)


@pytest.mark.parametrize("one_shard", [True, False])
def test_sinks_are_forgotten_together_with_their_parent(one_shard: bool):
    """Nobody reads what they made, so nobody ever releases them."""
    child = 2 if one_shard else 65
    store = MemoryStore(2)
    for row in created({1: [], child: [1]}, 0):
        store.apply(row.spec.id >> 6, [row], 0)
    given = (object_at(1, 0),)
    (told,) = store.apply(0, [Finish(1, 0, 0, given)], 0)
    assert isinstance(told, Committed)
    store.apply(child >> 6, [Satisfy(child, 1, 0, given)], 0)
    store.apply(0, [Clear(0, (told.key,), (told.mark,)), Release(1)], 0)
    assert store.record(1) is not None, "its child may still need it"
    assert store.apply(child >> 6, [Finish(child, 0, 0, (object_at(child, 0),))], 0) == [Committed(-1)]
    assert store.record(child) is not None
    store.apply(0, [Release(1)], 0)
    assert store.record(1) is None and store.record(child) is None


@pytest.mark.parametrize("past", ["taken over", "tried again", "copied", "no copy", "watched", "released"])
def test_sinks_with_a_past_are_forgotten_too(past: str):
    store = MemoryStore()
    store.apply(0, created({1: [], 2: [1]}, 0), 0)
    given = (object_at(1, 0),)
    (told,) = store.apply(0, [Finish(1, 0, 0, given)], 0)
    assert isinstance(told, Committed)
    store.apply(0, [Satisfy(2, 1, 5, given), Clear(0, (told.key,), (told.mark,))], 0)
    node, attempt = 5, 0
    if past == "taken over":
        store.apply(0, [TakeOver(5, 6)], 0)
        node, attempt = 6, 1
    elif past == "tried again":
        store.apply(0, [Claim(2, 5, 1, 5, RETRY)], 0)
        attempt = 1
    elif past == "copied":
        store.apply(0, [Claim(2, 5, 1, 8, REPLICATE)], 0)
        node = 8
    elif past == "no copy":
        assert store.apply(0, [Claim(2, 7, 0, 8, REPLICATE)], 0) == [REFUSED]
        record = store.record(2)
        assert record is not None and record.rare is None, "who refuses keeps nothing"
    elif past == "watched":
        store.apply(0, [Register(2, 9, True)], 0)
    elif past == "released":
        store.apply(0, [Retain(2, 9), Release(2, 9)], 0)
    (ended,) = store.apply(0, [Finish(2, attempt, node, (object_at(2, node),))], 0)
    store.apply(0, [Release(1)], 0)
    if past == "watched":
        assert isinstance(ended, Committed) and store.record(1) is not None, "somebody has yet to be told"
        store.apply(0, [Clear(node, (ended.key,), (ended.mark,)), Release(2)], 0)
    assert store.record(1) is None and store.record(2) is None


def test_a_sink_that_somebody_holds_keeps_its_parent():
    store = MemoryStore()
    store.apply(0, created({1: [], 2: [1]}, 0), 0)
    given = (object_at(1, 0),)
    (told,) = store.apply(0, [Finish(1, 0, 0, given)], 0)
    assert isinstance(told, Committed)
    rows = [Clear(0, (told.key,), (told.mark,)), Satisfy(2, 1, 5, given), Finish(2, 0, 5), Retain(2, CLIENT_HOLDER)]
    store.apply(0, [*rows, Release(1)], 0)
    assert store.record(1) is not None and store.record(2) is not None
    store.apply(0, [Release(2, CLIENT_HOLDER)], 0)
    assert store.record(1) is None and store.record(2) is None


def test_a_task_that_nobody_holds_retires_with_its_end_and_is_forgotten_after_a_while():
    store = MemoryStore(direct=True, retired_max=2)
    store.apply(0, created({1: [], 2: [], 3: []}, 0), 0)
    records = store.shards[0].records
    for number in (1, 2, 3):
        store.apply(0, [Finish(number, 0, 0)], 0)
        assert records.get(number, store) is None, "it is remembered that there was such a task"
    assert list(records) == [2, 3] and list(store.shards[0].retired) == [2, 3]
    assert store.shards[0].log == [1, 2, 3]


@pytest.mark.parametrize("forgotten", [True, False])
def test_who_asks_late_about_a_retired_task_hears_that_it_is_over(forgotten: bool):
    """Unknown would mean that it is still being created: such questions are asked again, for ever."""
    store = MemoryStore(direct=True, retired_max=1)
    store.apply(0, created({1: [], 2: []}, 0), 0)
    store.apply(0, [Finish(1, 0, 0), Finish(2, 0, 0)], 0)
    late = 1 if forgotten else 2
    assert (late in store.shards[0].records) is not forgotten
    rows = [Satisfy(late, 7, 0), Cancel(late, 0, "", 7), Inspect(late)]
    assert store.apply(0, rows, 0) == [DONE, DONE, DONE]


def test_what_is_held_stays_until_it_is_let_go_of():
    store = MemoryStore(direct=True, retired_max=1)
    store.apply(0, created({1: []}, 0), 0)
    store.apply(0, [Retain(1, CLIENT_HOLDER), Finish(1, 0, 0)], 0)
    assert store.record(1) is not None
    assert store.apply(0, [Release(1, CLIENT_HOLDER)], 0) == [OK]
    assert store.record(1) is None
