"""Graphs that grow (rule 7) and tasks that wait for others while they run (rule 8).

The spawner's record lists a task before it exists, so that the end of the attempt can stop it; a parent that is done
already says so to a child that registers late. A suspended task keeps its owner, and has an edge to itself until all
that it waits for know of it.
"""

from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import READY, SUSPENDED
from daws.store.memory.record import FINAL_CODE, MANY_EDGES
from daws.store.memory.store import MemoryStore, Shard, serves
from daws.wire import store as wire
from daws.wire.store import OK, REFUSED, UNKNOWN, AnswerType


@serves(wire.Register)
def register(store: MemoryStore, shard: Shard, row: wire.Register, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return REFUSED if row.task in shard.records else UNKNOWN
    if record.state in (STATE_FAILED, STATE_CANCELLED):
        return FINAL_CODE[record.state]
    if row.watches:
        if record.state != STATE_DONE and row.child not in record.more().watchers:
            record.more().watchers += (row.child,)
    elif row.child not in record.children:
        record.children += (row.child,)
    if record.state == STATE_DONE:
        return wire.Available(record.outputs)
    rare = record.rare
    if rare is not None and rare.remaking and not row.watches and (row.child, 0) not in rare.waiters:
        rare.waiters += ((row.child, 0),)
    return OK


@serves(wire.Spawn)
def spawn(store: MemoryStore, shard: Shard, row: wire.Spawn, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return REFUSED
    if record.state not in (READY, SUSPENDED) or record.owner != row.node or record.attempt != row.attempt:
        return FINAL_CODE.get(record.state, REFUSED)
    spawned = record.more().spawned
    known = spawned.get(row.attempt, ())
    spawned[row.attempt] = (*known, *(task for task in row.tasks if task not in known))
    return OK


@serves(wire.Suspend)
def suspend(store: MemoryStore, shard: Shard, row: wire.Suspend, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None or record.owner != row.node or record.attempt != row.attempt:
        return REFUSED
    if record.state == READY:
        rare = record.more()
        if rare.suspended_on and all(parent in rare.suspended_on for parent in row.parents):
            return OK  # asked late: it has waited for all of these before, and they have ended
        edges = (*row.parents, row.task)
        record.state = SUSPENDED
        record.edges = set(edges) if len(edges) > MANY_EDGES else edges
        rare.suspended_on = tuple(dict.fromkeys((*rare.suspended_on, *edges)))
        rare.need = 0  # whatever it had lost before it ran, these are other edges
        return OK
    return OK if record.state == SUSPENDED else FINAL_CODE.get(record.state, REFUSED)
