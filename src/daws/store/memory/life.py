"""A task's life: it is created, loses its edges, becomes ready, and one of its runs is committed.

Rule 1, readiness is told: the update that commits a run also writes the children into the shard's outbox, or satisfies
those that live in the same shard. The node that removes a child's last edge owns the child. Rule 3, commit by run: only
the owner's run or a listed copy of the current attempt commits, and the first that does wins.
"""

from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import READY, SUSPENDED, WAITING
from daws.model.task import AGAIN, INLINE_BYTES, Input, NodeId, Ready
from daws.store.memory.closed import is_closed
from daws.store.memory.outbox import intend, unzip
from daws.store.memory.record import (
    FINAL_CODE,
    MANY_EDGES,
    STILLBORN,
    Record,
    add_inputs,
    all_spawned,
    audience,
    is_held,
    read_by,
    ready_of,
)
from daws.store.memory.references import retire
from daws.store.memory.stopping import fail, failed_remake_answer, stop_answer, stop_spawned
from daws.store.memory.store import HeldIntent, MemoryStore, Others, Shard, is_over, serves
from daws.wire import store as wire
from daws.wire.store import (
    CANCELLED,
    DONE,
    OK,
    REFUSED,
    SATISFY,
    STOP,
    STRUCK,
    UNKNOWN,
    AnswerType,
    Committed,
    outbox_key,
)

_NOTHING_TO_TELL = Committed(-1)
_ONLY_HELD = Committed(-1, held=True)


@serves(wire.Create)
def create(store: MemoryStore, shard: Shard, row: wire.Create, now_ns: int) -> AnswerType:
    spec = row.spec
    task = spec.id
    records = shard.records
    if task in records:
        known = records[task]
        if known is None:
            return DONE
        if known.spec == spec:
            return OK
        return CANCELLED if known.spec.kind == STILLBORN else REFUSED
    if shard.dead and row.owner in shard.dead:
        return STRUCK
    if shard.closed and is_closed(shard.closed, task):
        return CANCELLED
    edges = row.parents
    if row.guarded:
        edges = (*edges, task)
    if edges:
        left = set(edges) if len(edges) > MANY_EDGES else edges
        records[task] = record = Record(spec, WAITING, -1, row.children, left, row.inputs)
    else:
        records[task] = record = Record(spec, READY, row.owner, row.children, None, row.inputs)
    if row.held:
        record.held = True
    return OK


@serves(wire.FinishSmall)
def finish_small(store: MemoryStore, shard: Shard, row: wire.FinishSmall, now_ns: int) -> AnswerType:
    return finish(store, shard, row.in_full(), now_ns)


@serves(wire.Finish)
def finish(store: MemoryStore, shard: Shard, row: wire.Finish, now_ns: int) -> AnswerType:
    task = row.task
    record = shard.records.get(task)
    if record is None:
        return DONE if is_over(shard, task) else UNKNOWN
    rare = record.rare
    if (  # by far the most common case
        rare is None
        and record.state == READY
        and record.owner == row.node
        and record.attempt == row.attempt
        and not row.error
    ):
        shard.log.append(task)
        record.state = STATE_DONE
        outputs = record.outputs = row.outputs
        if not record.children:
            if not record.inputs and (not outputs or (len(outputs) == 1 and outputs[0].size_bytes <= INLINE_BYTES)):
                if not record.held:
                    record.freed = bool(outputs)
                    if store.retired_max:
                        retire(store, record)
                return None  # nothing is kept for it to read, and its own output is in its record
            if record.held:
                return _ONLY_HELD
            record.freed = True
            if store.retired_max:
                retire(store, record)
            return _NOTHING_TO_TELL
        if store.direct:
            if len(record.children) == 1:
                return _tell_only(store, shard, record, row)
            return _tell_here(store, shard, record, row)
        key = row.task << 2 | SATISFY
        shard.marks = mark = shard.marks + 1
        shard.outbox[key] = HeldIntent(row.node, None, mark)
        return Committed(key, tuple(record.children), mark=mark, held=record.held)
    mine = record.owner == row.node or (rare is not None and row.node in rare.replicas)
    if not mine or record.attempt != row.attempt:
        return _told_before(store, shard, record, row.node) or FINAL_CODE.get(record.state, REFUSED)
    if record.state != READY and record.state != SUSPENDED:
        return _finished_before(store, shard, record, row)
    rivals: tuple[NodeId, ...] = ()
    if rare is not None and rare.replicas:
        rivals = tuple(node for node in (record.owner, *rare.replicas) if node != row.node)
        rare.replicas = rivals  # for repeated calls
    record.owner = row.node
    if row.error:
        return fail(shard, record, row.error, row.node, rivals, row.failure)
    if rare is not None and rare.remaking:
        rare.remaking = False
        told: Others = rare.waiters  # only the tasks that asked; all others were told the first time
        if rare.spawned:
            # Tasks that the committed attempt spawned live on. This attempt only made the lost objects, so its own are
            # stopped.
            intend(shard, outbox_key(row.task, STOP), row.node, all_spawned(rare))
            rare.spawned = {}
    else:
        spawned: tuple[int, ...] = ()
        if rare is not None and rare.spawned:
            spawned = rare.spawned.get(record.attempt, ())
            rare.spawned = {}  # they are independent now, whatever happens to their spawner's objects
        shard.log.append(wire.LoggedEnd(row.task, STATE_DONE, "", spawned) if spawned else row.task)
        told = None
        if rare is not None and rare.waiters:  # a store that had lost the commit was asked to remake it
            told = (*((one, 0) for one in audience(record)), *rare.waiters)
            rare.waiters = ()
    record.state = STATE_DONE
    record.outputs = row.outputs
    if told or audience(record):
        record.freed = False
        intend(shard, outbox_key(row.task, SATISFY), row.node, told)
    else:
        held = is_held(record)
        record.freed = not held  # no task reads its outputs
        if store.retired_max and not held:
            retire(store, record)
        if not rivals and outbox_key(row.task, STOP) not in shard.outbox:
            return _ONLY_HELD if held else _NOTHING_TO_TELL
    return _commit_answer(store, shard, record, rivals)


def _tell_only(store: MemoryStore, shard: Shard, record: Record, row: wire.Finish) -> Committed:
    """`_tell_here` for a task with one child, which is the most common number."""
    children = tuple(record.children)
    child = shard.records.get(children[0])
    if child is None or child.state != WAITING or child.rare is not None:
        return _tell_here(store, shard, record, row)
    store.touched += 1
    edges = child.edges
    task = row.task
    if edges.__class__ is set:
        edges.discard(task)
        add_inputs(child, row.outputs)  # a child of so many mostly reads of each: filtered at the end
        if not edges:
            child.inputs = read_by(child.spec, child.inputs)
    else:
        outputs = row.outputs
        child.edges = edges = () if edges == (task,) else tuple([edge for edge in edges if edge != task])  # type: ignore[union-attr]
        if len(outputs) == 1 and outputs[0].object in child.spec.inputs:
            child.inputs += outputs
        else:
            child.inputs += read_by(child.spec, outputs)
    if edges:
        return Committed(-1, (), (), children, 0, (), (), record.held)
    return Committed(-1, (), (), children, 0, (), (_now_ready(child, task, row.node),), record.held)


def _now_ready(record: Record, mark: int, node: NodeId) -> Ready:
    """The ready task after its last edge was removed. It belongs to the node that removed it."""
    record.state = READY
    record.owner = node
    record.move = move = record.move + 1
    record.edges = mark
    return Ready(record.spec, record.attempt, move, record.inputs)


def _tell_here(store: MemoryStore, shard: Shard, record: Record, row: wire.Finish) -> Committed:
    """Satisfy the children that live in this shard in the same update; only the others need an outbox entry."""
    task, node = row.task, row.node
    records = shard.records
    outputs, children = row.outputs, tuple(record.children)
    object_ = outputs[0].object if len(outputs) == 1 else -1
    only = (task,)
    ready: list[Ready] = []
    left: list[tuple[int, int]] = []
    for number in children:
        child = records.get(number)
        if child is None or child.state != WAITING or child.rare is not None:
            left.append((number, 0))
            continue
        if child.edges != only:
            edges = child.edges
            if edges.__class__ is tuple:
                child.edges = edges = tuple([edge for edge in edges if edge != task])
                child.inputs += outputs if object_ in child.spec.inputs else read_by(child.spec, outputs)
            else:
                _take_of_many(child, edges, task, outputs)  # type: ignore[arg-type]
            if edges:
                continue
        elif object_ not in child.spec.inputs:
            if outputs:
                child.inputs += read_by(child.spec, outputs)
        else:
            child.inputs += outputs
        child.state = READY
        child.owner = node
        child.move = move = child.move + 1
        child.edges = task
        ready.append(Ready(child.spec, child.attempt, move, child.inputs))
    store.touched += len(children) - len(left)
    if not left:
        return Committed(-1, (), (), children, 0, (), tuple(ready), record.held)
    key = task << 2 | SATISFY
    shard.marks = mark = shard.marks + 1
    shard.outbox[key] = HeldIntent(node, tuple(left), mark)
    children, needs = unzip(tuple(left))
    return Committed(key, children, (), tuple(record.children), mark, needs, tuple(ready), record.held)


def _take_of_many(record: Record, edges: set[int], parent: int, inputs: tuple[Input, ...]) -> None:
    """Remove one of many edges. A task with so many parents mostly reads something of each, so its inputs are filtered
    when the last edge is gone."""
    edges.discard(parent)
    add_inputs(record, inputs)
    if not edges:
        record.inputs = read_by(record.spec, record.inputs)


def _told_here(shard: Shard, record: Record, node: NodeId) -> tuple[Ready, ...]:
    """Children that became ready when this node committed the task, and have not moved since."""
    task = record.spec.id
    found = []
    for number in record.children:
        child = shard.records.get(number)
        if child is not None and child.state == READY and child.owner == node and child.edges == task:
            found.append(ready_of(child, AGAIN))
    return tuple(found)


def _told_before(store: MemoryStore, shard: Shard, record: Record, node: NodeId) -> wire.Estate | None:
    """The children that a node owns since it committed the task, if its run does not count any more because the objects
    were made again elsewhere. The node may not have received the first answer, and does not know of them."""
    ready = _told_here(shard, record, node) if store.direct and node not in shard.dead else ()
    return wire.Estate(ready) if ready else None


def _finished_before(store: MemoryStore, shard: Shard, record: Record, row: wire.Finish) -> AnswerType:
    """The answer to a run that ends again. If it was the committed run, its caller has not received the first
    answer."""
    if row.node in shard.dead:
        return STRUCK
    if record.owner == row.node:
        rivals = record.rare.replicas if record.rare is not None else ()
        if row.error and outbox_key(row.task, STOP) in shard.outbox:
            if record.state == STATE_FAILED:
                return stop_answer(shard, record, rivals)
            if record.state == STATE_DONE:
                return failed_remake_answer(shard, record, rivals)
        elif not row.error and record.state == STATE_DONE:
            return _commit_answer(store, shard, record, rivals)
    return FINAL_CODE.get(record.state, REFUSED)


def _commit_answer(store: MemoryStore, shard: Shard, record: Record, rivals: tuple[NodeId, ...]) -> Committed:
    key = outbox_key(record.spec.id, SATISFY)
    held = is_held(record)
    entry = shard.outbox.get(key)
    ready = _told_here(shard, record, record.owner) if store.direct else ()
    stop = stop_spawned(shard, record, record.owner)
    if entry is None:
        return Committed(-1, (), rivals, tuple(record.children), ready=ready, held=held, stop=stop)
    if entry.others is None:
        return Committed(key, audience(record), rivals, mark=entry.mark, held=held, stop=stop)
    told, needs = unzip(entry.others)
    return Committed(key, told, rivals, tuple(record.children), entry.mark, needs, ready, held, stop)


@serves(wire.Satisfy)
def satisfy(store: MemoryStore, shard: Shard, row: wire.Satisfy, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return DONE if store.has_retired(shard, row.task) else UNKNOWN
    state = record.state
    if state == WAITING or state == SUSPENDED:  # noqa: SIM109 (half the time)
        edges = record.edges
        if isinstance(edges, tuple):
            if row.parent not in edges or (record.rare is not None and record.rare.need != row.need):
                return OK
            edges = tuple(edge for edge in edges if edge != row.parent)
            record.edges = edges
            if state == WAITING and row.inputs:
                record.inputs += read_by(record.spec, row.inputs)
        else:
            assert isinstance(edges, set)
            if row.parent not in edges or (record.rare is not None and record.rare.need != row.need):
                return OK
            _take_of_many(record, edges, row.parent, row.inputs if state == WAITING else ())
        if edges:
            return OK
        if state == SUSPENDED:
            record.state = READY
            record.edges = None
            return wire.Resume(record.owner)
        if row.node in shard.dead:
            # The last edge is gone, but the caller may own nothing: put it back. Another node will carry out the
            # outbox.
            record.edges = (row.parent,)
            record.inputs = tuple(one for one in record.inputs if one.producer != row.parent)
            return STRUCK
        record.state = READY
        record.owner = row.node
        record.move += 1
        record.edges = row.parent
        return ready_of(record)
    if state == READY:
        if record.owner == row.node and record.edges == row.parent and record.edges is not None:
            return ready_of(record, AGAIN)
        if record.rare is not None and row.parent in record.rare.suspended_on:
            return wire.Resume(record.owner)
        return OK
    return FINAL_CODE[state]


@serves(wire.Open)
def open_(store: MemoryStore, shard: Shard, row: wire.Open, now_ns: int) -> AnswerType:
    return satisfy(store, shard, wire.Satisfy(row.task, row.task, row.node), now_ns)
