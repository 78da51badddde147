"""A shard as the handlers of `daws.store.memory` see it, though only the cells that they ask for are here.

The view is filled from a cache of cells. Access to a cell that is not cached raises `Missing`. The cells that were
read, and their new contents, are the `Change` to be committed.
"""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from daws.model.states import READY, SUSPENDED
from daws.model.task import NodeId
from daws.store.memory.record import Record
from daws.store.memory.store import HeldIntent, Shard
from daws.store.valkey import cells
from daws.store.valkey.cells import STAMP_BYTES
from daws.wire import store as wire

Name = int | bytes
"""The name of a cell: a task's number, or a word."""


class CachedRecord(Struct, frozen=True, gc=False):
    """A plain record (or None for a retired one) together with the stamp of its cell: the same stamp always means the
    same record. `before` is the stamp that it replaced, if that is known."""

    stamp: bytes
    record: Record | None
    before: bytes = b""


Cache = dict[Name, bytes | CachedRecord]
"""Cells of one shard as they were last seen."""
NOT_HERE: Any = object()
"""The value that means "does not exist" among records, which may be None."""
_copy = Record.__copy__  # type: ignore[attr-defined]  # as all structs have it


class Missing(Exception):
    """Cells that have to be fetched first."""

    def __init__(self, shard: int, *names: Name) -> None:
        super().__init__(shard, *names)
        self.shard = shard
        self.names = names


class Change(Struct):
    """The result of an attempt.

    `writes` are the new cells as bytes, `written` the same as they are cached. `others` are further cells that were
    read. `stamps` are those that were seen, b"" for cells that did not exist. `log` has new entries of the log.
    """

    writes: dict[Name, bytes]
    written: dict[Name, bytes | CachedRecord]
    others: list[Name]
    stamps: list[bytes]  # of the writes, then of the others
    log: list[bytes]


class _Records(dict[int, Record | None]):
    """The records that were looked at. Those that are known not to exist are in `looked` alone."""

    __slots__ = ("cache", "estate", "looked", "outbox", "plain", "shard")

    def __init__(self, shard: int, cache: Cache) -> None:
        super().__init__()
        self.shard = shard
        self.cache = cache
        self.looked: dict[int, bytes | CachedRecord] = {}  # with their cells as they were
        self.plain: dict[int, CachedRecord] = {}  # new records of tasks that no handler has looked at
        self.outbox = _Outbox(self)
        self.estate: list[int] = []  # tasks that may belong to the estate of a node

    def look(self, task: int) -> None:
        cell = self.cache.get(task)
        if cell is None:
            raise Missing(self.shard, task)
        self.looked[task] = cell
        if task in self.plain:
            record = self.plain.pop(task).record
            dict.__setitem__(self, task, None if record is None else _copy(record))
        elif isinstance(cell, CachedRecord):
            record = cell.record
            dict.__setitem__(self, task, None if record is None else _copy(record))
        elif cell:
            record, intents = cells.unpack(cell)
            dict.__setitem__(self, task, record)
            for verb, intent in intents.items():
                dict.__setitem__(self.outbox, task << 2 | verb, intent)

    def get(self, task: int, default: Any = None) -> Any:
        if task not in self.looked:
            self.look(task)
        return dict.get(self, task, default)

    def __contains__(self, task: object) -> bool:
        if task not in self.looked:
            self.look(task)  # type: ignore[arg-type]
        return dict.__contains__(self, task)

    def __missing__(self, task: int) -> Record | None:
        if task in self.looked:
            raise KeyError(task)
        self.look(task)
        return self[task]

    def items(self) -> Any:
        """The records of the estate; handlers ask for no others."""
        return [(task, self.get(task)) for task in self.estate]

    def values(self) -> Any:
        return (self.get(task) for task in self.estate)


class _Outbox(dict[int, HeldIntent]):
    """Intents come with the records of their tasks. The outbox is empty if the records that were looked at have
    none."""

    __slots__ = ("estate", "records")

    def __init__(self, records: _Records) -> None:
        super().__init__()
        self.records = records
        self.estate: list[int] = []

    def _look(self, key: int) -> None:
        if key >> 2 not in self.records.looked:
            self.records.look(key >> 2)

    def get(self, key: int, default: Any = None) -> Any:
        self._look(key)
        return dict.get(self, key, default)

    def __contains__(self, key: object) -> bool:
        self._look(key)  # type: ignore[arg-type]
        return dict.__contains__(self, key)

    def __missing__(self, key: int) -> HeldIntent:
        if key >> 2 in self.records.looked:
            raise KeyError(key)
        self._look(key)
        return self[key]

    def items(self) -> Any:
        for task in self.estate:
            self.records.get(task)
        keys = [task << 2 | verb for task in self.estate for verb in (wire.SATISFY, wire.REMAKE_FOR, wire.STOP)]
        return [(key, self[key]) for key in keys if key in self]


class _Log(list[wire.LogRow]):
    """The entries that an attempt adds to the log; only the server knows their positions."""

    __slots__ = ("tail",)

    def __init__(self) -> None:
        super().__init__()
        self.tail: list[wire.LogRow] = []

    def __getitem__(self, wanted: Any) -> Any:
        return self.tail  # it was fetched for the row that asks


class ShardView(Shard):
    __slots__ = ("cache", "new_stamp", "number")

    records: _Records
    outbox: _Outbox
    log: _Log

    def __init__(self, number: int, cache: Cache, marks: int, new_stamp: bytes = b"") -> None:
        """View a shard. `new_stamp` is for all cells that are changed."""
        super().__init__()
        self.new_stamp = new_stamp
        self.number = number
        self.cache = cache
        self.records = _Records(number, cache)
        self.outbox = self.records.outbox
        self.log = _Log()
        self.marks = marks

    def left_by(self, node: NodeId) -> list[int]:
        """The tasks that `look_for` has chosen, last first."""
        return self.records.estate[::-1]

    def drop_retired(self, blocks: Collection[int]) -> None:
        """Do nothing: the caller deletes the cells when the update is committed."""

    def cell(self, name: bytes) -> bytes:
        """The content of a cell that belongs to no task, without its stamp."""
        cell = self.cache.get(name)
        if cell is None:
            raise Missing(self.number, name)
        assert isinstance(cell, bytes)
        return cell[STAMP_BYTES:]

    def stamp(self, name: bytes) -> bytes:
        """The stamp of such a cell."""
        cell = self.cache[name]
        assert isinstance(cell, bytes)
        return cell[:STAMP_BYTES]

    def look_for(self, node: NodeId, found: Sequence[int], limit: int) -> None:
        """Show the handlers the tasks that a node would still leave behind. `found` has all candidates.

        One more than the limit of an answer is enough for the handlers to know that there are more.
        """
        forgotten = [task for task in found if task not in self.cache]
        if forgotten:
            raise Missing(self.number, *forgotten)
        owned = held = 0
        for task in found:
            owns, runs, holds = _is_left_by(self.cache[task], node)
            if runs or (owns and owned <= limit):
                self.records.estate.append(task)
            if holds and held <= limit:
                self.outbox.estate.append(task)
            owned += owns
            held += holds

    def change(self) -> Change:
        """The new contents of the tasks' cells."""
        stamp = self.new_stamp
        intents: dict[int, cells.Intents] = {}
        for key, intent in dict.items(self.outbox):
            intents.setdefault(key >> 2, {})[key & 3] = intent
        get, pack, is_plain = partial(dict.get, self.records), cells.pack, cells.is_plain
        plain = self.records.plain
        writes: dict[Name, bytes] = {task: pack(known.record, None, stamp) for task, known in plain.items()}
        written: dict[Name, bytes | CachedRecord] = dict(plain)  # type: ignore[arg-type]  # int is a Name
        others: list[Name] = []
        stamps = [known.before for known in plain.values()]
        kept: list[bytes] = []  # the stamps of the others
        for task, cell in self.records.looked.items():
            record = get(task, NOT_HERE)
            held = intents.get(task) if intents else None
            if isinstance(cell, CachedRecord):
                before, was = cell.stamp, cell.record
                is_same = held is None and (record is was or record == was)
                now = stamp if record is None or is_same else pack(record, held, stamp)
            else:
                before = cell[:STAMP_BYTES]
                now = b"" if record is NOT_HERE else pack(record, held, stamp)
                is_same = not now or (before != b"" and now[STAMP_BYTES:] == cell[STAMP_BYTES:])
            if is_same:
                others.append(task)
                kept.append(before)
                continue
            writes[task] = now
            stamps.append(before)
            if held is None and (record is None or is_plain(record)):
                written[task] = CachedRecord(stamp, record, before)
            else:
                written[task] = now
        encode = cells.encode
        log = [stamp + encode(row) for row in list.__iter__(self.log)]
        return Change(writes, written, others, stamps + kept, log)


def _is_left_by(cell: bytes | CachedRecord, node: NodeId) -> tuple[bool, bool, bool]:
    if isinstance(cell, bytes):
        return cells.is_left_by(cell, node)
    record = cell.record
    return record is not None and record.state in (READY, SUSPENDED) and record.owner == node, False, False
