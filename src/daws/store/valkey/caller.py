"""One process's calls to one shard, without a socket.

`carry_out` is a generator: it yields requests for the server and is sent the answers. Its driver repeats a request
until it is answered; that is safe, because each commit has a number and the server knows the last one of each caller.

Rule 11: the same number tells what was lost. If the server knows less of this caller than it has acknowledged, it has
gone back in time. Then the call is not carried out (its answers would be those of the past) but ends with
`StoreChangedError`, and the caller begins anew under another name. A failover is mostly noticed before that, because
another server answers.
"""

import secrets
from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from msgspec import Struct

from daws.model.errors import UnavailableError
from daws.model.session import FIRST_BROUGHT_ID
from daws.model.task import FIRST_SPAWNED_ID, NodeId
from daws.store.memory.closed import FUNCTIONS
from daws.store.memory.reading import rows_of
from daws.store.memory.record import Record
from daws.store.memory.sessions import FoundTasks, held_tasks, keep_found, tasks_of
from daws.store.valkey import cells
from daws.store.valkey.attempt import Attempt, DropEstate, Outage, StoreOptions, Strike
from daws.store.valkey.cells import ABSENT, STAMP_BYTES
from daws.store.valkey.view import Cache, Change, Missing, Name
from daws.wire import store as wire
from daws.wire.store import AnswerType, Row

ROWS_MAX = 500
"""The largest number of rows in one update. The server does nothing else meanwhile."""
CACHE_MAX = 100_000
"""The largest number of cached cells; beyond it, the older half is dropped."""
READERS_MAX = 100
"""The largest number of readers of the log that can learn that it was rewritten."""
_NO_STAMP = bytes(STAMP_BYTES)
PATIENCE = 3
"""The number of tries with all rows together. If other callers keep interfering, half of the rows are tried."""


class StoreChangedError(UnavailableError):
    """Another server answers now, or the same one begun anew: it was not asked to carry out this call."""

    def __init__(self) -> None:
        super().__init__(
            "another server answers for the store: updates that are not safe yet may be lost; send them again", True
        )

    def __reduce__(self) -> Any:
        return type(self), ()


class Fetch(Struct, frozen=True):
    """A request for cells. The answer has None for those that do not exist."""

    shard: int
    names: list[Name]


class Commit(Struct, frozen=True):
    """A request to commit. The answer is one of the outcomes below and its details."""

    shard: int
    caller: bytes
    acknowledged: int
    number: int  # 0 if nothing is to be written
    writes: dict[Name, bytes]
    others: list[Name]  # further cells that were read
    stamps: bytes  # of both, one after the other; zeros for a cell that must not exist
    log: list[bytes]


class Scan(Struct, frozen=True):
    """A request for cells that name a node. The answer is the next cursor, then names and cells in turns."""

    shard: int
    cursor: bytes
    node: bytes


class Heads(Struct, frozen=True):
    """A request for nodes in the heads of cells. The answer is the next cursor, and those nodes."""

    shard: int
    cursor: bytes


class Tail(Struct, frozen=True):
    """A request for entries of the log from number `start` on. The answer has the number of the first entry that
    counts, the number of the next commit, and the entries. The last entry that does not count any more is still there:
    a reader compares it to find out whether the log was rewritten."""

    shard: int
    start: int
    count: int


class Range(Struct, frozen=True):
    """Answered by the next cursor, and names and cells of tasks with these numbers in turns, perhaps of some beside."""

    shard: int
    cursor: bytes
    low: int
    high: int


class Drop(Struct, frozen=True):
    """A request to delete the cells of retired tasks with these numbers. The answer is the next cursor."""

    shard: int
    cursor: bytes
    low: int
    high: int


class Trim(Struct, frozen=True):
    """A request to drop the entries of the log with lower numbers."""

    shard: int
    before: int


Request = Fetch | Commit | Scan | Heads | Tail | Range | Drop | Trim
Script = Generator[Request, Any, Any]
DONE, CHANGED, LOST = 0, 1, 2
"""The outcome of a commit: done; other callers changed something (their cells follow: place among the reads, cell); or
refused, because the server knows less of this caller than it should."""


class CallResult(Struct, frozen=True):
    """The answers of a call, and the updates that it causes in other shards."""

    answers: list[AnswerType]
    afterwards: list[tuple[int, Row]]


class ShardCaller:
    def __init__(self, options: StoreOptions, shard: int) -> None:
        self.shard = shard
        self.cache: Cache = {}
        self.position = 0  # the number of the last commit that was acknowledged
        self._options = options
        self._name = secrets.token_bytes(8)
        self._stamp = secrets.randbits(64)
        self._marks = secrets.randbits(62)
        self._estates: dict[NodeId, list[int]] = {}
        self._outage: Outage | None = None
        self._found: dict[tuple[int, bool], FoundTasks] = {}  # searches of which parts are yet to be asked for
        self._of_session: list[int] = []  # tasks of a session that is to be forgotten
        self._read: dict[int, bytes] = {}  # position up to which the log was read -> the last entry before

    @property
    def name(self) -> bytes:
        """The name by which the server knows this caller. It changes when the server has lost something."""
        return self._name

    def carry_out(
        self, rows: Sequence[Row], now_ns: int, outage: Outage | None = None
    ) -> Generator[Request, Any, CallResult]:
        """Carry out the rows of a call. `outage` is the last one, if there was any."""
        self._outage = outage
        answers: list[AnswerType] = []
        afterwards: list[tuple[int, Row]] = []
        for part in _parts(rows):
            first = part[0]
            if isinstance(first, wire.ReadLog):
                answers += yield from self._read_log(first)
                continue
            if isinstance(first, wire.TrimLog):
                yield Trim(self.shard, first.before)
                answers.append(wire.OK)
                continue
            if isinstance(first, wire.Owners):
                answers += yield from self._find_owners()
                continue
            if isinstance(first, wire.FindHeld):
                answers += yield from self._find_held(first)
                continue
            if isinstance(first, wire.ForgetSession):
                self._of_session = [*(yield from self._find_records(first.session, True))]
            if isinstance(first, wire.TakeOver):
                before = self.position
                yield from self._update((Strike(first.dead, first.node),), now_ns, afterwards)
                if self.position != before:  # until now it could still get more
                    self._estates.pop(first.dead, None)
                yield from self._find_estate(first.dead)
            elif isinstance(first, wire.Owned):
                self._estates.pop(first.node, None)
                yield from self._find_estate(first.node)
            answers += yield from self._update(part, now_ns, afterwards)
            if isinstance(first, wire.ForgetSession) and answers[-1] == wire.OK:
                yield from self._drop_retired((first.session, FUNCTIONS + first.session))
            if isinstance(first, wire.Buried):
                self._estates.pop(first.dead, None)
                others = (shard for shard in range(self._options.shard_count) if shard != self.shard)
                afterwards += [(shard, DropEstate(first.dead, first.node)) for shard in others]
        if len(self.cache) > CACHE_MAX:
            for name in list(self.cache)[: CACHE_MAX // 2]:
                del self.cache[name]
        return CallResult(answers, afterwards)

    def _update(self, rows: Sequence[Row], now_ns: int, afterwards: list[tuple[int, Row]]) -> Script:
        """Carry out some rows as one update. Returns their answers."""
        cache = self.cache
        absent: dict[Name, None] = {}
        for row in rows:
            kind = type(row)
            if kind in _OF_TASKS:
                if row.task not in cache:  # type: ignore[attr-defined]
                    absent[row.task] = None  # type: ignore[attr-defined]
            elif kind in _OF_NEW_TASKS:
                cache.setdefault(row.spec.id, ABSENT)  # type: ignore[attr-defined]  # new, as far as we know
        caches = {self.shard: cache}
        if absent:  # all of them at once, instead of one by one as they are found missing
            yield from self._fetch([Missing(self.shard, *absent)], caches)
        tries = 0
        while True:
            attempt = None
            try:
                attempt = self._begin(rows[0], caches)
                answers, missing = attempt.carry_out(rows, now_ns)
            except Missing as one:
                missing = [one]
            if missing or attempt is None:
                yield from self._fetch(missing, caches)
                continue
            change = attempt.change()
            commit = self._commit(change)
            outcome, *rest = yield commit
            if outcome == DONE:
                if commit.number:
                    self.position = commit.number
                    self._marks = attempt.here.marks
                    cache.update(change.written)
                afterwards += attempt.afterwards(bool(commit.number))
                return answers
            if outcome == LOST:
                self.begin_anew()
                raise StoreChangedError
            (fresh,) = rest
            names = [*change.writes, *change.others]
            for place, cell in zip(fresh[::2], fresh[1::2], strict=True):
                cache[names[place - 1]] = cell
            tries += 1
            if tries > PATIENCE and len(rows) > 1:
                half = len(rows) // 2
                first: list[AnswerType] = yield from self._update(rows[:half], now_ns, afterwards)
                second: list[AnswerType] = yield from self._update(rows[half:], now_ns, afterwards)
                return first + second

    def _begin(self, first: Row, caches: dict[int, Cache]) -> Attempt:
        self._stamp = (self._stamp + 1) % (1 << 64)
        stamp = self._stamp.to_bytes(STAMP_BYTES, "big")
        attempt = Attempt(self._options, self.shard, caches, self._marks, stamp)
        if isinstance(first, (wire.Lease, wire.Watch, wire.Buried, wire.UseStrategy)):
            attempt.look_at_members(self._outage)
        if isinstance(first, wire.EnrolNode):
            attempt.look_at_numbers()
        if isinstance(first, _OF_SESSIONS):
            attempt.look_at_sessions(self._outage)
        if isinstance(first, wire.ForgetSession):
            attempt.here.records.estate += self._of_session
        if isinstance(first, (wire.TakeOver, wire.Buried, DropEstate)):
            attempt.look_at_estates()
        if isinstance(first, wire.TakeOver):
            attempt.here.look_for(first.dead, self._estates[first.dead], first.limit)
        elif isinstance(first, wire.Owned):
            attempt.here.look_for(first.node, self._estates[first.node], first.limit)
        return attempt

    def _fetch(self, missing: Sequence[Missing], caches: dict[int, Cache]) -> Script:
        wanted: dict[int, dict[Name, None]] = {}
        for one in missing:
            wanted.setdefault(one.shard, {}).update(dict.fromkeys(one.names))
        for shard, names in wanted.items():
            found = yield Fetch(shard, list(names))
            into = caches.setdefault(shard, {})
            for name, cell in zip(names, found, strict=True):
                into[name] = cell or ABSENT

    def _find_owners(self) -> Script:
        """The nodes that own anything here. A change during the search may be included or not."""
        found: set[NodeId] = set()
        cursor = b"0"
        while True:
            cursor, nodes = yield Heads(self.shard, cursor)
            found.update(map(cells.node_of, nodes))
            if cursor == b"0":
                return [wire.OwnedBy(tuple(sorted(found)))]

    def _find_held(self, row: wire.FindHeld) -> Script:
        key = row.session, row.spawned
        found = self._found.pop(key, None) if row.start else None
        records: dict[int, Record] | None = None
        if found is None:
            records = yield from self._find_records(row.session, row.spawned)
            found = tasks_of(row, records.items())
        at = bisect_left(found.tasks, row.start)
        some: list[tuple[int, Record]] = []
        while at < len(found.tasks) and len(some) < row.limit:
            tasks = found.tasks[at : at + row.limit - len(some)]
            at += len(tasks)
            if records is None:
                records = yield from self._fetch_records(tasks)
            some += [(task, records[task]) for task in tasks if task in records]
            records = None
        if at < len(found.tasks):
            keep_found(self._found, key, found)
        return [held_tasks(self._options.shard_count, found, some, at < len(found.tasks))]

    def _fetch_records(self, tasks: list[int]) -> Script:
        """The records of those among these tasks that have not retired."""
        names: list[Name] = [*tasks]
        page = yield Fetch(self.shard, names)
        unpacked = [(task, cells.unpack(cell)[0]) for task, cell in zip(tasks, page, strict=True) if cell]
        return {task: record for task, record in unpacked if record is not None}

    def _find_records(self, session: int, spawned: bool) -> Script:
        """The tasks that a session has here; `spawned`: with those that runs have created, of which all sessions' have
        to be looked at. A change during the search may be included or not."""
        found: dict[int, Record] = {}
        low = session << wire.SESSION_BITS
        yield from self._find_between(low, low + (1 << wire.SESSION_BITS), session, found)
        if spawned:
            yield from self._find_between(FIRST_SPAWNED_ID, 2 * FIRST_BROUGHT_ID, session, found)
        return found

    def _find_between(self, low: int, high: int, session: int, found: dict[int, Record]) -> Script:
        cursor = b"0"
        while True:
            cursor, page = yield Range(self.shard, cursor, low, high)
            for name, cell in zip(page[::2], page[1::2], strict=True):
                record, _ = cells.unpack(cell)
                if record is not None and wire.owner_of(int(name), record.spec.kind) == session:
                    found[int(name)] = record
            if cursor == b"0":
                return

    def _drop_retired(self, blocks: Sequence[int]) -> Script:
        """Delete the cells of retired tasks whose numbers are in blocks that are closed."""
        for block in blocks:
            low, cursor = block << wire.SESSION_BITS, b"0"
            while True:
                cursor = yield Drop(self.shard, cursor, low, low + (1 << wire.SESSION_BITS))
                if cursor == b"0":
                    break

    def _find_estate(self, node: NodeId) -> Script:
        """Find all tasks that a node would leave behind. It can get no more of them once it was struck, so they are
        searched for once, however many parts are asked for."""
        if node in self._estates:
            return
        found: dict[int, None] = {}
        cursor = b"0"
        while True:
            cursor, cells_found = yield Scan(self.shard, cursor, cells.node_bytes(node))
            for name, cell in zip(cells_found[::2], cells_found[1::2], strict=True):
                self.cache[int(name)] = cell
                found[int(name)] = None
            if cursor == b"0":
                break
        self._estates[node] = sorted(found)

    def _read_log(self, row: wire.ReadLog) -> Script:
        """Read on in the log. The last entry is read again: if it has changed, the log was rewritten."""
        if row.start == wire.LOG_END:
            _, end, _ = yield Tail(self.shard, 0, 0)
            return [wire.Log(end, [])]
        known = self._read.get(row.start)
        first, _, entries = yield Tail(self.shard, max(row.start - 1, 0), row.limit + min(row.start, 1))
        start = max(row.start, first)
        if known is not None and start == row.start and entries[:1] != [known]:
            self.begin_anew()
            raise StoreChangedError
        entries = entries[min(start, 1) :]  # each entry but the first of the log comes with the one before it
        if entries:
            self._read.pop(row.start, None)
            self._read[start + len(entries)] = entries[-1]
            if len(self._read) > READERS_MAX:
                del self._read[next(iter(self._read))]
        rows = [cells.decode_log_row(memoryview(entry)[STAMP_BYTES:]) for entry in entries]
        found = rows if row.session < 0 else rows_of(rows, row.session)
        return [wire.Log(start + len(rows), found, start - row.start)]

    def _commit(self, change: Change) -> Commit:
        return Commit(
            self.shard,
            self._name,
            self.position,
            self.position + 1 if change.writes else 0,
            change.writes,
            change.others,
            b"".join([stamp or _NO_STAMP for stamp in change.stamps]),
            change.log,
        )

    def begin_anew(self) -> None:
        """Begin anew under another name, because the server has lost something."""
        self._name = secrets.token_bytes(8)
        self.position = 0
        self._read.clear()
        self._estates.clear()
        self._found.clear()


_OF_TASKS = frozenset((wire.Finish, wire.FinishSmall, wire.Claim, wire.Satisfy, wire.Release))
"""The most frequent rows about one task."""
_OF_NEW_TASKS = frozenset((wire.Submit, wire.Create))
_OF_SESSIONS = (wire.AttachSession, wire.DetachSession, wire.ListSessions)
_ALONE = frozenset(
    (
        *(wire.ReadLog, wire.TrimLog, wire.FindHeld, wire.ForgetSession, wire.TakeOver, wire.Owned, wire.Owners),
        *(wire.Lease, wire.Watch, wire.Buried, wire.EnrolNode, wire.UseStrategy, DropEstate, *_OF_SESSIONS),
    )
)


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Rows that are carried out together: those about tasks in large parts, the others one by one."""
    if len(rows) <= ROWS_MAX and _ALONE.isdisjoint(map(type, rows)):
        if rows:
            yield rows
        return
    start = 0
    for number, row in enumerate(rows):
        if type(row) in _ALONE:
            if start < number:
                yield rows[start:number]
            yield rows[number : number + 1]
            start = number + 1
        elif number - start == ROWS_MAX:
            yield rows[start:number]
            start = number
    if start < len(rows):
        yield rows[start:]
