"""The whole state of the store in memory, as the parts of a file, and back.

Parts are small, so that neither direction needs much memory beside the store itself. The order of records and intents
is part of the state, because they are delivered in this order. The expiry of leases is not: a restart gives all members
a fresh one.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from daws.model.cluster import Members, NodeInfo
from daws.model.task import Input, NodeId, TaskSpec
from daws.store.log.logged import NEVER_NS
from daws.store.memory.record import MANY_EDGES, Rare, Record
from daws.store.memory.store import HeldIntent, MemoryStore, Shard
from daws.wire.store import Estate, LogRow, SessionEntry

PART_RECORDS = 2048
PART_ROWS = 65_536
_RARE = Rare.__slots__


class KeptRare(Struct, frozen=True, array_like=True):
    announced: bool
    error: str
    history: list[tuple[int, int, NodeId]]
    holders: list[int]
    losses: int
    need: int
    remaking: bool
    replicas: tuple[NodeId, ...]
    spawned: dict[int, tuple[int, ...]]
    suspended_on: tuple[int, ...]
    waiters: tuple[tuple[int, int], ...]
    watchers: tuple[int, ...]
    failure: bytes = b""
    cause: int = -1
    lost: tuple[Input, ...] = ()


class KeptRecord(Struct, frozen=True, array_like=True, gc=False):
    """A record. `many`: its edges are a set, however few are left."""

    spec: TaskSpec
    state: int
    owner: NodeId
    children: tuple[int, ...]
    edges: tuple[int, ...] | int | None
    many: bool
    inputs: tuple[Input, ...]
    outputs: tuple[Input, ...]
    move: int
    attempt: int
    freed: bool
    held: bool
    rare: KeptRare | None


class Part(Struct, frozen=True, array_like=True, tag=True):
    pass


class Records(Part, frozen=True):
    """Records of one shard; a bare number is a task that has retired."""

    shard: int
    records: list[KeptRecord | int]


class CommittedRows(Part, frozen=True, tag="Commits"):
    """Rows of one shard's log."""

    shard: int
    rows: list[LogRow]


class Retired(Part, frozen=True):
    shard: int
    tasks: list[int]


class Intents(Part, frozen=True):
    """The outbox of one shard, with the dead nodes and the answers that their heirs got."""

    shard: int
    marks: int
    outbox: list[tuple[int, NodeId, tuple[int | tuple[int, int], ...] | None, int]]
    dead: list[NodeId]
    estates: list[tuple[NodeId, NodeId, int, Estate]]
    closed: list[int] = []
    trimmed: int = 0
    left: list[tuple[NodeId, list[int]]] = []


class Membership(Part, frozen=True):
    now_ns: int
    infos: list[NodeInfo]
    orphans: list[NodeId]
    buried: list[NodeId]
    departed: list[NodeId]
    version: int
    known: tuple[NodeInfo, ...]
    changed: bool
    sessions: list[SessionEntry] = []
    session_count: int = 0
    strategy: str = ""
    strategy_since: int = 0
    enrolled: list[tuple[bytes, NodeId]] = []
    node_count: int = 0


class End(Part, frozen=True):
    """The end of a file that is complete, with the number of parts before it."""

    parts: int


PartType = Records | CommittedRows | Retired | Intents | Membership | End
DECODER = msgspec.msgpack.Decoder(PartType)


# -- from a store ------------------------------------------------------------------------------------------------------


def parts_of(store: MemoryStore, now_ns: int) -> Iterator[PartType]:
    count = 0
    for part in _parts(store, now_ns):
        yield part
        count += 1
    yield End(count)


def _parts(store: MemoryStore, now_ns: int) -> Iterator[PartType]:
    for number, shard in enumerate(store.shards):
        for some in _pieces(shard.records.items(), PART_RECORDS):
            yield Records(number, [task if record is None else _keep(record) for task, record in some])
        for rows in _pieces(shard.log, PART_ROWS):
            yield CommittedRows(number, rows)
        for tasks in _pieces(shard.retired, PART_ROWS):
            yield Retired(number, tasks)
        yield Intents(
            number,
            shard.marks,
            [(key, one.holder, one.others, one.mark) for key, one in shard.outbox.items()],
            sorted(shard.dead),
            [(dead, heir, part, estate) for (dead, heir), (part, estate) in shard.estates.items()],
            shard.closed[:],
            shard.trimmed,
            [*shard.left.items()],
        )
    yield Membership(
        now_ns,
        [*store.infos.values()],
        [*store.orphans],
        sorted(store.buried),
        sorted(store.departed),
        store.members.version,
        store.members.infos,
        store.members_changed,
        [*store.sessions.values()],
        store.session_count,
        store.strategy,
        store.strategy_since,
        [*store.enrolled.items()],
        store.node_count,
    )


def _pieces(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def _keep(record: Record) -> KeptRecord:
    edges: Any = record.edges
    many = edges.__class__ is set
    if many:
        edges = tuple(sorted(edges))
    rare = record.rare
    return KeptRecord(
        record.spec,
        record.state,
        record.owner,
        tuple(record.children),
        edges,
        many,
        tuple(record.inputs),
        record.outputs,
        record.move,
        record.attempt,
        record.freed,
        record.held,
        None if rare is None else _keep_rare(rare),
    )


def _keep_rare(rare: Rare) -> KeptRare:
    kept = {name: getattr(rare, name) for name in _RARE}
    kept["holders"] = sorted(rare.holders)
    return KeptRare(**kept)


# -- into an empty store -----------------------------------------------------------------------------------------------


class Restoring:
    """A state that is being restored: it puts parts into an empty store, one after the other."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.now_ns = 0
        self.count = 0
        self.is_whole = False

    def add(self, part: PartType) -> None:
        if isinstance(part, End):
            self.is_whole = part.parts == self.count
        elif isinstance(part, Membership):
            self._join(part)
        else:
            _add_to(self.store.shards[part.shard], part)
        self.count += 1

    def _join(self, part: Membership) -> None:
        store = self.store
        self.now_ns = part.now_ns
        store.infos = {info.id: info for info in part.infos}
        store.leases = dict.fromkeys(store.infos, NEVER_NS)
        store.orphans = dict.fromkeys(part.orphans)
        store.buried = set(part.buried)
        store.departed = set(part.departed)
        store.members = Members(part.version, part.known, part.strategy)
        store.members_changed = part.changed
        store.sessions = {entry.number: entry for entry in part.sessions}
        store.session_count = part.session_count
        store.strategy = part.strategy
        store.strategy_since = part.strategy_since
        store.enrolled = dict(part.enrolled)
        store.node_count = part.node_count


def _add_to(shard: Shard, part: Records | CommittedRows | Retired | Intents) -> None:
    if isinstance(part, Records):
        records = shard.records
        for one in part.records:
            if one.__class__ is int:
                records[one] = None
            else:
                records[one.spec.id] = _record(one)  # type: ignore[union-attr, arg-type]
    elif isinstance(part, CommittedRows):
        shard.log += part.rows
    elif isinstance(part, Retired):
        shard.retired = deque((*shard.retired, *part.tasks))
    else:
        shard.marks = part.marks
        shard.outbox = {key: HeldIntent(node, others, mark) for key, node, others, mark in part.outbox}
        shard.dead = set(part.dead)
        shard.estates = {(dead, heir): (number, estate) for dead, heir, number, estate in part.estates}
        shard.closed = [*part.closed]
        shard.trimmed = part.trimmed
        shard.left = {node: [*tasks] for node, tasks in part.left}


def _record(kept: KeptRecord) -> Record:
    edges: Any = kept.edges
    return Record(
        kept.spec,
        kept.state,
        kept.owner,
        kept.children if len(kept.children) <= MANY_EDGES else [*kept.children],
        set(edges) if kept.many else edges,
        kept.inputs,
        kept.outputs,
        kept.move,
        kept.attempt,
        kept.freed,
        kept.held,
        None if kept.rare is None else _rare(kept.rare),
    )


def _rare(kept: KeptRare) -> Rare:
    rare = Rare()
    for name in _RARE:
        setattr(rare, name, getattr(kept, name))
    rare.holders = set(kept.holders)
    return rare
