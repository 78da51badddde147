"""Rule 6, references: which tasks hold the objects of a task, where these are, and when its record may be dropped.

Freed is not lost: a record whose objects are no longer needed stays, and can be remade, until its children have retired
and no intent of its own stands in an outbox. To know that, `retire` looks into other shards than the one that was
asked. Only a store that has all of them in one process can do that within one update.
"""

from collections.abc import Callable, Sequence
from typing import Any

from daws.model.states import DONE as STATE_DONE
from daws.model.states import FINAL
from daws.model.task import INLINE_BYTES, Input, NodeId
from daws.store.memory.record import FINAL_CODE, Record, is_held
from daws.store.memory.store import MemoryStore, Shard, is_over, serves
from daws.wire import store as wire
from daws.wire.store import (
    CLIENT_HOLDER,
    OK,
    REFUSED,
    REMAKE_FOR,
    SATISFY,
    SHARD_BLOCK_BITS,
    STOP,
    UNDERWAY,
    UNKNOWN,
    AnswerType,
)

NEVER: Any = object()


@serves(wire.Retain)
def retain(store: MemoryStore, shard: Shard, row: wire.Retain, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return REFUSED
    if row.holder == CLIENT_HOLDER:
        record.held = True
    else:
        record.more().holders.add(row.holder)
    return OK


@serves(wire.Release)
def release(store: MemoryStore, shard: Shard, row: wire.Release, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return OK if is_over(shard, row.task) else UNKNOWN
    if row.holder == CLIENT_HOLDER:
        record.held = False
        if record.state == STATE_DONE:
            outputs = record.outputs
            is_small = len(outputs) == 1 and outputs[0].size_bytes <= INLINE_BYTES
            if is_small and not record.children and not record.inputs:
                record.freed = True  # the usual case
                if record.rare is None and not shard.outbox:
                    forget(store, shard, row.task)
                else:
                    retire(store, record)
                return None
            large = [one for one in outputs if one.size_bytes > INLINE_BYTES]
            if not large:
                record.freed = True  # its readers have them in their own records
            elif not record.freed and not is_held(record):
                places = dict.fromkeys([place for one in large for place in one.places])
                return wire.Unheld(tuple(places), _yet_to_read(store, record), record.attempt)
        elif store.retired_max and record.state in FINAL:
            record.freed = True  # it made nothing, and a repeated call hears that it is over
    elif row.holder >= 0:
        if record.rare is not None:
            record.rare.holders.discard(row.holder)
    elif is_held(record) or record.attempt != row.attempt:
        return REFUSED
    elif record.state == STATE_DONE:
        record.freed = True
        record.outputs = tuple(Input(one.object, one.size_bytes, one.producer, (), b"") for one in record.outputs)
    retire(store, record)
    return OK


def _yet_to_read(store: MemoryStore, record: Record) -> tuple[int, ...]:
    """Children that have not ended. A child that its shard does not know is yet to be written there, or written
    again."""
    found = []
    shards, count = store.shards, store.shard_count
    for task in record.children:
        child = shards[(task >> SHARD_BLOCK_BITS) % count].records.get(task, NEVER)
        if child is None or (child is NEVER and store.retired_max):
            continue
        if child is NEVER or child.state not in FINAL:
            found.append(task)
    return tuple(found)


def retire(store: MemoryStore, record: Record) -> None:
    """Drop a freed record once nothing below it can need it again; its parents may follow."""
    todo = [record]
    shards, count = store.shards, store.shard_count
    while todo:
        one = todo.pop()
        if (one.outputs and not one.freed) or (one.state != STATE_DONE and not (one.freed and store.retired_max)):
            continue
        if is_held(one):
            continue
        if one.children and not _have_retired(store, one.children):
            continue
        task = one.spec.id
        home = shards[(task >> SHARD_BLOCK_BITS) % count]
        if home.outbox and has_intent(home, task):
            continue  # clearing it will bring us back here
        forget(store, home, task)
        for made in one.inputs:
            producer = made.producer
            if producer >= 0:
                parent = shards[(producer >> SHARD_BLOCK_BITS) % count].records.get(producer)
                if parent is not None and parent.freed:
                    todo.append(parent)


def _have_retired(store: MemoryStore, tasks: Sequence[int]) -> bool:
    shards, count = store.shards, store.shard_count
    for task in tasks:
        home = shards[(task >> SHARD_BLOCK_BITS) % count]
        record = home.records.get(task, store)
        if record is None or (record is store and store.retired_max):
            continue
        if not isinstance(record, Record) or record.children or not record.freed or record.state != STATE_DONE:
            return False
        if record.held or (record.rare is not None and (record.rare.holders or has_intent(home, task))):
            return False
        forget(store, home, task)  # no task reads its outputs: it retires with its parent
    return True


def forget(store: MemoryStore, home: Shard, task: int) -> None:
    """Keep nothing of a task but that there was one."""
    home.records[task] = None
    if store.retired_max:
        home.retired.append(task)
        if len(home.retired) > store.retired_max:
            oldest = home.retired.popleft()
            if home.records.get(oldest) is None:
                home.records.pop(oldest, None)


def has_intent(home: Shard, task: int) -> bool:
    """Is there something about a task in the outbox of its shard?"""
    key, outbox = task << 2, home.outbox
    return key | SATISFY in outbox or key | REMAKE_FOR in outbox or key | STOP in outbox


@serves(wire.Locate)
def locate(store: MemoryStore, shard: Shard, row: wire.Locate, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return REFUSED if is_over(shard, row.task) else UNKNOWN
    if record.state == STATE_DONE:
        return wire.Available(record.outputs)
    return FINAL_CODE.get(record.state, UNDERWAY)


@serves(wire.AddPlace)
def add_place(store: MemoryStore, shard: Shard, row: wire.AddPlace, now_ns: int) -> AnswerType:
    return _set_places(shard, row.task, row.object, lambda places: (*places, row.node), row.node, True)


@serves(wire.DropPlace)
def drop_place(store: MemoryStore, shard: Shard, row: wire.DropPlace, now_ns: int) -> AnswerType:
    return _set_places(
        shard, row.task, row.object, lambda places: tuple(p for p in places if p != row.node), row.node, False
    )


def _set_places(
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
        if one.object != object_ or (node in one.places) == adding:
            return one
        return Input(one.object, one.size_bytes, one.producer, change(one.places), one.value)

    record.outputs = tuple(changed(one) for one in record.outputs)
    return OK
