"""Calls that look at a whole store, and the reader that takes commits out of its log."""

import pytest

from daws.model.states import DONE, WAITING
from daws.store.memory import MemoryStore
from daws.store.memory.commits import CommitReader
from daws.store.memory.snapshot import (
    commit_count,
    commits_in,
    commits_since,
    intents_in,
    tasks_in,
    unfinished_in,
    was_created,
)
from daws.testing import created
from daws.testing.build import object_at
from daws.wire.store import Cancel, Committed, Finish, Release, logged_task


def two_shards() -> tuple[MemoryStore, Committed]:
    """A done task with a child in another shard, which it has not told yet."""
    store = MemoryStore(2)
    for row in created({1: [], 65: [1]}, 0):
        store.apply(row.spec.id >> 6, [row], 0)
    (told,) = store.apply(0, [Finish(1, 0, 0, (object_at(1, 0),))], 0)
    assert isinstance(told, Committed)
    return store, told


def test_a_store_is_looked_at_across_its_shards():
    store, told = two_shards()
    assert [(task, record.state) for task, record in tasks_in(store)] == [(1, DONE), (65, WAITING)]
    assert [task for task, _ in unfinished_in(store)] == [65]
    assert [(key, holder) for key, holder, _ in intents_in(store)] == [(told.key, 0)]
    assert [*commits_in(store)] == [1] and commit_count(store, 0) == 1
    assert (commits_since(store, 0, 0), commits_since(store, 0, 1), commits_since(store, 1, 0)) == ([1], [], [])
    assert was_created(store, 65) and not was_created(store, 66)


def test_a_task_that_has_retired_is_known_and_has_no_record():
    store = MemoryStore()
    store.apply(0, [*created({1: []}, 0), Finish(1, 0, 0, ()), Release(1)], 0)
    assert store.record(1) is None and was_created(store, 1) and [*tasks_in(store)] == []


def test_commits_are_taken_once():
    store = MemoryStore()
    store.apply(0, [*created({1: [], 2: []}, 0), Finish(1, 0, 0, ()), Finish(2, 0, 0, ())], 0)
    reader = CommitReader(store)
    assert len(reader.rows) == 2
    assert reader.take_plain() == ([1, 2], [(), ()])
    assert reader.rows == reader.take() == []


def test_other_commits_are_not_plain_and_stay_until_they_are_taken():
    store = MemoryStore()
    store.apply(0, [*created({1: [], 2: []}, 0), Finish(1, 0, 0, ()), Cancel(2, 0)], 0)
    reader = CommitReader(store)
    assert reader.take_plain() is None and len(reader.rows) == 2
    assert [logged_task(row) for row in reader.take()] == [1, 2]


def test_commits_of_forgotten_tasks_are_not_plain():
    store = MemoryStore()
    store.apply(0, [*created({1: []}, 0), Finish(1, 0, 0, ()), Release(1)], 0)
    reader = CommitReader(store)
    assert reader.take_plain() is None and reader.take() == [1]


def test_a_reader_takes_commits_of_a_store_with_one_shard_only():
    with pytest.raises(ValueError):
        CommitReader(MemoryStore(2))
