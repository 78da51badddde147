"""The store in one process's memory: the first backend, and the yardstick for the others.

The rules that lose nothing (readiness is told, moving is claiming, commit by run, …) are compare-and-sets in this file;
what a node does with the answers is the core's business. Nothing here reads a clock: the driver passes the time in.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from daws.model.cluster import Members, NodeInfo
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import FINAL, READY, REMAKING, SUSPENDED, WAITING
from daws.model.task import AGAIN, FIRST_SPAWNED_ID, REMAKE, REPLICA, SUSPECT, Input, NodeId, Ready, TaskSpec
from daws.store.record import Rare, Record
from daws.wire import store as wire
from daws.wire.store import (
    ANNOUNCE,
    CANCELLED,
    DONE,
    FAILED,
    OK,
    REFUSED,
    REMAKE_FOR,
    REPLICATE,
    RETRY,
    SATISFY,
    SHARD_BLOCK_BITS,
    STOP,
    STRUCK,
    UNDERWAY,
    UNKNOWN,
    AnswerType,
    Committed,
    Granted,
    OutboxEntry,
    Row,
    outbox_key,
    shard_of,
)

MANY_EDGES = 8
LOSSES_MAX = 3
_NOTHING_TO_TELL = Committed(-1)
_STILLBORN = -1
"""The kind of a task that was cancelled before it was created."""
_FINAL_CODE = {STATE_DONE: DONE, STATE_FAILED: FAILED, STATE_CANCELLED: CANCELLED}


Others = tuple[Any, ...] | None
"""Whom an intent concerns: (task, need) pairs to satisfy or None for all children, tasks to stop or None for all."""


class Shard:
    """The part of the store within which an update is atomic. A retired task leaves None behind."""

    __slots__ = ("dead", "estates", "log", "marks", "outbox", "records")

    def __init__(self) -> None:
        self.records: dict[int, Record | None] = {}
        self.outbox: dict[int, tuple[NodeId, Others, int]] = {}  # key -> holder, whom, mark
        self.marks = 0
        self.log: list[wire.LogRow] = []
        self.dead: set[NodeId] = set()
        self.estates: dict[tuple[NodeId, NodeId], tuple[int, wire.Estate]] = {}


class MemoryStore:
    """All shards in one process. `calls` and `touched` count what a real store would have been asked."""

    def __init__(
        self,
        shard_count: int = 1,
        lease_ns: int = 10_000_000_000,
        replicas_max: int = 2,
        history: bool = False,
        direct: bool = False,
    ) -> None:
        """`direct`: a commit satisfies the children in its own shard in the same update."""
        self.direct = direct
        self.shard_count = shard_count
        self.lease_ns = lease_ns
        self.replicas_max = replicas_max
        self.history = history
        self.shards = [Shard() for _ in range(shard_count)]
        self.leases: dict[NodeId, int] = {}
        self.infos: dict[NodeId, NodeInfo] = {}
        self.orphans: dict[NodeId, None] = {}
        self.buried: set[NodeId] = set()
        self.members = Members(0, ())
        self.members_changed = False
        self.calls = 0
        self.touched = 0

    def apply(self, shard: int, rows: Sequence[Row], now_ns: int) -> list[AnswerType]:
        self.calls += 1
        self.touched += len(rows)
        part = self.shards[shard]
        if self.history:
            return [self._noted(part, row, now_ns) for row in rows]
        return [_HANDLERS[type(row)](self, part, row, now_ns) for row in rows]

    def apply_one(self, shard: int, row: Row, now_ns: int) -> AnswerType:
        """A call with a single row."""
        self.calls += 1
        self.touched += 1
        part = self.shards[shard]
        if self.history:
            return self._noted(part, row, now_ns)
        return _HANDLERS[type(row)](self, part, row, now_ns)

    def record(self, task: int) -> Record | None:
        """The record of a task, for checkers and tests; None when it is unknown or retired."""
        return self.shards[shard_of(task, self.shard_count)].records.get(task)

    def join(self, infos: Iterable[NodeInfo], now_ns: int = 0) -> Members:
        """Make many nodes members at once (a cluster that starts together)."""
        until_ns = now_ns + self.lease_ns
        for info in infos:
            self.infos[info.id] = info
            self.leases[info.id] = until_ns
        self.members_changed = True
        return self._members()

    # -- a task's life -----------------------------------------------------------------------------

    def _create(self, shard: Shard, row: wire.Create, now_ns: int) -> AnswerType:
        spec = row.spec
        task = spec.id
        records = shard.records
        if task in records:
            known = records[task]
            if known is None:
                return DONE
            if known.spec == spec:
                return OK
            return CANCELLED if known.spec.kind == _STILLBORN else REFUSED
        if shard.dead and row.owner in shard.dead:
            return STRUCK
        edges = row.parents
        if row.guarded:
            edges = (*edges, task)
        if edges:
            left = set(edges) if len(edges) > MANY_EDGES else edges
            records[task] = record = Record(spec, WAITING, -1, row.children, left, row.inputs)
        else:
            records[task] = record = Record(spec, READY, row.owner, row.children, None, row.inputs)
        if row.held:
            record.more().holders.add(wire.CLIENT_HOLDER)
        return OK

    def _finish(self, shard: Shard, row: wire.Finish, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            return DONE if row.task in shard.records else UNKNOWN
        rare = record.rare
        if (  # by far the most common case
            rare is None
            and record.state == READY
            and record.owner == row.node
            and record.attempt == row.attempt
            and not row.error
        ):
            shard.log.append(row.task)
            record.state = STATE_DONE
            record.outputs = row.outputs
            if not record.children:
                if not record.inputs and not row.outputs:
                    return None
                record.freed = True
                return _NOTHING_TO_TELL
            if self.direct:
                return self._tell_here(shard, record, row)
            key = row.task << 2 | SATISFY
            shard.marks = mark = shard.marks + 1
            shard.outbox[key] = (row.node, None, mark)
            return Committed(key, record.children, mark=mark)
        mine = record.owner == row.node or (rare is not None and row.node in rare.replicas)
        if not mine or record.attempt != row.attempt:
            return _FINAL_CODE.get(record.state, REFUSED)
        if record.state != READY and record.state != SUSPENDED:
            return self._finished_before(shard, record, row)
        rivals: tuple[NodeId, ...] = ()
        if rare is not None and rare.replicas:
            rivals = tuple(node for node in (record.owner, *rare.replicas) if node != row.node)
            rare.replicas = rivals  # for those who ask again
        record.owner = row.node
        if row.error:
            return self._fail(shard, record, row.error, row.node, rivals)
        if rare is not None and rare.remaking:
            rare.remaking = False
            told: Others = rare.waiters  # only those who asked; everybody else was told the first time
            rare.waiters = ()
            rare.spawned = {}  # as at its first end
        else:
            spawned: tuple[int, ...] = ()
            if rare is not None and rare.spawned:
                spawned = rare.spawned.get(record.attempt, ())
                rare.spawned = {}  # they stand on their own feet now, whatever becomes of their spawner's objects
            shard.log.append((row.task, STATE_DONE, "", spawned) if spawned else row.task)
            told = None
        record.state = STATE_DONE
        record.outputs = row.outputs
        record.freed = False
        if told or _audience(record):
            self._intend(shard, outbox_key(row.task, SATISFY), row.node, told)
        elif not rivals:
            return _NOTHING_TO_TELL
        return self._commit_answer(shard, record, rivals)

    def _tell_here(self, shard: Shard, record: Record, row: wire.Finish) -> Committed:
        """Satisfy the children that live in this shard in the same update; only the others need an outbox entry."""
        task, node = row.task, row.node
        records = shard.records
        outputs, children = row.outputs, record.children
        several = len(outputs) > 1
        only = (task,)
        ready: list[Ready] = []
        left: list[tuple[int, int]] = []
        for number in children:
            child = records.get(number)
            if child is None or child.state != WAITING or child.rare is not None:
                left.append((number, 0))
                continue
            edges = child.edges
            if several:
                wanted = child.spec.inputs
                child.inputs += tuple([one for one in outputs if one[0] in wanted])
            else:
                child.inputs += outputs
            if edges != only:
                if edges.__class__ is tuple:
                    child.edges = edges = tuple([edge for edge in edges if edge != task])
                else:
                    edges.discard(task)  # type: ignore[union-attr]
                if edges:
                    continue
            child.state = READY
            child.owner = node
            child.move = move = child.move + 1
            child.edges = task
            ready.append(Ready(child.spec, child.attempt, move, child.inputs))
        self.touched += len(children) - len(left)
        if not left:
            return Committed(-1, (), (), children, 0, (), tuple(ready))
        key = task << 2 | SATISFY
        shard.marks = mark = shard.marks + 1
        shard.outbox[key] = (node, tuple(left), mark)
        children, needs = _unzip(tuple(left))
        return Committed(key, children, (), record.children, mark, needs, tuple(ready))

    def _told_here(self, shard: Shard, record: Record) -> tuple[Ready, ...]:
        """Children that became ready when this task was committed, and have not moved since."""
        task, node = record.spec.id, record.owner
        found = []
        for number in record.children:
            child = shard.records.get(number)
            if child is not None and child.state == READY and child.owner == node and child.edges == task:
                found.append(self._ready(child, AGAIN))
        return tuple(found)

    def _finished_before(self, shard: Shard, record: Record, row: wire.Finish) -> AnswerType:
        """A run that is over ends again: if it was the one that counted, its caller has not heard the answer."""
        if row.node in shard.dead:
            return STRUCK
        if record.owner == row.node:
            rivals = record.rare.replicas if record.rare is not None else ()
            if row.error and outbox_key(row.task, STOP) in shard.outbox:
                if record.state == STATE_FAILED:
                    return self._stopped(shard, record, rivals)
                if record.state == STATE_DONE:
                    return self._failed_remake(shard, record, rivals)
            elif not row.error and record.state == STATE_DONE:
                return self._commit_answer(shard, record, rivals)
        return _FINAL_CODE.get(record.state, REFUSED)

    def _intend(self, shard: Shard, key: int, node: NodeId, others: Others) -> None:
        """Write an intent (None: for all children); what still stood under the same key is not forgotten."""
        known = shard.outbox.get(key)
        if known is not None and others is not None:
            before = known[1]
            if before is None and key & 3 == SATISFY:
                record = shard.records[key >> 2]
                before = tuple((child, 0) for child in _audience(record)) if record is not None else ()
            others = None if before is None else tuple(dict.fromkeys((*before, *others)))
        shard.marks += 1
        shard.outbox[key] = (node, others, shard.marks)

    def _commit_answer(self, shard: Shard, record: Record, rivals: tuple[NodeId, ...]) -> Committed:
        key = outbox_key(record.spec.id, SATISFY)
        entry = shard.outbox.get(key)
        ready = self._told_here(shard, record) if self.direct else ()
        if entry is None:
            return Committed(-1, (), rivals, record.children, ready=ready)
        if entry[1] is None:
            return Committed(key, _audience(record), rivals, mark=entry[2])
        told, needs = _unzip(entry[1])
        return Committed(key, told, rivals, record.children, entry[2], needs, ready)

    def _satisfy(self, shard: Shard, row: wire.Satisfy, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            return DONE if row.task in shard.records else UNKNOWN
        state = record.state
        if state == WAITING or state == SUSPENDED:  # noqa: SIM109 (half the time)
            edges = record.edges
            if isinstance(edges, tuple):
                if row.parent not in edges or (record.rare is not None and record.rare.need != row.need):
                    return OK
                edges = tuple(edge for edge in edges if edge != row.parent)
                record.edges = edges
            else:
                assert isinstance(edges, set)
                if row.parent not in edges or (record.rare is not None and record.rare.need != row.need):
                    return OK
                edges.discard(row.parent)
            if state == WAITING and row.inputs:
                wanted = record.spec.inputs
                record.inputs += tuple(one for one in row.inputs if one[0] in wanted)
            if edges:
                return OK
            if state == SUSPENDED:
                record.state = READY
                record.edges = None
                return wire.Resume(record.owner)
            if row.node in shard.dead:
                # The last edge is gone but the caller may own nothing: put it back, another will carry out the outbox.
                record.edges = (row.parent,)
                record.inputs = tuple(one for one in record.inputs if one[2] != row.parent)
                return STRUCK
            record.state = READY
            record.owner = row.node
            record.move += 1
            record.edges = row.parent
            return self._ready(record)
        if state == READY:
            if record.owner == row.node and record.edges == row.parent and record.edges is not None:
                return self._ready(record, AGAIN)
            if record.rare is not None and row.parent in record.rare.suspended_on:
                return wire.Resume(record.owner)
            return OK
        return _FINAL_CODE[state]

    def _open(self, shard: Shard, row: wire.Open, now_ns: int) -> AnswerType:
        return self._satisfy(shard, wire.Satisfy(row.task, row.task, row.node), now_ns)

    def _ready(self, record: Record, mode: int = 0) -> Ready:
        rare = record.rare
        if rare is not None:
            mode |= (REMAKE if rare.remaking else 0) | (SUSPECT if rare.losses else 0)
        return Ready(record.spec, record.attempt, record.move, record.inputs, mode)

    def _claim(self, shard: Shard, row: wire.Claim, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            return DONE if row.task in shard.records else UNKNOWN
        if record.state != READY and not (record.state == SUSPENDED and row.why == RETRY):
            return _FINAL_CODE.get(record.state, REFUSED)
        if row.node in shard.dead:
            return STRUCK
        if row.why == REPLICATE:
            return self._replicate(record, row)
        again = 0
        if record.owner == row.owner and record.move == row.move:
            record.owner = row.node
            record.move += 1
            record.edges = None
            if record.rare is not None:
                record.rare.announced = False
            if row.why == ANNOUNCE:
                record.more().announced = True
            elif row.why == RETRY:
                record.state = READY
                self._new_attempt(shard, record, row.node)
        elif record.owner != row.node or record.move != row.move + 1:
            return REFUSED
        else:
            again = AGAIN
        mode = self._ready(record).mode if record.rare is not None else 0
        stop = self._stop_spawned(shard, record, row.node) if row.why == RETRY else None
        return Granted(record.move, record.attempt, mode | again, stop)

    def _stop_spawned(self, shard: Shard, record: Record, node: NodeId) -> wire.Stopped | None:
        """What earlier attempts spawned, if this node is to cancel it."""
        key = outbox_key(record.spec.id, STOP)
        entry = shard.outbox.get(key)
        if entry is None or entry[0] != node:
            return None
        return wire.Stopped(key, entry[1] or (), (), "", (), entry[2])

    def _replicate(self, record: Record, row: wire.Claim) -> AnswerType:
        rare = record.more()
        if row.node == record.owner or record.owner != row.owner:
            return REFUSED
        if row.node in rare.replicas:
            return Granted(record.move, record.attempt, REPLICA | AGAIN)
        if len(rare.replicas) >= self.replicas_max:
            return REFUSED
        rare.replicas += (row.node,)
        return Granted(record.move, record.attempt, REPLICA)

    def _new_attempt(self, shard: Shard, record: Record, node: NodeId) -> None:
        """Runs of earlier attempts can no longer commit, and what they spawned is to be cancelled."""
        record.attempt += 1
        rare = record.rare
        if rare is None:
            return
        rare.replicas = ()
        rare.announced = False
        rare.suspended_on = ()
        if rare.spawned:
            self._intend(shard, outbox_key(record.spec.id, STOP), node, _all_spawned(rare))

    # -- lost objects ------------------------------------------------------------------------------

    def _unready(self, shard: Shard, row: wire.Unready, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            return DONE if row.task in shard.records else UNKNOWN
        key = outbox_key(row.task, REMAKE_FOR)
        if record.state == WAITING and key in shard.outbox and shard.outbox[key][0] == row.node:
            return wire.Noted(key, shard.outbox[key][2])
        if record.state != READY or record.owner != row.node or record.move != row.move:
            if record.state in (STATE_FAILED, STATE_CANCELLED) and shard.outbox.get(key, (None,))[0] == row.node:
                del shard.outbox[key]  # it was stopped before its owner heard that it waits
            return _FINAL_CODE.get(record.state, REFUSED)
        record.state = WAITING
        record.owner = -1
        record.edges = set(row.producers) if len(row.producers) > MANY_EDGES else row.producers
        record.inputs = tuple(one for one in record.inputs if one[2] not in row.producers)
        self._intend(shard, key, row.node, row.producers)
        record.more().need = shard.marks
        return wire.Noted(key, shard.marks)

    def _remake(self, shard: Shard, row: wire.Remake, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            return REFUSED if row.task in shard.records else UNKNOWN
        if record.state in (STATE_FAILED, STATE_CANCELLED):
            return _FINAL_CODE[record.state]
        if record.state == STATE_DONE:
            gone = (*row.gone, *shard.dead)
            record.outputs = tuple(
                (one[0], one[1], one[2], tuple(place for place in one[3] if place not in gone))
                for one in record.outputs
            )
            if record.outputs and all(one[3] for one in record.outputs):
                return wire.Available(record.outputs)
            record.state = READY
            record.owner = -1
            record.move += 1
            self._new_attempt(shard, record, row.node)
            record.edges = None
            rare = record.more()
            rare.remaking = True
            rare.waiters = ((row.waiter, row.need),)
            return self._ready(record)
        rare = record.more()
        if (row.waiter, row.need) not in rare.waiters:
            rare.waiters += ((row.waiter, row.need),)
        if record.state == READY and record.owner == -1:
            return self._ready(record)
        return UNDERWAY

    # -- growing graphs ----------------------------------------------------------------------------

    def _register(self, shard: Shard, row: wire.Register, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            return REFUSED if row.task in shard.records else UNKNOWN
        if record.state in (STATE_FAILED, STATE_CANCELLED):
            return _FINAL_CODE[record.state]
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

    def _spawn(self, shard: Shard, row: wire.Spawn, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            return REFUSED
        if record.state not in (READY, SUSPENDED) or record.owner != row.node or record.attempt != row.attempt:
            return _FINAL_CODE.get(record.state, REFUSED)
        spawned = record.more().spawned
        known = spawned.get(row.attempt, ())
        spawned[row.attempt] = (*known, *(task for task in row.tasks if task not in known))
        return OK

    def _suspend(self, shard: Shard, row: wire.Suspend, now_ns: int) -> AnswerType:
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
        return OK if record.state == SUSPENDED else _FINAL_CODE.get(record.state, REFUSED)

    # -- ends --------------------------------------------------------------------------------------

    def _cancel(self, shard: Shard, row: wire.Cancel, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            if row.task in shard.records:
                return DONE
            if row.task < FIRST_SPAWNED_ID:
                return UNKNOWN
            # Its creator died before it got here: it must not come to life later.
            shard.records[row.task] = Record(TaskSpec(row.task, _STILLBORN), STATE_CANCELLED, -1)
            return CANCELLED
        rare = record.rare
        if record.state == STATE_DONE:
            held = shard.outbox.get(outbox_key(row.task, STOP), (None,))[0] == row.node
            return (
                self._failed_remake(shard, record, ())
                if held and row.error and rare is not None and rare.error
                else DONE
            )
        if rare is not None and rare.remaking and not (row.error and record.state == WAITING):
            return DONE
        if record.state in FINAL:
            entry = shard.outbox.get(outbox_key(row.task, STOP))
            if entry is not None and entry[0] == row.node:
                return self._stopped(shard, record, self._runners(record))
            return _FINAL_CODE[record.state]
        if row.node in shard.dead:
            return STRUCK
        if row.error:
            return self._fail(shard, record, row.error, row.node, self._runners(record))
        record.state = STATE_CANCELLED
        shard.log.append((row.task, STATE_CANCELLED, "", ()))
        self._intend(shard, outbox_key(row.task, STOP), row.node, None)
        return self._stopped(shard, record, self._runners(record))

    def _fail(self, shard: Shard, record: Record, error: str, node: NodeId, runners: tuple[NodeId, ...]) -> AnswerType:
        rare = record.more()
        task = record.spec.id
        rare.error = error
        if rare.remaking:
            # The task was done before, so its future keeps its value; those who waited for the lost object fail.
            rare.remaking = False
            record.state = STATE_DONE
            record.outputs = ()
            self._intend(shard, outbox_key(task, STOP), node, tuple(waiter for waiter, _ in rare.waiters))
            rare.waiters = ()
            return self._failed_remake(shard, record, runners)
        record.state = STATE_FAILED
        shard.log.append((task, STATE_FAILED, error, ()))
        self._intend(shard, outbox_key(task, STOP), node, None)
        return self._stopped(shard, record, runners)

    def _failed_remake(self, shard: Shard, record: Record, runners: tuple[NodeId, ...]) -> wire.Stopped:
        key = outbox_key(record.spec.id, STOP)
        return wire.Stopped(key, shard.outbox[key][1] or (), runners, record.more().error, (), shard.outbox[key][2])

    def _stopped(self, shard: Shard, record: Record, runners: tuple[NodeId, ...]) -> wire.Stopped:
        rare = record.rare
        children = record.children if rare is None else (*record.children, *_all_spawned(rare))
        key = outbox_key(record.spec.id, STOP)
        mark = shard.outbox[key][2] if key in shard.outbox else 0
        if rare is None:
            return wire.Stopped(key, children, runners, "", (), mark)
        return wire.Stopped(key, children, runners, rare.error, rare.watchers, mark)

    def _runners(self, record: Record) -> tuple[NodeId, ...]:
        owner = () if record.owner == -1 else (record.owner,)
        return owner if record.rare is None else (*owner, *record.rare.replicas)

    # -- references and places ---------------------------------------------------------------------

    def _retain(self, shard: Shard, row: wire.Retain, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            return REFUSED
        record.more().holders.add(row.holder)
        return OK

    def _release(self, shard: Shard, row: wire.Release, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            return OK if row.task in shard.records else UNKNOWN
        rare = record.rare
        if row.holder >= 0:
            if rare is not None:
                rare.holders.discard(row.holder)
        elif rare is not None and rare.holders:
            return REFUSED
        elif record.state == STATE_DONE:
            record.freed = True
            record.outputs = tuple((one[0], one[1], one[2], ()) for one in record.outputs)
        self._retire(record)
        return OK

    def _retire(self, record: Record) -> None:
        """Forget a freed record once nothing below it can need it again; its parents may follow."""
        todo = [record]
        shards, count = self.shards, self.shard_count
        while todo:
            one = todo.pop()
            if one.state != STATE_DONE or (one.outputs and not one.freed):
                continue
            if one.rare is not None and one.rare.holders:
                continue
            if one.children and not self._have_retired(one.children):
                continue
            task = one.spec.id
            home = shards[(task >> SHARD_BLOCK_BITS) % count]
            key, outbox = task << 2, home.outbox
            if outbox and (key | SATISFY in outbox or key | REMAKE_FOR in outbox or key | STOP in outbox):
                continue  # when it is cleared, we will be back
            home.records[task] = None
            for _, _, producer, _ in one.inputs:
                if producer >= 0:
                    parent = shards[(producer >> SHARD_BLOCK_BITS) % count].records.get(producer)
                    if parent is not None and parent.freed:
                        todo.append(parent)

    def _have_retired(self, tasks: tuple[int, ...]) -> bool:
        shards, count = self.shards, self.shard_count
        for task in tasks:
            records = shards[(task >> SHARD_BLOCK_BITS) % count].records
            record = records.get(task, self)
            if record is None:
                continue
            if not isinstance(record, Record) or record.children or not record.freed or record.state != STATE_DONE:
                return False
            if record.rare is not None:
                return False
            records[task] = None  # nobody reads what it made: it retires with its parent
        return True

    def _locate(self, shard: Shard, row: wire.Locate, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            return REFUSED if row.task in shard.records else UNKNOWN
        if record.state == STATE_DONE:
            return wire.Available(record.outputs)
        return _FINAL_CODE.get(record.state, UNDERWAY)

    def _add_place(self, shard: Shard, row: wire.AddPlace, now_ns: int) -> AnswerType:
        return self._set_places(shard, row.task, row.object, lambda places: (*places, row.node), row.node, True)

    def _drop_place(self, shard: Shard, row: wire.DropPlace, now_ns: int) -> AnswerType:
        return self._set_places(
            shard, row.task, row.object, lambda places: tuple(p for p in places if p != row.node), row.node, False
        )

    def _set_places(
        self,
        shard: Shard,
        task: int,
        object_: int,
        change: Callable[[tuple[NodeId, ...]], tuple[NodeId, ...]],
        node: NodeId,
        adding: bool,
    ) -> AnswerType:
        record = shard.records.get(task)
        if record is None or record.state != STATE_DONE or (adding and node in shard.dead):
            return REFUSED

        def changed(one: Input) -> Input:
            if one[0] != object_ or (node in one[3]) == adding:
                return one
            return (one[0], one[1], one[2], change(one[3]))

        record.outputs = tuple(changed(one) for one in record.outputs)
        return OK

    # -- membership and death ----------------------------------------------------------------------

    def _lease(self, shard: Shard, row: wire.Lease, now_ns: int) -> AnswerType:
        self.touched -= 1
        self._expire(now_ns)
        node = row.node
        if node in self.orphans or node in self.buried:
            if not row.leaving:
                return STRUCK
        elif row.leaving:
            self._strike(node)
        elif node in self.infos or row.info is not None:
            if row.info is not None and node not in self.infos:
                self.infos[node] = row.info
                self.members_changed = True
            self.leases.pop(node, None)  # keep the dict ordered by expiry
            self.leases[node] = now_ns + self.lease_ns
        else:
            return STRUCK
        members = self._members()
        return wire.Leased(members if members.version != row.version else None, tuple(self.orphans))

    def _watch(self, shard: Shard, row: wire.Watch, now_ns: int) -> AnswerType:
        self.touched -= 1
        self._expire(now_ns)
        members = self._members()
        return wire.Leased(members if members.version != row.version else None)

    def _expire(self, now_ns: int) -> None:
        while self.leases:
            node = next(iter(self.leases))
            if self.leases[node] > now_ns:
                return
            self._strike(node)

    def _strike(self, node: NodeId) -> None:
        self.leases.pop(node, None)
        self.infos.pop(node, None)
        self.orphans[node] = None
        self.members_changed = True

    def _members(self) -> Members:
        if self.members_changed:
            self.members_changed = False
            self.members = Members(self.members.version + 1, tuple(self.infos.values()))
        return self.members

    def _buried(self, shard: Shard, row: wire.Buried, now_ns: int) -> AnswerType:
        self.touched -= 1
        if self.orphans.pop(row.dead, 0) is None:
            self.buried.add(row.dead)
        return OK

    def _take_over(self, shard: Shard, row: wire.TakeOver, now_ns: int) -> AnswerType:
        if row.node in shard.dead:
            return STRUCK
        shard.dead.add(row.dead)
        said = shard.estates.get((row.dead, row.node))
        if said is not None and row.part <= said[0]:
            return (
                said[1] if row.part == said[0] else wire.Estate(more=True)
            )  # long answered: it would take more unheard
        ready: list[Ready] = []
        keys: dict[int, None] = {}
        more = False
        for key, (holder, others, mark) in shard.outbox.items():
            if holder == row.dead:
                shard.outbox[key] = (row.node, others, mark)
                keys[key] = None
        for task, record in list(shard.records.items()):
            if record is None:
                continue
            if record.rare is not None and row.dead in record.rare.replicas:
                record.rare.replicas = tuple(node for node in record.rare.replicas if node != row.dead)
            if record.owner != row.dead or record.state not in (READY, SUSPENDED):
                continue
            if len(ready) + len(keys) >= row.limit:
                more = True
                break
            heir = self._inherit(shard, record, row.node)
            if heir is not None:
                ready.append(heir)
            key = outbox_key(task, STOP)
            if shard.outbox.get(key, (None,))[0] == row.node:
                keys[key] = None
        outbox = [self._entry(shard, key) for key in keys]
        self.touched += len(ready) + len(outbox) - 1
        answer = wire.Estate(tuple(ready), tuple(outbox), more)
        shard.estates[row.dead, row.node] = (row.part, answer)
        return answer

    def _inherit(self, shard: Shard, record: Record, heir: NodeId) -> Ready | None:
        rare = record.more()
        if rare.announced or not rare.losses:
            rare.losses += 1
        record.owner = heir
        record.move += 1
        record.edges = None
        record.state = READY
        self._new_attempt(shard, record, heir)
        if rare.losses >= LOSSES_MAX:
            task = record.spec.id
            error = f"task {task} was running on {LOSSES_MAX} nodes when they died; it is not tried again"
            self._fail(shard, record, error, heir, ())
            return None
        return self._ready(record)

    def _entry(self, shard: Shard, key: int) -> OutboxEntry:
        task, verb = key >> 2, key & 3
        record = shard.records[task]
        assert record is not None
        _, others, mark = shard.outbox[key]
        if verb == SATISFY:
            told, needs = (_audience(record), ()) if others is None else _unzip(others)
            return OutboxEntry(key, verb, task, told, record.outputs, mark=mark, needs=needs)
        if verb == REMAKE_FOR:
            return OutboxEntry(key, verb, task, others or (), mark=mark)
        ended = record.state in (
            STATE_FAILED,
            STATE_CANCELLED,
        )  # else only the children of some attempt are to be stopped
        stopped = self._stopped(shard, record, self._runners(record) if ended else ())
        if others is not None:
            return OutboxEntry(key, verb, task, others, (), stopped.nodes, stopped.error, mark=mark)
        return OutboxEntry(key, verb, task, stopped.children, (), stopped.nodes, stopped.error, stopped.watchers, mark)

    def _clear(self, shard: Shard, row: wire.Clear, now_ns: int) -> AnswerType:
        self.touched -= 1
        for number, key in enumerate(row.keys):
            entry = shard.outbox.get(key)
            if entry is not None and entry[0] == row.node and (not row.marks or row.marks[number] == entry[2]):
                del shard.outbox[key]
                record = shard.records.get(key >> 2)
                if record is not None and record.freed:
                    self._retire(record)  # this intent was all that kept it
        return OK

    # -- what the client and people read -----------------------------------------------------------

    def _read_log(self, shard: Shard, row: wire.ReadLog, now_ns: int) -> AnswerType:
        self.touched -= 1
        rows = shard.log[row.start : row.start + row.limit]
        return wire.Log(row.start + len(rows), rows)

    def _inspect(self, shard: Shard, row: wire.Inspect, now_ns: int) -> AnswerType:
        record = shard.records.get(row.task)
        if record is None:
            return DONE if row.task in shard.records else UNKNOWN
        rare = record.rare or Rare()
        waiting = record.edges if isinstance(record.edges, (tuple, set)) else ()
        state = REMAKING if rare.remaking else record.state
        return wire.Story(
            state, record.owner, record.move, record.attempt, tuple(sorted(waiting)), rare.error, tuple(rare.history)
        )

    def _noted(self, shard: Shard, row: Row, now_ns: int) -> AnswerType:
        """Carry out a row and add to the task's history what it changed."""
        task = row.spec.id if isinstance(row, wire.Create) else getattr(row, "task", -1)
        record = shard.records.get(task)
        before = (record.state, record.owner) if record is not None else None
        answer = _HANDLERS[type(row)](self, shard, row, now_ns)
        record = shard.records.get(task)
        if record is not None and (record.state, record.owner) != before:
            record.more().history.append((record.state, now_ns, record.owner))
        return answer


def _audience(record: Record) -> tuple[int, ...]:
    """Who is to hear that a task is done: its children, and suspended tasks that wait for its end."""
    return record.children if record.rare is None else (*record.children, *record.rare.watchers)


def _unzip(pairs: tuple[Any, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(task for task, _ in pairs), tuple(need for _, need in pairs)


def _all_spawned(rare: Rare) -> tuple[int, ...]:
    return tuple(task for tasks in rare.spawned.values() for task in tasks)


_HANDLERS: dict[type[Row], Callable[[MemoryStore, Shard, Any, int], AnswerType]] = {
    wire.Create: MemoryStore._create,
    wire.Finish: MemoryStore._finish,
    wire.Satisfy: MemoryStore._satisfy,
    wire.Open: MemoryStore._open,
    wire.Claim: MemoryStore._claim,
    wire.Unready: MemoryStore._unready,
    wire.Remake: MemoryStore._remake,
    wire.Register: MemoryStore._register,
    wire.Spawn: MemoryStore._spawn,
    wire.Suspend: MemoryStore._suspend,
    wire.Cancel: MemoryStore._cancel,
    wire.Retain: MemoryStore._retain,
    wire.Release: MemoryStore._release,
    wire.Locate: MemoryStore._locate,
    wire.AddPlace: MemoryStore._add_place,
    wire.DropPlace: MemoryStore._drop_place,
    wire.Inspect: MemoryStore._inspect,
    wire.Clear: MemoryStore._clear,
    wire.Lease: MemoryStore._lease,
    wire.Watch: MemoryStore._watch,
    wire.TakeOver: MemoryStore._take_over,
    wire.Buried: MemoryStore._buried,
    wire.ReadLog: MemoryStore._read_log,
}
