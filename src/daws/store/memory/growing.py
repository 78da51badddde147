"""Graphs that grow (rule 7) and tasks that wait for others while they run (rule 8).

The spawner's record lists a task before it exists, so that the end of the attempt can stop it. A parent that is done
already says so to a child that registers late. A suspended task keeps its owner. It has an edge to itself until all
tasks that it waits for know of it.
"""

from daws.model.session import FIRST_BROUGHT_ID
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import READY, SUSPENDED, WAITING
from daws.model.task import AGAIN, Input
from daws.store.memory.closed import is_closed
from daws.store.memory.record import (
    FINAL_CODE,
    MANY_EDGES,
    STILLBORN,
    Record,
    add_child,
    has_child,
    is_unclaimed,
    read_by,
    ready_of,
)
from daws.store.memory.store import MemoryStore, Shard, is_over, serves
from daws.wire import store as wire
from daws.wire.store import CANCELLED, DONE, OK, REFUSED, STRUCK, UNKNOWN, AnswerType


@serves(wire.Submit)
def submit(store: MemoryStore, shard: Shard, row: wire.Submit, now_ns: int) -> AnswerType:
    spec, parents = row.spec, row.parents
    task = spec.id
    records = shard.records
    if task in records:
        return _submitted_before(records[task], row)
    if shard.dead and row.node in shard.dead:
        return STRUCK
    if shard.closed and is_closed(shard.closed, task):
        return CANCELLED
    if not parents:
        state = STATE_DONE if row.outputs else READY
        records[task] = Record(spec, state, row.node, made=row.outputs, held=True)
        return OK if task >= FIRST_BROUGHT_ID else None
    known: list[Input] = []
    left: list[int] = []
    ended: Record | None = None
    for parent in parents:
        above = records.get(parent)
        if above is None:
            return REFUSED if is_over(shard, parent) else UNKNOWN
        if above.rare is None and (above.state == WAITING or above.state == READY):  # mostly
            left.append(parent)
            continue
        remade = above.rare if above.rare is not None and above.rare.remaking else None
        if above.state == STATE_DONE or (remade and is_unclaimed(above)):
            known += above.outputs  # a node that finds no place for them asks for a remake
        elif above.state == STATE_FAILED or above.state == STATE_CANCELLED:
            ended = above
        else:
            left.append(parent)
            if remade and (task, 0) not in remade.waiters:
                remade.waiters += ((task, 0),)  # its other children were told the first time
    record = Record(spec, WAITING, -1, (), None, read_by(spec, known) if known else (), held=True)
    records[task] = record
    if ended is not None:  # children of failed and cancelled tasks are born so
        record.state = ended.state
        error = ended.rare.error if ended.rare is not None else ""
        rare = record.more()
        rare.error, rare.cause = error, ended.spec.id
        shard.log.append(wire.LoggedEnd(task, ended.state, error, ()))
        return None
    for parent in parents if len(parents) == 1 else dict.fromkeys(parents):
        above = records[parent]
        assert above is not None
        if above.children:
            add_child(above, task)
        else:
            above.children = (task,)
        above.freed = False
    if left:
        record.edges = set(left) if len(left) > MANY_EDGES else tuple(left)
        return None
    record.state = READY
    record.owner = row.node
    record.move = 1
    return ready_of(record)


def _submitted_before(known: Record | None, row: wire.Submit) -> AnswerType:
    """The answer to a repeated Submit whose first answer got lost."""
    if known is None:
        return DONE
    if known.spec != row.spec:
        return CANCELLED if known.spec.kind == STILLBORN else REFUSED
    if row.parents and known.state == READY and known.owner == row.node and known.edges is None:
        return ready_of(known, AGAIN)
    return OK if row.spec.id >= FIRST_BROUGHT_ID else None


@serves(wire.Register)
def register(store: MemoryStore, shard: Shard, row: wire.Register, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return REFUSED if is_over(shard, row.task) else UNKNOWN
    if record.state in (STATE_FAILED, STATE_CANCELLED):
        return FINAL_CODE[record.state]
    rare = record.rare
    remaking = rare is not None and rare.remaking
    if row.watches:
        if record.state == STATE_DONE or remaking:
            return wire.Available(record.outputs)  # it has ended; that its objects are made anew is no second end
        if row.child not in record.more().watchers:
            record.more().watchers += (row.child,)
        return OK
    if not has_child(record, row.child):
        add_child(record, row.child)
    if record.state == STATE_DONE or (remaking and is_unclaimed(record)):
        return wire.Available(record.outputs)  # perhaps without a place: then the child asks for a remake itself
    if rare is not None and remaking and (row.child, 0) not in rare.waiters:
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
        rare.need = 0  # these edges have nothing to do with objects that it had lost before it ran
        return OK
    return OK if record.state == SUSPENDED else FINAL_CODE.get(record.state, REFUSED)
