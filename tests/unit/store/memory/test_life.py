"""What only the store in memory does: a commit can tell the children in its own shard in the same update."""

import pytest

from daws.model.task import AGAIN, Input, Ready
from daws.store.memory import MemoryStore
from daws.testing import created, task
from daws.testing.build import object_at
from daws.wire.store import (
    DONE,
    Cancel,
    Claim,
    Clear,
    Committed,
    Create,
    Estate,
    Finish,
    Register,
    Retain,
    Satisfy,
    outbox_key,
)


def direct(graph: dict[int, list[int]], shards: int = 1) -> MemoryStore:
    store = MemoryStore(shards, direct=True)
    for row in created(graph, 0):
        store.apply((row.spec.id >> 6) % shards, [row], 0)
    return store


def test_a_direct_commit_tells_its_children_at_once():
    store = direct({1: [], 2: [1], 3: [1], 4: [1, 3]})
    given = (object_at(1, 0),)
    (answer,) = store.apply(0, [Finish(1, 0, 0, given)], 0)
    assert isinstance(answer, Committed)
    assert [(one.spec.id, one.inputs, one.move) for one in answer.ready] == [(2, given, 1), (3, given, 1)]
    assert answer.key == -1 and answer.readers == (2, 3, 4)
    assert not store.shards[0].outbox
    record = store.record(4)
    assert record is not None and record.edges == (3,) and record.inputs == given


def test_a_direct_commit_says_it_again():
    store = direct({1: [], 2: [1], 3: [1]})
    row = Finish(1, 0, 0, (object_at(1, 0),))
    store.apply(0, [row], 0)
    store.apply(0, [Finish(3, 0, 0)], 0)
    (again,) = store.apply(0, [row], 0)
    assert isinstance(again, Committed)
    assert [(one.spec.id, one.mode) for one in again.ready] == [(2, AGAIN)], "3 has ended meanwhile"


def test_a_direct_commit_does_not_say_again_what_has_moved_on():
    store = direct({1: [], 2: [1], 3: [1]})
    row = Finish(1, 0, 0)
    store.apply(0, [row, Claim(2, 0, 1, 5)], 0)
    (again,) = store.apply(0, [row], 0)
    assert isinstance(again, Committed)
    assert [one.spec.id for one in again.ready] == [3], "2 is another's now"
    assert again.readers == (2, 3)


def test_a_direct_commit_that_is_said_again_names_those_still_to_be_told():
    store = direct({1: [], 2: [1], 65: [1]}, 2)
    (first,) = store.apply(0, [Finish(1, 0, 0)], 0)
    (again,) = store.apply(0, [Finish(1, 0, 0)], 0)
    assert isinstance(first, Committed) and isinstance(again, Committed)
    assert (again.key, again.children, again.needs, again.mark) == (first.key, (65,), (0,), first.mark)
    assert [(one.spec.id, one.mode) for one in again.ready] == [(2, AGAIN)]
    store.apply(0, [Clear(0, (first.key,), (first.mark,))], 0)
    (last,) = store.apply(0, [Finish(1, 0, 0)], 0)
    assert isinstance(last, Committed) and (last.key, last.children) == (-1, ())


def test_a_direct_commit_counts_many_edges_by_name():
    parents = list(range(1, 13))
    store = direct({**{parent: [] for parent in parents}, 20: parents})
    answers = []
    for parent in reversed(parents):
        record = store.record(20)
        assert record is not None and record.edges == set(range(1, parent + 1))
        answers.append(store.apply_one(0, Finish(parent, 0, 0, (object_at(parent, 0),)), 0))
    ready = [one for answer in answers if isinstance(answer, Committed) for one in answer.ready]
    assert [(one.spec.id, one.inputs) for one in ready] == [
        (20, tuple(object_at(parent, 0) for parent in parents[::-1]))
    ]


def test_a_direct_commit_hands_on_only_what_is_read():
    store = MemoryStore(direct=True)
    specs = [task(1, makes=[10, 11], leaf=False), task(2, [11]), task(3, [10, 11])]
    store.apply(0, [Create(specs[0], (), (2, 3), (), 0)] + [Create(spec, (1,)) for spec in specs[1:]], 0)
    made = (Input(10, 5, 1, (0,), b""), Input(11, 6, 1, (0,), b""))
    (answer,) = store.apply(0, [Finish(1, 0, 0, made)], 0)
    assert isinstance(answer, Committed)
    assert [one.inputs for one in answer.ready] == [made[1:], made]


@pytest.mark.parametrize("parents", [1, 2, 12])
def test_direct_or_not_a_child_gets_only_what_it_reads(parents: int):
    """It waits for all of them, and reads what the last one made."""
    found: list[Ready] = []
    for is_direct in (True, False):
        store = MemoryStore(direct=is_direct)
        child = task(50, [parents])
        above = tuple(range(1, parents + 1))
        store.apply(0, [Create(task(one, makes=[one]), (), (50,), (), 0) for one in above], 0)
        store.apply(0, [Create(child, above)], 0)
        for one in above:
            given = (object_at(one, 0),)
            (told,) = store.apply(0, [Finish(one, 0, 0, given)], 0)
            assert isinstance(told, Committed)
            if not is_direct:
                (answer,) = store.apply(0, [Satisfy(50, one, 0, given)], 0)
                told = Committed(-1, ready=(answer,) if isinstance(answer, Ready) else ())
            found += told.ready
    assert [one.inputs for one in found] == [(object_at(parents, 0),)] * 2


def test_a_direct_commit_tells_a_child_that_reads_nothing():
    store = MemoryStore(direct=True)
    store.apply(0, [Create(task(1, makes=[1]), (), (2,), (), 0), Create(task(2), (1,))], 0)
    (answer,) = store.apply(0, [Finish(1, 0, 0, (object_at(1, 0),))], 0)
    assert isinstance(answer, Committed)
    assert [(one.spec.id, one.inputs) for one in answer.ready] == [(2, ())]


def test_tasks_that_the_client_holds_are_like_all_others():
    store = MemoryStore(direct=True)
    graph: dict[int, list[int]] = {1: [], 2: [1]}
    for row in created(graph, 0):
        store.apply(0, [Create(row.spec, row.parents, row.children, (), row.owner, held=True)], 0)
    (answer,) = store.apply(0, [Finish(1, 0, 0)], 0)
    assert isinstance(answer, Committed) and [one.spec.id for one in answer.ready] == [2]
    records = [store.record(1), store.record(2)]
    assert all(record is not None and record.held and record.rare is None for record in records)


def test_a_direct_commit_leaves_who_is_not_like_all_others_to_its_caller():
    """2 is not yet there, 3 was cancelled, 4 is held by somebody."""
    store = direct({1: [], 3: [1], 4: [1]})
    store.apply(0, [Register(1, 2), Cancel(3, 0), Retain(4, 9)], 0)
    (answer,) = store.apply(0, [Finish(1, 0, 0)], 0)
    assert isinstance(answer, Committed)
    assert sorted(answer.children) == [2, 3, 4] and not answer.ready
    (told,) = store.apply(0, [Satisfy(4, 1, 0)], 0)
    assert isinstance(told, Ready)


def test_a_direct_commit_leaves_the_children_in_other_shards_to_its_caller():
    store = direct({1: [], 2: [1], 65: [1]}, 2)
    (answer,) = store.apply(0, [Finish(1, 0, 0)], 0)
    assert isinstance(answer, Committed)
    assert (answer.key, answer.children) == (outbox_key(1, 0), (65,))
    assert [one.spec.id for one in answer.ready] == [2]


def test_direct_or_not_the_same_tasks_become_ready():
    graph: dict[int, list[int]] = {1: [], 2: [1], 3: [1], 4: [2, 3]}
    plain = MemoryStore()
    plain.apply(0, created(graph, 0), 0)
    stores = (plain, direct(graph))
    found: list[list[Ready]] = [[], []]
    for number, store in enumerate(stores):
        for parent, children in ((1, (2, 3)), (2, (4,)), (3, (4,))):
            given = (object_at(parent, 0),)
            (answer,) = store.apply(0, [Finish(parent, 0, 0, given)], 0)
            assert isinstance(answer, Committed)
            found[number] += answer.ready
            for child in children if answer.children else ():
                (told,) = store.apply(0, [Satisfy(child, parent, 0, given)], 0)
                found[number] += [told] if isinstance(told, Ready) else []
    assert found[0] == found[1]
    assert [one.spec.id for one in found[0]] == [2, 3, 4]


def test_a_node_whose_run_counts_no_more_learns_which_children_it_owns():
    """Its first answer was lost, and the objects were made again elsewhere since (seed 4208)."""
    store = direct({1: [], 2: [1]})
    finish = Finish(1, 0, 0, (object_at(1, 0),))
    (first,) = store.apply(0, [finish], 0)
    assert isinstance(first, Committed) and [one.spec.id for one in first.ready] == [2]
    record = store.record(1)
    assert record is not None
    record.owner, record.attempt = 5, 1  # node 5 makes the object again
    (again,) = store.apply(0, [finish], 0)
    assert isinstance(again, Estate) and [one.spec.id for one in again.ready] == [2]
    store.apply(0, [Claim(2, 0, again.ready[0].move, 7, 0)], 0)
    assert store.apply(0, [finish], 0) == [DONE], "the child is another node's by now"
