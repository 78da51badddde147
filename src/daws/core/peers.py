"""The beliefs of a node about others, from what it heard and from what it sent them. None of them is certain.

They are kept only under strategies that ask for them. `loads` says how loaded others are, for placements that weigh
loads. `holders`, the index of a central dispatcher, says which nodes have which objects because they were handed tasks
that read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.empty import EMPTY
from daws.model.task import INLINE_BYTES, NodeId, Ready

if TYPE_CHECKING:
    from daws.core.node import NodeCore

LOAD_NEWS_NS = 1_000_000_000
"""Loads that were heard of longer ago are not believed any more."""
LOADS_MAX = 1024
HOLDERS_MAX = 65_536
"""The numbers of loads and of objects that are remembered, the latest ones."""
UNKNOWN = -1


class Peers:
    """The beliefs of a node; None for those that its strategy does not ask for."""

    __slots__ = ("holders", "loads")

    def __init__(self, weighs_loads: bool, keeps_index: bool) -> None:
        self.loads: dict[NodeId, tuple[int, int]] | None = {} if weighs_loads else None  # the load, and when we heard
        self.holders: dict[int, dict[NodeId, None]] | None = {} if keeps_index else None  # by object


NO_PEERS = Peers(False, False)
"""Shared by all nodes whose strategies ask for no beliefs."""


def heard_load(core: NodeCore, node: NodeId, load: int) -> None:
    """A node has said how much waits or runs there (a node that asks for work has nothing)."""
    loads = core.peers.loads
    assert loads is not None
    loads.pop(node, None)
    if len(loads) >= LOADS_MAX:
        del loads[next(iter(loads))]
    loads[node] = (load, core.now_ns)


def sent_task(core: NodeCore, node: NodeId) -> None:
    """A task was sent there: one more than we have heard of."""
    loads = core.peers.loads
    assert loads is not None
    load, since_ns = loads.get(node, (0, core.now_ns))
    if core.now_ns - since_ns > LOAD_NEWS_NS:
        load, since_ns = 0, core.now_ns
    loads[node] = (load + 1, since_ns)
    if len(loads) > LOADS_MAX:
        del loads[next(iter(loads))]


def load_of(core: NodeCore, node: NodeId) -> int:
    """How much waits or runs at a node as far as we know; UNKNOWN if nothing was heard of it lately."""
    if node == core.node:
        return core.queues.shared.count + core.queues.dedicated.count + len(core.executors.running)
    load, since_ns = (core.peers.loads or {}).get(node, (UNKNOWN, 0))
    return load if core.now_ns - since_ns <= LOAD_NEWS_NS else UNKNOWN


def heard_of(core: NodeCore, most: int) -> list[NodeId]:
    """Members of which a load was heard lately, the latest news first."""
    found: list[NodeId] = []
    for node, (_, since_ns) in reversed((core.peers.loads or EMPTY).items()):
        if core.now_ns - since_ns > LOAD_NEWS_NS or len(found) >= most:
            break
        if node in core.members and node not in core.membership.leavers:
            found.append(node)
    return found


def note_handed(core: NodeCore, node: NodeId, ready: Ready) -> None:
    """A task goes to a node, which will have what it reads."""
    holders = core.peers.holders
    assert holders is not None
    for one in ready.inputs:
        if one.size_bytes > INLINE_BYTES:
            nodes = holders.get(one.object)
            if nodes is None:
                if len(holders) >= HOLDERS_MAX:
                    del holders[next(iter(holders))]
                holders[one.object] = {node: None}
            else:
                nodes[node] = None


def cached_bytes(core: NodeCore, node: NodeId, ready: Ready) -> int:
    """How much of what a task reads is at a node, made there or fetched."""
    holders = core.peers.holders
    assert holders is not None
    cached = 0
    for one in ready.inputs:
        if one.size_bytes > INLINE_BYTES and (node in one.places or node in holders.get(one.object, ())):
            cached += one.size_bytes
    return cached


def most_cached_bytes(core: NodeCore, ready: Ready) -> int:
    """How much of it is at the node that has most, of those that can run it."""
    holders = core.peers.holders
    assert holders is not None
    held: dict[NodeId, int] = {}
    for one in ready.inputs:
        if one.size_bytes > INLINE_BYTES:
            for node in dict.fromkeys((*one.places, *holders.get(one.object, ()))):
                held[node] = held.get(node, 0) + one.size_bytes
    able = [size for node, size in held.items() if _can_run(core, node, ready)]
    return max(able, default=0)


def _can_run(core: NodeCore, node: NodeId, ready: Ready) -> bool:
    info = core.members.info(node)
    return info is not None and node not in core.membership.leavers and info.can_run(ready.spec.needs)
