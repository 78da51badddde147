"""Tasks that change hands, are tried again, or run twice.

Rule 2, moving is claiming: a claim compares owner and move number and counts the move, so of two claims one is refused.
For rule 3 a copy is listed by name, and a new attempt invalidates all runs of earlier attempts; tasks that those had
spawned are to be stopped (rule 7).
"""

from daws.model.states import READY, SUSPENDED
from daws.model.task import AGAIN, REPLICA, NodeId
from daws.store.memory.outbox import intend
from daws.store.memory.record import FINAL_CODE, Record, all_spawned, ready_of
from daws.store.memory.stopping import stop_spawned
from daws.store.memory.store import MemoryStore, Shard, is_over, serves
from daws.wire import store as wire
from daws.wire.store import (
    ANNOUNCE,
    DONE,
    REFUSED,
    REPLICATE,
    RETRY,
    STOP,
    STRUCK,
    UNKNOWN,
    AnswerType,
    Granted,
    outbox_key,
)


@serves(wire.Claim)
def claim(store: MemoryStore, shard: Shard, row: wire.Claim, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return DONE if is_over(shard, row.task) else UNKNOWN
    if record.state != READY and not (record.state == SUSPENDED and row.why == RETRY):
        return FINAL_CODE.get(record.state, REFUSED)
    if row.node in shard.dead:
        return STRUCK
    if row.why == REPLICATE:
        return _replicate(store, record, row)
    again = 0
    if record.owner == row.owner and record.move == row.move:
        record.owner = row.node
        record.move += 1
        record.edges = ~row.why  # below all marks of other calls
        if record.rare is not None:
            record.rare.announced = False
        if row.why == ANNOUNCE:
            record.more().announced = True
        elif row.why == RETRY:
            record.state = READY
            new_attempt(shard, record, row.node)
    elif record.owner != row.node or record.move != row.move + 1 or record.edges != ~row.why:
        return REFUSED
    else:
        again = AGAIN
    mode = ready_of(record).mode if record.rare is not None else 0
    stop = stop_spawned(shard, record, row.node) if row.why == RETRY else None
    return Granted(record.move, record.attempt, mode | again, stop)


def _replicate(store: MemoryStore, record: Record, row: wire.Claim) -> AnswerType:
    if row.node == record.owner or record.owner != row.owner:
        return REFUSED
    replicas = record.rare.replicas if record.rare is not None else ()
    if row.node in replicas:
        return Granted(record.move, record.attempt, REPLICA | AGAIN)
    if len(replicas) >= store.replicas_max:
        return REFUSED
    record.more().replicas = (*replicas, row.node)
    return Granted(record.move, record.attempt, REPLICA)


def new_attempt(shard: Shard, record: Record, node: NodeId) -> None:
    """Begin a new attempt: earlier runs can no longer commit, and tasks that they spawned are to be cancelled."""
    record.attempt += 1
    rare = record.rare
    if rare is None:
        return
    rare.replicas = ()
    rare.announced = False
    rare.suspended_on = ()
    if rare.spawned:
        intend(shard, outbox_key(record.spec.id, STOP), node, all_spawned(rare))
