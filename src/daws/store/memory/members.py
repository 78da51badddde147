"""Membership by the store's clock, the first half of rule 4; numbers of nodes, and the strategy that all of them use.

A lease that expired, or was given back, makes its incarnation an orphan. An orphan never becomes a member again. It
stays an orphan until a node has taken over its estate in every shard (see `estates`). Membership lives in shard 0.
"""

from daws.model.task import NodeId
from daws.store.memory.store import MemoryStore, Shard, serves
from daws.wire import store as wire
from daws.wire.store import OK, REFUSED, STRUCK, AnswerType

ENROLLED_MAX = 1000
"""The number of nodes that can ask again for their numbers. One that asks later gets another, which does no harm."""


@serves(wire.Lease)
def lease(store: MemoryStore, shard: Shard, row: wire.Lease, now_ns: int) -> AnswerType:
    store.touched -= 1
    _expire(store, now_ns)
    node = row.node
    if node in store.orphans or node in store.buried:
        if not row.leaving:
            return STRUCK
    elif row.leaving:
        store.departed.add(node)
        strike(store, node)
    elif node in store.infos or row.info is not None:
        if row.info is not None and node not in store.infos:
            store.infos[node] = row.info
            store.members_changed = True
        store.leases.pop(node, None)  # keep the dict ordered by expiry
        store.leases[node] = now_ns + store.lease_ns
    else:
        return STRUCK
    members = store.members_now()
    return wire.Leased(members if members.version != row.version else None, tuple(store.orphans))


@serves(wire.Watch)
def watch(store: MemoryStore, shard: Shard, row: wire.Watch, now_ns: int) -> AnswerType:
    store.touched -= 1
    _expire(store, now_ns)
    members = store.members_now()
    return wire.Leased(members if members.version != row.version else None)


@serves(wire.EnrolNode)
def enrol_node(store: MemoryStore, shard: Shard, row: wire.EnrolNode, now_ns: int) -> AnswerType:
    enrolled = store.enrolled
    node = enrolled.get(row.nonce)
    if node is None:
        node = enrolled[row.nonce] = store.node_count
        store.node_count += 1
        if len(enrolled) > ENROLLED_MAX:
            del enrolled[next(iter(enrolled))]
    return wire.NodeEnrolled(node)


@serves(wire.UseStrategy)
def use_strategy(store: MemoryStore, shard: Shard, row: wire.UseStrategy, now_ns: int) -> AnswerType:
    if row.text == store.strategy:
        return OK
    if row.version < store.strategy_since:
        return REFUSED
    store.strategy = row.text
    store.members_changed = True
    store.strategy_since = store.members_now().version
    return OK


@serves(wire.Buried)
def bury(store: MemoryStore, shard: Shard, row: wire.Buried, now_ns: int) -> AnswerType:
    store.touched -= 1
    if store.orphans.pop(row.dead, 0) is None:
        store.buried.add(row.dead)
    for other in store.shards:
        other.estates.pop((row.dead, row.node), None)  # this heir has received all its answers
    return OK


def _expire(store: MemoryStore, now_ns: int) -> None:
    while store.leases:
        node = next(iter(store.leases))
        if store.leases[node] > now_ns:
            return
        strike(store, node)


def strike(store: MemoryStore, node: NodeId) -> None:
    store.leases.pop(node, None)
    store.infos.pop(node, None)
    store.orphans[node] = None
    store.members_changed = True
