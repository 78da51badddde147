"""One attempt at the rows of a call: the handlers of `daws.store.memory` on a view of a shard.

The rules are written once, for a store in memory. If a cell is missing, it is fetched and the attempt starts anew. If
none is missing, all reads and changes of the handlers are known. One script on the server then commits the changes, if
nothing that was read has changed meanwhile.

Cells of other shards can be read (a record retires when its children have, wherever they are), but not changed in the
same update. Changes there are made afterwards, in an update of that shard: see `Tidy`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.store.memory import MemoryStore
from daws.store.memory.record import Record
from daws.store.memory.references import retire
from daws.store.memory.store import HANDLERS, LOSSES_MAX, Handler, Shard
from daws.store.valkey import cells
from daws.store.valkey.bursts import BURSTS
from daws.store.valkey.cells import DEAD, ENROLLED, ESTATES, LEASES, MEMBERS, SESSION_LEASES, SESSIONS, STAMP_BYTES
from daws.store.valkey.view import NOT_HERE, Cache, Change, Missing, ShardView
from daws.wire.store import OK, AnswerType, Row, shard_of


class StoreOptions(Struct, frozen=True):
    """The settings that all callers of a store must share."""

    shard_count: int = 1
    lease_ns: int = 10_000_000_000
    replicas_max: int = 2
    history: bool = False
    direct: bool = False
    losses_max: int = LOSSES_MAX


class Outage(Struct, frozen=True):
    """The time during which the store did not answer, by its own clock."""

    start_ns: int
    end_ns: int


class Tidy(Row, frozen=True):
    """Something below this task has retired, so it may retire as well."""

    task: int


class DropEstate(Row, frozen=True):
    """Drop the answer to an heir that has received all of it."""

    dead: NodeId
    node: NodeId


class Strike(Row, frozen=True):
    """The first half of a take-over: from now on the dead node can get nothing more in this shard."""

    dead: NodeId
    node: NodeId


class _Shards(list[Shard]):
    """All shards. Those that are not called are made when they are first accessed."""

    def __init__(self, store: "Attempt") -> None:
        super().__init__()
        self.store = store

    def __getitem__(self, number: Any) -> Any:
        return self.store.shard(number)

    def __iter__(self) -> Iterator[Shard]:
        return (self.store.shard(number) for number in range(self.store.shard_count))


class Attempt(MemoryStore):
    """One attempt at the rows of a call."""

    def __init__(self, options: StoreOptions, number: int, caches: dict[int, Cache], marks: int, stamp: bytes) -> None:
        """Begin an attempt. `stamp` is for the cells that it changes."""
        self.direct = options.direct
        self.retired_max = 0
        self.shard_count = options.shard_count
        self.lease_ns = options.lease_ns
        self.replicas_max = options.replicas_max
        self.losses_max = options.losses_max
        self.history = options.history
        self.number = number
        self.caches = caches  # cells of other shards that were fetched for this call
        self.here = ShardView(number, caches[number], marks, stamp)
        self._others: dict[int, ShardView] = {}
        self.shards = _Shards(self)
        self.leases = {}
        self.infos = {}
        self.orphans = {}
        self.buried = set()
        self.departed = set()
        self.members = Members(0, ())
        self.members_changed = False
        self.strategy = ""
        self.strategy_since = 0
        self.enrolled = {}
        self.node_count = 0
        self.sessions = {}
        self.session_count = 0
        self.session_leases = {}
        self.calls = 0
        self.touched = 0
        self._heads: dict[bytes, bytes] = {}  # cells without a task that the handlers may read, as they were
        struck = cells.decode_dead(self._head(DEAD) or b"\x90")
        self.here.dead.update([node for node in struck if node >= 0])
        self.here.closed += [cells.closed_word(word) for word in struck if word < 0]

    def shard(self, number: int) -> ShardView:
        if number == self.number:
            return self.here
        if number not in self._others:
            self._others[number] = ShardView(number, self.caches.setdefault(number, {}), 0)
        return self._others[number]

    def record(self, task: int) -> Record | None:
        record: Record | None = self.shard(shard_of(task, self.shard_count)).records.get(task)
        return record

    def carry_out(self, rows: Sequence[Row], now_ns: int) -> tuple[list[AnswerType], list[Missing]]:
        """The answers, or the cells to fetch first: as many as can be found out at once."""
        answers: list[AnswerType] = []
        missing: list[Missing] = []
        for kind, some in groupby(rows, type):
            self._serve(kind, some, now_ns, answers, missing)
        return answers, missing

    def _serve(
        self, kind: type[Row], rows: Iterator[Row], now_ns: int, answers: list[AnswerType], missing: list[Missing]
    ) -> None:
        """Serve rows of one kind. If a cell is missing for one row, go on with the next."""
        burst = BURSTS.get(kind) if not self.history else None
        while True:
            try:
                if burst is not None:
                    burst(self, rows, now_ns, answers)
                else:
                    answers.extend(self._one_by_one(rows, now_ns))
                return
            except Missing as one:
                missing.append(one)
            except Exception:
                if not missing:  # else it failed because of an earlier row that is half done
                    raise

    def _one_by_one(self, rows: Iterable[Row], now_ns: int) -> Iterator[AnswerType]:
        carry_out = self._noted if self.history else self._plain
        for row in rows:
            yield carry_out(self.here, row, now_ns)

    def _plain(self, shard: Shard, row: Row, now_ns: int) -> AnswerType:
        return HERE[type(row)](self, shard, row, now_ns)

    def _noted(self, shard: Shard, row: Row, now_ns: int) -> AnswerType:
        return super()._noted(shard, row, now_ns) if type(row) in HANDLERS else self._plain(shard, row, now_ns)

    # -- cells that belong to no task ----------------------------------------------------------------

    def _head(self, name: bytes) -> bytes:
        held = self._heads[name] = self.here.cell(name)
        return held

    def look_at_members(self, outage: Outage | None) -> None:
        """Read the members. Leases that were valid while the store was unreachable are extended, as they could not be
        renewed."""
        sheet = cells.decode_members(self._head(MEMBERS) or b"\x90")
        self.infos = {info.id: info for info in sheet.infos}
        self.orphans = dict.fromkeys(sheet.orphans)
        self.buried = set(sheet.buried)
        self.departed = set(sheet.departed)
        self.members = Members(sheet.version, sheet.infos, sheet.strategy)
        self.members_changed = sheet.changed
        self.strategy, self.strategy_since = sheet.strategy, sheet.strategy_since
        self.leases = dict(cells.decode_leases(self._head(LEASES) or b"\x90"))
        _lengthen(self.leases, outage)

    def look_at_sessions(self, outage: Outage | None) -> None:
        sheet = cells.decode_sessions(self._head(SESSIONS) or b"\x90")
        self.session_count = sheet.count
        self.sessions = {entry.number: entry for entry in sheet.sessions}
        self.session_leases = dict(cells.decode_leases(self._head(SESSION_LEASES) or b"\x90"))
        _lengthen(self.session_leases, outage)

    def look_at_numbers(self) -> None:
        sheet = cells.decode_enrolled(self._head(ENROLLED) or b"\x90")
        self.node_count = sheet.count
        self.enrolled = dict(sheet.enrolled)

    def look_at_estates(self) -> None:
        """Read the estates, and the departed nodes, which shard 0 knew before any node could become an heir."""
        for dead, heir, part, estate in cells.decode_estates(self._head(ESTATES) or b"\x90"):
            self.here.estates[dead, heir] = (part, estate)
        self.departed = set(cells.decode_members(self.shard(0).cell(MEMBERS) or b"\x90").departed)

    # -- what came of it -------------------------------------------------------------------------------

    def change(self) -> Change:
        change, stamp = self.here.change(), self.here.new_stamp
        at = len(change.writes)
        for name, before in self._heads.items():
            now = self._sheet_of(name)
            if now == (before or b"\x90"):
                change.others.append(name)
                change.stamps.append(self.here.stamp(name))
            else:
                change.writes[name] = change.written[name] = stamp + now
                change.stamps.insert(at, self.here.stamp(name))
                at += 1
        return change

    def _sheet_of(self, name: bytes) -> bytes:
        if name == DEAD:
            return cells.encode((*map(cells.closed_word, self.here.closed), *sorted(self.here.dead)))
        if name == ESTATES:
            return cells.encode([(*pair, *said) for pair, said in self.here.estates.items()])
        if name == LEASES:
            return cells.encode(tuple(self.leases.items()))
        if name == SESSION_LEASES:
            return cells.encode(tuple(self.session_leases.items()))
        if name == SESSIONS:
            sheet = cells.SessionsSheet(self.session_count, tuple(self.sessions.values()))
            return cells.encode(sheet) if self.session_count or self.sessions else b"\x90"
        if name == ENROLLED:
            return cells.encode(cells.EnrolledSheet(self.node_count, tuple(self.enrolled.items())))
        gone = (tuple(self.orphans), tuple(sorted(self.buried)), tuple(sorted(self.departed)))
        strategy = (self.strategy, self.strategy_since)
        if not (self.members.version or self.members_changed or any(gone)):
            return b"\x90"  # as if there had never been members
        infos = tuple(self.infos.values())
        return cells.encode(cells.MembersSheet(self.members.version, self.members_changed, infos, *gone, *strategy))

    def afterwards(self, changed: bool) -> list[tuple[int, Row]]:
        """The updates of other shards to make after this attempt was committed.

        They retire the records that the handlers would have retired there. If something here has retired, they also
        check again the records that may have waited for it. (If two shards read each other before either has committed,
        neither sees that the other is done.)
        """
        todo: list[tuple[int, Row]] = []
        for number, other in self._others.items():
            for task in other.records.looked:
                record = dict.get(other.records, task, NOT_HERE)
                looked = other.records.looked[task]
                was_retired = isinstance(looked, bytes) and len(looked) == STAMP_BYTES
                if record is NOT_HERE or was_retired:
                    continue
                if record is None or (changed and record.freed):
                    todo.append((number, Tidy(task)))
        return todo


def _lengthen(leases: dict[int, int], outage: Outage | None) -> None:
    """Extend leases that expired while the store did not answer, also those that were requested meanwhile, in vain."""
    if outage is not None:
        for holder, until_ns in leases.items():
            if outage.start_ns < until_ns < outage.end_ns:
                leases[holder] = until_ns + outage.end_ns - outage.start_ns


def _tidy(store: MemoryStore, shard: Shard, row: Tidy, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is not None and record.freed:
        retire(store, record)
    return OK


def _drop_estate(store: MemoryStore, shard: Shard, row: DropEstate, now_ns: int) -> AnswerType:
    shard.estates.pop((row.dead, row.node), None)
    return OK


def _strike(store: MemoryStore, shard: Shard, row: Strike, now_ns: int) -> AnswerType:
    if row.node not in shard.dead:
        shard.dead.add(row.dead)
    return OK


HERE: dict[type[Row], Handler] = {**HANDLERS, Tidy: _tidy, DropEstate: _drop_estate, Strike: _strike}
"""The handlers of the store in memory, and those of rows that only this store has."""
