"""The tasks that a leaving node still has. It gives them away before it leaves (see `daws.core.leaving`).

Nothing changes here. The node knows the tasks that it runs. It has to find ready tasks that it owns but never heard of,
because a client has not handed them over yet. After a failover, nodes that stay ask as well: also for intents, and for
nodes that own something but are not in the list of members any more.
"""

from daws.model.states import READY, SUSPENDED
from daws.model.task import AGAIN, Ready
from daws.store.memory.estates import entry_of
from daws.store.memory.record import ready_of
from daws.store.memory.store import MemoryStore, Shard, serves
from daws.wire import store as wire
from daws.wire.store import STRUCK, AnswerType


@serves(wire.Owned)
def owned(store: MemoryStore, shard: Shard, row: wire.Owned, now_ns: int) -> AnswerType:
    if row.node in shard.dead:
        return STRUCK
    ready: list[Ready] = []
    for record in shard.records.values():
        if record is not None and record.owner == row.node and record.state == READY:
            if len(ready) >= row.limit:
                return wire.Estate(tuple(ready), (), True)
            ready.append(ready_of(record, AGAIN))
    keys = [key for key, intent in shard.outbox.items() if intent.holder == row.node] if row.intents else ()
    store.touched += len(ready) + len(keys) - 1
    return wire.Estate(tuple(ready), tuple([entry_of(shard, key) for key in keys]))


@serves(wire.Owners)
def owners(store: MemoryStore, shard: Shard, row: wire.Owners, now_ns: int) -> AnswerType:
    found = {intent.holder for intent in shard.outbox.values()}
    for record in shard.records.values():
        if record is not None and record.state in (READY, SUSPENDED):
            found.add(record.owner)
        if record is not None and record.rare is not None:
            found.update(record.rare.replicas)
    store.touched -= 1
    return wire.OwnedBy(tuple(sorted(found)))
