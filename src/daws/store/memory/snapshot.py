"""The whole contents of a store, for checkers, tests and error messages. These calls walk over all tasks."""

from collections.abc import Iterator
from itertools import chain

from daws.model.states import FINAL
from daws.model.task import NodeId
from daws.store.memory.record import Record
from daws.store.memory.store import MemoryStore, Others
from daws.wire.store import LogRow, shard_of


def tasks_in(store: MemoryStore) -> Iterator[tuple[int, Record]]:
    """All tasks that have a record, shard by shard; not those that have retired."""
    for shard in store.shards:
        for task, record in shard.records.items():
            if record is not None:
                yield task, record


def unfinished_in(store: MemoryStore) -> Iterator[tuple[int, Record]]:
    """All tasks that have not ended. A task whose objects are made again counts as one."""
    return ((task, record) for task, record in tasks_in(store) if record.state not in FINAL)


def intents_in(store: MemoryStore) -> Iterator[tuple[int, NodeId, Others]]:
    """The intents that are not carried out yet: the key in the outbox, the node that has to do it, and the tasks that
    it concerns."""
    for shard in store.shards:
        for key, intent in shard.outbox.items():
            yield key, intent.holder, intent.others


def commits_in(store: MemoryStore) -> Iterator[LogRow]:
    """All rows of the logs of commits that were not dropped."""
    return chain.from_iterable(shard.log for shard in store.shards)


def is_trimmed(store: MemoryStore) -> bool:
    """Whether commits were dropped from a log."""
    return any(shard.trimmed for shard in store.shards)


def commit_count(store: MemoryStore, shard: int) -> int:
    """The number that the next commit of one shard will have, from which `commits_since` can go on."""
    return store.shards[shard].trimmed + len(store.shards[shard].log)


def commits_since(store: MemoryStore, shard: int, start: int) -> list[LogRow]:
    """The rows that the log of one shard has from a row on."""
    return store.shards[shard].log[start - store.shards[shard].trimmed :]


def was_created(store: MemoryStore, task: int) -> bool:
    """Whether the store knows a task, also as one that has retired."""
    return task in store.shards[shard_of(task, store.shard_count)].records
