"""Rule 5, lost objects: a task that cannot get an input waits again, and the task that made it runs once more.

The update that sends a task back to waiting also notes in the outbox which task to remake, and gives that need a
number. However many tasks ask for a remake, it becomes ready again only once. It has no owner until a node claims it.
"""

from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import READY, WAITING
from daws.model.task import FROM_OUTSIDE, Input
from daws.store.memory.moving import new_attempt
from daws.store.memory.outbox import intend
from daws.store.memory.record import FINAL_CODE, MANY_EDGES, Record, is_unclaimed, ready_of, without_places
from daws.store.memory.store import MemoryStore, Shard, is_over, serves
from daws.wire import store as wire
from daws.wire.store import DONE, REFUSED, REMAKE_FOR, UNDERWAY, UNKNOWN, AnswerType, outbox_key


@serves(wire.Unready)
def unready(store: MemoryStore, shard: Shard, row: wire.Unready, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return DONE if is_over(shard, row.task) else UNKNOWN
    key = outbox_key(row.task, REMAKE_FOR)
    intent = shard.outbox.get(key)
    if intent is not None and intent.holder != row.node:
        intent = None
    if record.state == WAITING and intent is not None:
        return wire.Noted(key, intent.mark)
    if record.state != READY or record.owner != row.node or record.move != row.move:
        if record.state in (STATE_FAILED, STATE_CANCELLED) and intent is not None:
            del shard.outbox[key]  # it was stopped before its owner learned that it waits
        return FINAL_CODE.get(record.state, REFUSED)
    record.state = WAITING
    record.owner = -1
    record.edges = set(row.producers) if len(row.producers) > MANY_EDGES else row.producers
    lost = tuple(one for one in record.inputs if one.producer in row.producers)
    record.inputs = tuple(one for one in record.inputs if one.producer not in row.producers)
    intend(shard, key, row.node, row.producers)
    rare = record.more()
    rare.need, rare.lost = shard.marks, without_places(lost)
    return wire.Noted(key, shard.marks)


@serves(wire.Remake)
def remake(store: MemoryStore, shard: Shard, row: wire.Remake, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return REFUSED if is_over(shard, row.task) else UNKNOWN
    if record.state in (STATE_FAILED, STATE_CANCELLED):
        return FINAL_CODE[record.state]
    if record.state == STATE_DONE:
        if record.rare is not None and (row.waiter, row.need) in record.rare.waiters and _is_somewhere(record):
            return wire.Available(record.outputs)  # remade for this very need: it is available again
        gone = (*row.gone, *shard.dead)
        record.outputs = tuple(
            Input(
                one.object,
                one.size_bytes,
                one.producer,
                tuple(place for place in one.places if place not in gone),
                one.value,
            )
            for one in record.outputs
        )
        if _is_somewhere(record):
            return wire.Available(record.outputs)
        if record.spec.kind == FROM_OUTSIDE:
            return REFUSED
        record.state = READY
        record.owner = -1
        record.move += 1
        new_attempt(shard, record, row.node)
        record.edges = None
        rare = record.more()
        rare.remaking = True
        rare.waiters = ((row.waiter, row.need),)
        return ready_of(record)
    rare = record.more()
    if (row.waiter, row.need) not in rare.waiters:
        rare.waiters += ((row.waiter, row.need),)
    if is_unclaimed(record):
        return ready_of(record)
    return UNDERWAY


def _is_somewhere(record: Record) -> bool:
    """Does each of its objects have a known place?"""
    return bool(record.outputs) and all(one.places or one.value for one in record.outputs)
