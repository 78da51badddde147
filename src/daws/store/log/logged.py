"""The store in memory that logs each call that changes it, and the way back: from calls to a store.

Reading is not logged, and neither is the renewal of a lease (of a node, or of a session), which changes nothing but a
time. An expired lease of a node does change the store: the expired nodes stand in the call that noticed it, with the
rows that asked for the members. While calls are replayed no lease expires by itself.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from daws.model.cluster import Members, NodeInfo
from daws.model.task import NodeId
from daws.store.memory.members import strike
from daws.store.memory.sessions import attachment
from daws.store.memory.store import LOSSES_MAX, MemoryStore
from daws.wire.store import (
    MEMBERSHIP_SHARD,
    AnswerType,
    AttachSession,
    FindHeld,
    Inspect,
    Lease,
    ListSessions,
    Locate,
    Owned,
    Owners,
    ReadLog,
    Row,
    RowType,
    Watch,
)

NEVER_NS = 1 << 62
_READS = frozenset((FindHeld, Inspect, ListSessions, Locate, Owned, Owners, ReadLog, Watch))
_LOOKED_AT = _READS | {AttachSession, Lease}
_EXPIRES = frozenset((Lease, Watch))
_NONE: frozenset[type[Row]] = frozenset()


class StoreSettings(Struct, frozen=True, array_like=True):
    """The settings of a store in memory. Calls give the same state again only with the same settings."""

    shard_count: int = 1
    lease_ns: int = 10_000_000_000
    replicas_max: int = 2
    history: bool = False
    direct: bool = False
    retired_max: int = 0
    first_session: int = 1
    losses_max: int = LOSSES_MAX


class LoggedCall(Struct, frozen=True, array_like=True, gc=False):
    """The rows of a call that may have changed something, and the nodes whose leases it found expired."""

    shard: int
    now_ns: int
    rows: list[RowType]
    struck: tuple[NodeId, ...] = ()


class CallLog(Protocol):
    """The log that calls are appended to."""

    def check(self) -> None:
        """Raise if nothing can be logged for now: the store must not change then."""
        ...

    def append(self, call: LoggedCall) -> None: ...


class LoggedStore(MemoryStore):
    """A store that answers at once. A caller that needs safe answers waits for the log (see `group`)."""

    def __init__(self, settings: StoreSettings, log: CallLog) -> None:
        super().__init__(
            settings.shard_count,
            settings.lease_ns,
            settings.replicas_max,
            settings.history,
            settings.direct,
            settings.retired_max,
            settings.first_session,
            settings.losses_max,
        )
        self.log = log
        self.ahead_ns = 0  # how far its clock is ahead of its caller's, which may have begun anew with the machine

    def apply(self, shard: int, rows: Sequence[Row], now_ns: int) -> list[AnswerType]:
        now_ns += self.ahead_ns
        kinds = set(map(type, rows))
        due = () if kinds.isdisjoint(_EXPIRES) else self._due(now_ns)
        shown = _EXPIRES if due else _NONE  # the first of these gives the list without the dead a version
        changing = (
            rows
            if kinds.isdisjoint(_LOOKED_AT)
            else [row for row in rows if type(row) in shown or self._changes(row, now_ns)]
        )
        if not changing and not due:
            return super().apply(shard, rows, now_ns)
        self.log.check()
        for node in due:
            strike(self, node)
        answers = super().apply(shard, rows, now_ns)
        self.members_now()  # from here on a version of its own, as when this call is replayed
        self.log.append(LoggedCall(shard, now_ns, [*changing], due))  # type: ignore[list-item]
        return answers

    def apply_one(self, shard: int, row: Row, now_ns: int) -> AnswerType:
        (answer,) = self.apply(shard, [row], now_ns)
        return answer

    def join(self, infos: Iterable[NodeInfo], now_ns: int = 0) -> Members:
        self.apply(MEMBERSHIP_SHARD, [Lease(info.id, 0, info) for info in infos], now_ns)
        return self.members

    def _changes(self, row: Row, now_ns: int) -> bool:
        if type(row) is Lease:
            return row.leaving or (row.info is not None and row.node not in self.infos)
        if type(row) is AttachSession:
            entry = attachment(self, row, now_ns)
            return not isinstance(entry, int) and self.sessions.get(entry.number) != entry
        return type(row) not in _READS

    def _due(self, now_ns: int) -> tuple[NodeId, ...]:
        """The nodes whose leases have expired. The leases are ordered by expiry."""
        found: list[NodeId] = []
        for node, until_ns in self.leases.items():
            if until_ns > now_ns:
                break
            found.append(node)
        return tuple(found)


def set_up(store: MemoryStore, settings: StoreSettings) -> None:
    """Prepare to replay calls that were made with these settings. Leases do not expire by themselves meanwhile."""
    store.lease_ns = NEVER_NS
    store.replicas_max = settings.replicas_max
    store.losses_max = settings.losses_max
    store.history = settings.history
    store.direct = settings.direct
    store.retired_max = settings.retired_max


def carry_out(store: MemoryStore, calls: Iterable[LoggedCall]) -> int:
    """Replay logged calls. Returns the number of their rows."""
    apply = MemoryStore.apply
    rows = 0
    for call in calls:
        for node in call.struck:
            strike(store, node)
        store.session_leases.clear()  # who was let have a session had it
        apply(store, call.shard, call.rows, call.now_ns)
        store.members_now()
        rows += len(call.rows)
    return rows


def go_on(store: MemoryStore, settings: StoreSettings, now_ns: int) -> None:
    """End the replay: all members get a fresh lease."""
    set_up(store, settings)
    store.lease_ns = settings.lease_ns
    until_ns = now_ns + settings.lease_ns
    store.leases = dict.fromkeys(store.infos, until_ns)
    store.session_leases = {entry.number: until_ns for entry in store.sessions.values() if entry.nonce}
    store.calls = store.touched = 0
