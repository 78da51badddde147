"""Tasks that fail or are cancelled, and the tasks to stop with them.

Rule 9: a cancel is first a write, the first final state wins, and the intent to spread it stands in the outbox of the
same update. A remake that fails does not change the result: only tasks that waited for it fail (rule 5).
"""

from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import FINAL, WAITING
from daws.model.task import FIRST_SPAWNED_ID, NodeId, TaskSpec
from daws.store.memory.outbox import intend
from daws.store.memory.record import FINAL_CODE, STILLBORN, Record, all_spawned, runners_of, without_places
from daws.store.memory.store import MemoryStore, Shard, serves
from daws.wire import store as wire
from daws.wire.store import CANCELLED, DONE, STOP, STRUCK, UNKNOWN, AnswerType, outbox_key


@serves(wire.Cancel)
def cancel(store: MemoryStore, shard: Shard, row: wire.Cancel, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        if row.task in shard.records:
            return DONE
        if row.task < FIRST_SPAWNED_ID:
            return DONE if store.has_retired(shard, row.task) else UNKNOWN
        # Its creator died before it was created: it must not come to life later.
        shard.records[row.task] = Record(TaskSpec(row.task, STILLBORN), STATE_CANCELLED, -1)
        return CANCELLED
    rare = record.rare
    if record.state == STATE_DONE:
        intent = shard.outbox.get(outbox_key(row.task, STOP))
        is_own = intent is not None and intent.holder == row.node
        if is_own and row.error and rare is not None and rare.error:
            return failed_remake_answer(shard, record, ())
        return DONE
    if rare is not None and rare.remaking and not (row.error and record.state == WAITING):
        return DONE
    if record.state in FINAL:
        entry = shard.outbox.get(outbox_key(row.task, STOP))
        if entry is not None and entry.holder == row.node:
            return stop_answer(shard, record, runners_of(record))
        return FINAL_CODE[record.state]
    if row.node in shard.dead:
        return STRUCK
    if row.error:
        return fail(shard, record, row.error, row.node, runners_of(record), cause=max(row.parent, -1))
    record.state = STATE_CANCELLED
    if row.parent >= 0:
        record.more().cause = row.parent
    shard.log.append(wire.LoggedEnd(row.task, STATE_CANCELLED, "", ()))
    intend(shard, outbox_key(row.task, STOP), row.node, None)
    return stop_answer(shard, record, runners_of(record))


def fail(
    shard: Shard,
    record: Record,
    error: str,
    node: NodeId,
    runners: tuple[NodeId, ...],
    failure: bytes = b"",
    cause: int = -1,
) -> AnswerType:
    """Let a task fail by itself, with what its run raised, or because of another task."""
    rare = record.more()
    task = record.spec.id
    rare.error, rare.failure, rare.cause = error, failure, cause
    if rare.remaking:
        # The task was done before, so its future keeps its value. Tasks that waited for the lost object fail, and so do
        # those that this attempt has spawned. A later reader may try again: the object has a name, but no place.
        rare.remaking = False
        if record.state == WAITING:  # for lost inputs: the next attempt must not run without them
            known = [one.object for one in record.inputs]
            record.inputs = (*record.inputs, *[one for one in rare.lost if one.object not in known])
        record.state = STATE_DONE
        record.outputs = without_places(record.outputs)
        record.freed = True
        stopped = (*(waiter for waiter, _ in rare.waiters), *all_spawned(rare))
        intend(shard, outbox_key(task, STOP), node, stopped)
        rare.waiters = ()
        rare.spawned = {}
        return failed_remake_answer(shard, record, runners)
    record.state = STATE_FAILED
    shard.log.append(wire.LoggedEnd(task, STATE_FAILED, error, ()))
    intend(shard, outbox_key(task, STOP), node, None)
    return stop_answer(shard, record, runners)


def failed_remake_answer(shard: Shard, record: Record, runners: tuple[NodeId, ...]) -> wire.Stopped:
    key = outbox_key(record.spec.id, STOP)
    intent = shard.outbox[key]
    return wire.Stopped(key, intent.others or (), runners, record.more().error, (), intent.mark)


def stop_answer(shard: Shard, record: Record, runners: tuple[NodeId, ...]) -> wire.Stopped:
    rare = record.rare
    children = tuple(record.children) if rare is None else (*record.children, *all_spawned(rare))
    key = outbox_key(record.spec.id, STOP)
    mark = shard.outbox[key].mark if key in shard.outbox else 0
    if rare is None:
        return wire.Stopped(key, children, runners, "", (), mark)
    return wire.Stopped(key, children, runners, rare.error, rare.watchers, mark)


def stop_spawned(shard: Shard, record: Record, node: NodeId) -> wire.Stopped | None:
    """The tasks that this node is to cancel, because attempts that do not count spawned them; None if there are
    none."""
    key = outbox_key(record.spec.id, STOP)
    entry = shard.outbox.get(key)
    if entry is None or entry.holder != node:
        return None
    return wire.Stopped(key, entry.others or (), (), "", (), entry.mark)
