"""The content of a shard on the server: one cell for each task, and a few for the shard's knowledge of nodes.

A cell of a task holds its record together with its intents of the outbox, so that an update of either is an update of
one cell. It begins with a stamp that no other commit has: the same stamp always means the same bytes behind it, even
after the server went back in time. Behind the stamp, in fixed width, stand the nodes that would leave this cell behind
if they died. A script finds them there without understanding the rest. A retired task leaves its stamp alone.

Equal states are equal bytes (sets are written in order), so a cell was changed if its bytes were.
"""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct as Packer
from struct import unpack_from
from typing import Any

import msgspec
from msgspec import Struct

from daws.model.cluster import NodeInfo
from daws.model.states import READY, SUSPENDED
from daws.model.task import Input, NodeId, TaskSpec
from daws.store.memory.record import MANY_EDGES, Rare, Record
from daws.store.memory.store import HeldIntent
from daws.wire.store import Estate, LogRow, SessionEntry

STAMP_BYTES = 8
ABSENT = b""
"""The value of a cell that does not exist."""
DEAD, ESTATES, MEMBERS, LEASES = b"dead", b"estates", b"members", b"leases"
SESSIONS, SESSION_LEASES, ENROLLED = b"sessions", b"session-leases", b"enrolled"
"""The cells that belong to no task; those of tasks have their number as a name."""

Intents = dict[int, HeldIntent]
"""The intents of a task, by verb."""

_COUNTS = Packer("3B")
_NODE = Packer(">q")
_NOBODY = bytes(3)


class _RareSheet(Struct, array_like=True, gc=False):
    announced: bool
    error: str
    history: list[tuple[int, int, int]]
    holders: tuple[int, ...]
    losses: int
    need: int
    remaking: bool
    replicas: tuple[int, ...]
    spawned: dict[int, tuple[int, ...]]
    suspended_on: tuple[int, ...]
    waiters: tuple[tuple[int, int], ...]
    watchers: tuple[int, ...]
    failure: bytes = b""
    cause: int = -1
    lost: tuple[Input, ...] = ()


class _Sheet(Struct, array_like=True, gc=False):
    """A record as it is written: its fields in order. If there is more, whether its edges are a set (`many`) and its
    intents follow."""

    spec: TaskSpec
    state: int
    owner: int
    children: Sequence[int]
    edges: tuple[int, ...] | int | None
    inputs: tuple[Input, ...]
    outputs: tuple[Input, ...]
    move: int
    attempt: int
    freed: bool
    held: bool
    rare: _RareSheet | None
    many: bool = False
    intents: Sequence[tuple[int, int, tuple[int | tuple[int, int], ...] | None, int]] = ()


class MembersSheet(Struct, array_like=True):
    """The membership in shard 0, without leases, which change much more often. `changed`: a node came or went since
    this version was given out."""

    version: int = 0
    changed: bool = False
    infos: tuple[NodeInfo, ...] = ()
    orphans: tuple[int, ...] = ()
    buried: tuple[int, ...] = ()
    departed: tuple[int, ...] = ()
    strategy: str = ""
    strategy_since: int = 0


class EnrolledSheet(Struct, array_like=True):
    """The numbers of nodes in shard 0: how many were given, and to which nonces the last ones."""

    count: int = 0
    enrolled: tuple[tuple[bytes, int], ...] = ()


class SessionsSheet(Struct, array_like=True):
    """The sessions in shard 0, without their leases."""

    count: int = 0
    sessions: tuple[SessionEntry, ...] = ()


LeasesSheet = tuple[tuple[int, int], ...]
"""Nodes and the ends of their leases, first expiry first; the same for sessions, in any order."""
DeadSheet = tuple[int, ...]
"""Dead nodes, and before them, below zero (`closed_word`), the ranges of what sessions cannot get any more: every
update looks at both."""
EstatesSheet = tuple[tuple[int, int, int, Estate], ...]
"""Dead node, heir, part, and the answer."""

encode = msgspec.msgpack.Encoder().encode
_decode_sheet = msgspec.msgpack.Decoder(_Sheet).decode
decode_log_row = msgspec.msgpack.Decoder(LogRow).decode
decode_dead = msgspec.msgpack.Decoder(DeadSheet).decode
decode_enrolled = msgspec.msgpack.Decoder(EnrolledSheet).decode
decode_sessions = msgspec.msgpack.Decoder(SessionsSheet).decode
decode_members = msgspec.msgpack.Decoder(MembersSheet).decode
decode_leases = msgspec.msgpack.Decoder(LeasesSheet).decode
decode_estates = msgspec.msgpack.Decoder(EstatesSheet).decode


def closed_word(end: int) -> int:
    """The end of a range of what is closed, among the dead; the same function leads back."""
    return -1 - end


def node_bytes(node: NodeId) -> bytes:
    """A node as it stands at the head of a cell."""
    return _NODE.pack(node)


def node_of(head: bytes) -> NodeId:
    node: NodeId = _NODE.unpack(head)[0]
    return node


def is_plain(record: Record) -> bool:
    """Whether no field of the record can be changed in place, so that a copy of it is independent."""
    return (
        record.rare is None
        and record.edges.__class__ is not set
        and record.children.__class__ is tuple
        and record.inputs.__class__ is tuple
    )


def pack(record: Record | None, intents: Intents | None, stamp: bytes = b"") -> bytes:
    """The bytes of a task's cell, behind its stamp."""
    if record is None:
        return stamp
    edges: Any = record.edges
    rare = record.rare
    is_left = record.state == READY or record.state == SUSPENDED
    if rare is None and not intents and edges.__class__ is not set:  # mostly; and it is five times as fast
        return stamp + (_head_of(record.owner) if is_left else _NOBODY) + encode(record)
    many = edges.__class__ is set
    owner = (record.owner,) if is_left else ()
    replicas = rare.replicas if rare is not None else ()
    written = [(verb, one.holder, one.others, one.mark) for verb, one in sorted(intents.items())] if intents else ()
    sheet = _Sheet(
        record.spec,
        record.state,
        record.owner,
        record.children,
        tuple(sorted(edges)) if many else edges,
        record.inputs,
        record.outputs,
        record.move,
        record.attempt,
        record.freed,
        record.held,
        None if rare is None else _rare_sheet(rare),
        many,
        written,
    )
    holders = [one[1] for one in written]
    head = _COUNTS.pack(len(owner), len(replicas), len(holders))
    return b"".join((stamp, head, *map(_NODE.pack, (*owner, *replicas, *holders)), encode(sheet)))


@lru_cache(maxsize=1024)
def _head_of(owner: NodeId) -> bytes:
    """The head of a cell that one node would leave behind."""
    return _COUNTS.pack(1, 0, 0) + _NODE.pack(owner)


def unpack(cell: bytes) -> tuple[Record | None, Intents]:
    """The record and intents in a cell that exists; the record is None if its task has retired."""
    if len(cell) == STAMP_BYTES:
        return None, {}
    sheet = _decode_sheet(memoryview(cell)[_body(cell) :])
    record = Record(
        sheet.spec,
        sheet.state,
        sheet.owner,
        sheet.children if len(sheet.children) > MANY_EDGES else tuple(sheet.children),
        set(sheet.edges) if sheet.many else sheet.edges,  # type: ignore[arg-type]
        sheet.inputs,
        sheet.outputs,
        sheet.move,
        sheet.attempt,
        sheet.freed,
        sheet.held,
        None if sheet.rare is None else _rare(sheet.rare),
    )
    return record, {verb: HeldIntent(holder, whom, mark) for verb, holder, whom, mark in sheet.intents}


def is_left_by(cell: bytes, node: NodeId) -> tuple[bool, bool, bool]:
    """Does a node own this task while it is ready or suspended, run a copy of it, hold one of its intents?"""
    if len(cell) <= STAMP_BYTES:
        return False, False, False
    owners, replicas, holders = _COUNTS.unpack_from(cell, STAMP_BYTES)
    nodes = unpack_from(f">{owners + replicas + holders}q", cell, STAMP_BYTES + 3)
    return node in nodes[:owners], node in nodes[owners : owners + replicas], node in nodes[owners + replicas :]


def _body(cell: bytes) -> int:
    return STAMP_BYTES + 3 + 8 * (cell[STAMP_BYTES] + cell[STAMP_BYTES + 1] + cell[STAMP_BYTES + 2])


def _rare_sheet(rare: Rare) -> _RareSheet:
    return _RareSheet(
        rare.announced,
        rare.error,
        rare.history,
        tuple(sorted(rare.holders)),
        rare.losses,
        rare.need,
        rare.remaking,
        rare.replicas,
        rare.spawned,
        rare.suspended_on,
        rare.waiters,
        rare.watchers,
        rare.failure,
        rare.cause,
        rare.lost,
    )


def _rare(sheet: _RareSheet) -> Rare:
    rare = Rare()
    for name in sheet.__struct_fields__:
        setattr(rare, name, getattr(sheet, name))
    rare.holders = set(sheet.holders)
    return rare
