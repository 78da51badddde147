"""The state of the store in memory, and the one door through which it changes.

`apply` gives each row to its handler. The handlers are plain functions `(store, shard, row, now_ns)` in the modules
beside this one, entered into the table by `serves`; `daws.store.memory` lists them.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from typing import Any, TypeVar

from msgspec import Struct

from daws.model.cluster import Members, NodeInfo
from daws.model.session import SESSION_BITS
from daws.model.states import READY, SUSPENDED
from daws.model.task import NodeId
from daws.store.memory.closed import is_closed
from daws.store.memory.record import Record, note
from daws.wire import store as wire
from daws.wire.store import AnswerType, Row, shard_of

Others = tuple[Any, ...] | None
"""The tasks that an intent concerns: (task, need) pairs to satisfy, or tasks to stop; None for all children."""


MANY_ROWS = 16
"""The number of rows in a call from which it pays to look for equal kinds."""


class HeldIntent(Struct, frozen=True, gc=False):
    """An intent in the outbox of a shard: the node that has to carry it out, the tasks that it concerns (None: all
    children), and the mark of the write."""

    holder: NodeId
    others: Others
    mark: int


class Shard:
    """The part of the store within which an update is atomic. A retired task leaves None behind, for a while at least
    (`retired_max`)."""

    __slots__ = (
        "closed",
        "dead",
        "estates",
        "found",
        "left",
        "log",
        "marks",
        "outbox",
        "records",
        "retired",
        "trimmed",
    )

    def __init__(self) -> None:
        self.records: dict[int, Record | None] = {}
        self.outbox: dict[int, HeldIntent] = {}  # by key
        self.marks = 0
        self.log: list[wire.LogRow] = []
        self.trimmed = 0  # the number of the first commit in the log: those before it were dropped
        self.retired: deque[int] = deque()  # the tasks behind those None, oldest first, if they are counted
        self.dead: set[NodeId] = set()
        self.closed: list[int] = []  # what sessions that end or have ended cannot get any more (see `closed`)
        self.estates: dict[tuple[NodeId, NodeId], tuple[int, wire.Estate]] = {}
        self.left: dict[NodeId, list[int]] = {}  # what dead nodes may have left behind, last first (see `estates`)
        self.found: dict[tuple[int, bool], Any] = {}  # searches (see `sessions`) of which parts are yet to be asked for

    def left_by(self, node: NodeId) -> list[int]:
        """The tasks that a node which is struck would leave behind, last first."""
        left = [
            task
            for task, record in self.records.items()
            if record is not None
            and (
                (record.owner == node and record.state in (READY, SUSPENDED))
                or (record.rare is not None and node in record.rare.replicas)
            )
        ]
        left.reverse()
        return left

    def drop_retired(self, blocks: Collection[int]) -> None:
        """Forget even that tasks have retired, if their numbers are in blocks that are closed (see `closed`)."""
        for task in [task for task, one in self.records.items() if one is None and task >> SESSION_BITS in blocks]:
            del self.records[task]


def is_over(shard: Shard, task: int) -> bool:
    """Is it certain that a task without a record will never be created (any more)? It has retired, or its session ends
    or has ended."""
    return task in shard.records or is_closed(shard.closed, task)


LOSSES_MAX = 3
"""The default of `losses_max`: one death may be an accident, and so may two."""


class MemoryStore:
    """All shards in one process. `calls` and `touched` count the requests that a real store would have served."""

    def __init__(
        self,
        shard_count: int = 1,
        lease_ns: int = 10_000_000_000,
        replicas_max: int = 2,
        history: bool = False,
        direct: bool = False,
        retired_max: int = 0,
        first_session: int = 1,
        losses_max: int = LOSSES_MAX,
    ) -> None:
        """Make an empty store.

        `direct`: a commit satisfies the children in its own shard in the same update. `retired_max`: the number of
        retired tasks that the store remembers (0: all). A limit is safe only if no message about a task comes very
        late, and no child is named before it exists. Sessions are numbered from `first_session` on. A task that was
        running on `losses_max` nodes when they died fails.
        """
        self.direct = direct
        self.retired_max = retired_max
        self.shard_count = shard_count
        self.lease_ns = lease_ns
        self.replicas_max = replicas_max
        self.losses_max = losses_max
        self.history = history
        self.shards = [Shard() for _ in range(shard_count)]
        self.leases: dict[NodeId, int] = {}
        self.infos: dict[NodeId, NodeInfo] = {}
        self.orphans: dict[NodeId, None] = {}
        self.buried: set[NodeId] = set()
        self.departed: set[NodeId] = set()  # orphans that gave their lease back: when they did, nothing ran there
        self.members = Members(0, ())
        self.members_changed = False
        self.strategy = ""
        self.strategy_since = 0  # the version of the members from which on they use it
        self.enrolled: dict[bytes, NodeId] = {}  # nonce -> number of the nodes that came last
        self.node_count = 0  # so many numbers of nodes were given
        self.sessions: dict[int, wire.SessionEntry] = {}
        self.session_count = first_session - 1  # the highest number of a session so far
        self.session_leases: dict[int, int] = {}  # until when its client has it
        self.calls = 0
        self.touched = 0

    def apply(self, shard: int, rows: Sequence[Row], now_ns: int) -> list[AnswerType]:
        self.calls += 1
        self.touched += len(rows)
        part = self.shards[shard]
        if self.history:
            return [self._noted(part, row, now_ns) for row in rows]
        if len(rows) >= MANY_ROWS:
            return self._served(part, rows, now_ns)
        if len(rows) == 1:
            return [HANDLERS[type(rows[0])](self, part, rows[0], now_ns)]
        return [HANDLERS[type(row)](self, part, row, now_ns) for row in rows]

    def _served(self, part: Shard, rows: Sequence[Row], now_ns: int) -> list[AnswerType]:
        """The answers to many rows. Consecutive rows of one kind are served together."""
        answers: list[AnswerType] = []
        for kind, some in groupby(rows, type):
            burst = BURSTS.get(kind)
            if burst is not None:
                burst(self, part, some, now_ns, answers)
            else:
                handler = HANDLERS[kind]
                answers += [handler(self, part, row, now_ns) for row in some]
        return answers

    def apply_one(self, shard: int, row: Row, now_ns: int) -> AnswerType:
        """A call with a single row."""
        self.calls += 1
        self.touched += 1
        part = self.shards[shard]
        if self.history:
            return self._noted(part, row, now_ns)
        return HANDLERS[type(row)](self, part, row, now_ns)

    def record(self, task: int) -> Record | None:
        """The record of a task, for checkers and tests; None when it is unknown or retired."""
        return self.shards[shard_of(task, self.shard_count)].records.get(task)

    def has_retired(self, shard: Shard, task: int) -> bool:
        """Whether a task without a record, which must have been created by now, has retired. A store that forgets
        retired tasks assumes so."""
        return self.retired_max > 0 or is_over(shard, task)

    def join(self, infos: Iterable[NodeInfo], now_ns: int = 0) -> Members:
        """Make many nodes members at once (a cluster that starts together)."""
        until_ns = now_ns + self.lease_ns
        for info in infos:
            self.infos[info.id] = info
            self.leases[info.id] = until_ns
        self.members_changed = True
        return self.members_now()

    def expire(self, node: NodeId) -> None:
        """Let the lease of a node run out: its death is known."""
        if node in self.leases:
            self.leases = {node: 0, **{one: until_ns for one, until_ns in self.leases.items() if one != node}}

    def members_now(self) -> Members:
        """The members, under a new version if something has changed since the last time."""
        if self.members_changed:
            self.members_changed = False
            self.members = Members(self.members.version + 1, tuple(self.infos.values()), self.strategy)
        return self.members

    def _noted(self, shard: Shard, row: Row, now_ns: int) -> AnswerType:
        """Carry out a row, and add the change to the task's history."""
        task = row.spec.id if isinstance(row, wire.Create) else getattr(row, "task", -1)
        record = shard.records.get(task)
        before = (record.state, record.owner) if record is not None else None
        answer = HANDLERS[type(row)](self, shard, row, now_ns)
        record = shard.records.get(task)
        if record is not None and (record.state, record.owner) != before:
            note(record, now_ns)
        return answer


Handler = Callable[[MemoryStore, Shard, Any, int], AnswerType]
HANDLERS: dict[type[Row], Handler] = {}
RowT = TypeVar("RowT", bound=Row)
HandlerOf = Callable[[MemoryStore, Shard, RowT, int], AnswerType]


def serves(row: type[RowT]) -> Callable[[HandlerOf[RowT]], HandlerOf[RowT]]:
    """Enter the handler of such rows into the table; each kind of row has exactly one."""

    def enter(handler: HandlerOf[RowT]) -> HandlerOf[RowT]:
        assert row not in HANDLERS, row
        HANDLERS[row] = handler
        return handler

    return enter


Burst = Callable[[MemoryStore, Shard, Iterable[Any], int, list[AnswerType]], None]
BURSTS: dict[type[Row], Burst] = {}


def serves_many(row: type[Row]) -> Callable[[Burst], Burst]:
    """Enter a function that serves many such rows of one call, with the same answers as their handler would give."""

    def enter(burst: Burst) -> Burst:
        assert row not in BURSTS, row
        BURSTS[row] = burst
        return burst

    return enter
