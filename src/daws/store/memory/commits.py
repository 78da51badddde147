"""The log of commits of a store with one shard, for its only reader: it takes the commits out of the log.

A session may go on for days, and no other reader needs a commit that was reported.
"""

from collections.abc import Callable
from typing import Any

from daws.model.task import Input
from daws.store.memory.record import Record
from daws.store.memory.store import MemoryStore
from daws.wire.store import LogRow


class CommitReader:
    """The commits since the last look. `rows` is the log itself: a caller may look whether it is empty, without a
    call."""

    __slots__ = ("_shard", "record_of", "rows")

    def __init__(self, store: MemoryStore) -> None:
        (shard,) = store.shards
        self._shard = shard
        self.rows: list[LogRow] = shard.log
        self.record_of: Callable[[int], Record | None] = shard.records.get

    def take(self) -> list[LogRow]:
        """All commits since the last call."""
        rows = self.rows[:]
        self._drop(len(rows))
        return rows

    def _drop(self, count: int) -> None:
        self._shard.trimmed += count
        self.rows.clear()

    def take_plain(self) -> tuple[list[int], list[tuple[Input, ...] | bytes]] | None:
        """The tasks that were done since the last call, with their outputs (bytes: the value of a single small object).
        None, and nothing is taken, if there is another commit among them or the store has forgotten a task."""
        rows: list[Any] = self.rows[:]
        if set(map(type, rows)) != {int}:
            return None
        records: list[Any] = [*map(self.record_of, rows)]
        if not all(records):  # forgotten tasks are not held
            return None
        self._drop(len(rows))
        return rows, [record.made for record in records]
