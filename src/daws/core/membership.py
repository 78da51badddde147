"""Membership: this node's lease, members that are about to leave, and the dead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from daws.core.empty import NO_COPIES
from daws.model.task import NodeId

if TYPE_CHECKING:
    from daws.core.node import NodeCore

NO_VERSION = -1
"""No version of the members: in a Watch whose answer has the members in any case, or where none was looked at."""


class NodeMembership(Struct, gc=False):
    """The lease of this node, and what it knows of members that leave or have died."""

    leased_until_ns: int = 0  # nothing is started from then on
    lease_count: int = 0  # renewals that were answered
    leavers: set[NodeId] = NO_COPIES  # members that are about to leave
    orphans: dict[NodeId, int] | None = None  # the dead, and when this node heard of it
    burying: dict[NodeId, int] | None = None  # those whose tasks it takes over: shards that are left
    forgotten: dict[NodeId, int] | None = None  # owners that are no members, and when it came across them

    def lease(self, until_ns: int) -> None:
        """Tasks may be started until then."""
        self.leased_until_ns = until_ns

    def count_renewal(self) -> None:
        self.lease_count += 1

    def hear_of_orphans(self, dead: tuple[NodeId, ...], core: NodeCore) -> None:
        """Note the nodes that have died, as the store says. Nodes that the store has forgotten count as dead when they
        have not joined again for the time of a lease."""
        seen, now_ns = self.orphans or {}, core.now_ns
        orphans = {node: seen.get(node, now_ns) for node in dead}
        if self.forgotten:
            self.forgotten = {node: since for node, since in self.forgotten.items() if node not in core.members}
            orphans.update((node, at) for node, at in self.forgotten.items() if now_ns - at > core.config.lease_ns)
        self.orphans = orphans or None

    def is_burying(self, dead: NodeId) -> bool:
        """Is this node taken over by us, or was it? (A late answer may still name it.)"""
        return self.burying is not None and dead in self.burying

    def bury(self, dead: NodeId, shard_count: int) -> None:
        """Begin to take over from a dead node."""
        if self.burying is None:
            self.burying = {}
        self.burying[dead] = shard_count

    def end_shard(self, dead: NodeId) -> bool:
        """One shard was taken over. True if it was the last."""
        assert self.burying is not None
        self.burying[dead] -= 1
        return not self.burying[dead]

    def end_burial(self, dead: NodeId) -> None:
        """The store knows that this node was taken over."""
        for nodes in (self.orphans, self.forgotten):
            if nodes is not None:
                nodes.pop(dead, None)


def note_leaver(core: NodeCore, node: NodeId) -> None:
    """A member is about to leave: nothing is offered to it any more, though its objects may still be fetched."""
    if node in core.members:
        membership = core.membership
        if membership.leavers is NO_COPIES:
            membership.leavers = set()
        membership.leavers.add(node)


def forget_leavers(core: NodeCore) -> None:
    """The members have changed: a node that is none of them any more has left."""
    core.membership.leavers = {node for node in core.membership.leavers if node in core.members} or NO_COPIES


def look_at_owner(core: NodeCore, owner: NodeId) -> None:
    """A store that forgets may not know any more that a node has joined, which owns something in another shard. If it
    has died since, nobody is told to take over from it; so a node that comes across it remembers it."""
    if owner < 0 or owner in core.members:
        return
    membership = core.membership
    if membership.forgotten is None:
        membership.forgotten = {}
    membership.forgotten.setdefault(owner, core.now_ns)
