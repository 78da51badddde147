"""Many rows of one kind in one call: the work of their handlers, in one go for all plain tasks.

Short tasks are submitted, finished and released by the hundred. Tasks are plain if they read nothing, made at most one
small object, and have no children; a tight loop serves them. All other rows are left to their handlers, in their turn.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import repeat

from daws.model.states import DONE, READY
from daws.model.task import INLINE_BYTES, Input
from daws.store.memory.closed import any_closed
from daws.store.memory.growing import submit
from daws.store.memory.record import Record
from daws.store.memory.references import release
from daws.store.memory.store import HANDLERS, MemoryStore, Shard, serves_many
from daws.wire.store import CLIENT_HOLDER, AnswerType, Finish, FinishSmall, Release, Submit


@serves_many(Submit)
def submit_many(
    store: MemoryStore, shard: Shard, rows: Iterable[Submit], now_ns: int, answers: list[AnswerType]
) -> None:
    records = shard.records
    rows = [*rows]
    specs = [row.spec for row in rows]
    tasks = [spec.id for spec in specs]
    any_dead = bool(shard.dead) or (bool(shard.closed) and any_closed(shard.closed, tasks))
    if (
        not any_dead
        and not [row for row in rows if row.parents or row.outputs]
        and records.keys().isdisjoint(tasks)
        and len(set(tasks)) == len(tasks)
    ):
        none, zero = repeat(()), repeat(0)
        usual = none, repeat(None), none, none, zero, zero, repeat(False), repeat(True)
        records.update(zip(tasks, map(Record, specs, repeat(READY), [row.node for row in rows], *usual), strict=True))
        answers += [None] * len(tasks)
        return
    for row in rows:
        spec = row.spec
        task = spec.id
        if row.parents or row.outputs or task in records or any_dead:
            answers.append(submit(store, shard, row, now_ns))
        else:
            records[task] = Record(spec, READY, row.node, (), None, (), (), 0, 0, False, True)
            answers.append(None)


@serves_many(Finish)
def finish_many(
    store: MemoryStore, shard: Shard, rows: Iterable[Finish], now_ns: int, answers: list[AnswerType]
) -> None:
    rows = [*rows]
    made = [None if row.error or not _is_small(row.outputs) else row.outputs for row in rows]
    _finish_many(store, shard, rows, made, now_ns, answers)


@serves_many(FinishSmall)
def finish_small_many(
    store: MemoryStore, shard: Shard, rows: Iterable[FinishSmall], now_ns: int, answers: list[AnswerType]
) -> None:
    rows = [*rows]
    _finish_many(store, shard, rows, [row.value for row in rows], now_ns, answers)


def _finish_many(
    store: MemoryStore,
    shard: Shard,
    rows: Sequence[Finish | FinishSmall],
    made: Sequence[tuple[Input, ...] | bytes | None],
    now_ns: int,
    answers: list[AnswerType],
) -> None:
    """Finish many tasks. `made` has the outputs for each record, None for a row that its handler has to serve."""
    log, remembers = shard.log, not store.retired_max
    for row, outputs, record in zip(rows, made, map(shard.records.get, [row.task for row in rows]), strict=True):
        if (
            record is None
            or record.state != READY
            or record.owner != row.node
            or record.attempt != row.attempt
            or record.children
            or record.inputs
            or record.rare is not None
            or outputs is None
            or not (record.held or remembers)
        ):
            answers.append(HANDLERS[type(row)](store, shard, row, now_ns))
            continue
        log.append(row.task)
        record.state = DONE
        record.made = outputs
        if not record.held:
            record.freed = bool(outputs)
        answers.append(None)


def _is_small(made: tuple[Input, ...] | bytes) -> bool:
    """Is this nothing, or one object that travels inside records?"""
    return made.__class__ is bytes or not made or (len(made) == 1 and made[0].size_bytes <= INLINE_BYTES)  # type: ignore[union-attr]


@serves_many(Release)
def release_many(
    store: MemoryStore, shard: Shard, rows: Iterable[Release], now_ns: int, answers: list[AnswerType]
) -> None:
    records, retired, outbox = shard.records, shard.retired, shard.outbox
    retired_max = store.retired_max
    if not outbox:
        rows = [*rows]
        tasks = [row.task for row in rows]
        if len(set(tasks)) == len(tasks) and _may_all_go(rows, [records.get(task) for task in tasks]):
            records.update(dict.fromkeys(tasks))
            answers += [None] * len(tasks)
            if retired_max:
                retired.extend(tasks)
                _forget_oldest(shard, len(retired) - retired_max)
            return
    for row in rows:
        task = row.task
        record = records.get(task)
        if (
            record is None
            or record.state != DONE
            or record.children
            or record.inputs
            or record.rare is not None
            or row.holder != CLIENT_HOLDER
            or not record.made
            or not _is_small(record.made)
            or outbox
        ):
            answers.append(release(store, shard, row, now_ns))
            continue
        records[task] = None
        if retired_max:
            retired.append(task)
            if len(retired) > retired_max:
                oldest = retired.popleft()
                if records.get(oldest) is None:
                    records.pop(oldest, None)
        answers.append(None)


def _may_all_go(rows: Iterable[Release], found: list[Record | None]) -> bool:
    """Is each of them the record of a plain task that is done, and is it the client that releases it?"""
    for row, record in zip(rows, found, strict=True):
        if record is None or record.state != DONE or record.children or record.inputs or record.rare is not None:
            return False
        made = record.made
        if row.holder != CLIENT_HOLDER or not made or (made.__class__ is not bytes and not _is_small(made)):
            return False
    return True


def _forget_oldest(shard: Shard, count: int) -> None:
    """Forget the `count` tasks that retired first."""
    records, take = shard.records, shard.retired.popleft
    oldest = [take() for _ in range(count)]
    if any(map(records.get, oldest)):  # some of them were created again
        oldest = [task for task in oldest if records.get(task) is None]
    deque(map(records.pop, oldest, repeat(None)), maxlen=0)
