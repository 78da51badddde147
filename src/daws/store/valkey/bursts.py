"""Many rows of one kind in one call, as in `daws.store.memory.bursts`, on cells whose records are cached.

Short tasks are submitted, finished and released by the hundred. The new record of a plain task is noted at once
(`_Records.plain`), without a copy for the handlers that would have to be compared afterwards. All other rows are left
to their handlers, in their turn.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from daws.model.states import DONE, READY
from daws.model.task import INLINE_BYTES
from daws.store.memory.closed import is_closed
from daws.store.memory.growing import submit
from daws.store.memory.life import finish
from daws.store.memory.record import Record
from daws.store.memory.references import release
from daws.store.valkey.cells import ABSENT
from daws.store.valkey.view import CachedRecord
from daws.wire.store import CLIENT_HOLDER, AnswerType, Finish, Release, Row, Submit

if TYPE_CHECKING:
    from daws.store.valkey.attempt import Attempt


def _submit(attempt: "Attempt", rows: Iterable[Submit], now_ns: int, answers: list[AnswerType]) -> None:
    shard, stamp = attempt.here, attempt.here.new_stamp
    cache, looked, plain, closed = shard.cache, shard.records.looked, shard.records.plain, shard.closed
    any_dead = bool(shard.dead)
    for row in rows:
        spec = row.spec
        task = spec.id
        is_new = cache.get(task) == ABSENT and task not in looked and task not in plain
        if row.parents or row.outputs or any_dead or not is_new or (closed and is_closed(closed, task)):
            answers.append(submit(attempt, shard, row, now_ns))
        else:
            plain[task] = CachedRecord(stamp, Record(spec, READY, row.node, (), None, (), (), 0, 0, False, True))
            answers.append(None)


def _finish(attempt: "Attempt", rows: Iterable[Finish], now_ns: int, answers: list[AnswerType]) -> None:
    shard, stamp = attempt.here, attempt.here.new_stamp
    cache, looked, plain, log = shard.cache, shard.records.looked, shard.records.plain, shard.log
    for row in rows:
        task, node, outputs = row.task, row.node, row.outputs
        cell: Any = cache.get(task)
        if (
            cell.__class__ is not CachedRecord
            or (record := cell.record) is None
            or record.state != READY
            or record.owner != node
            or record.attempt != row.attempt
            or not record.held
            or record.children
            or record.inputs
            or row.error
            or (outputs and (len(outputs) > 1 or outputs[0].size_bytes > INLINE_BYTES))
            or task in looked
            or task in plain
        ):
            answers.append(finish(attempt, shard, row, now_ns))
            continue
        log.append(task)
        ended = Record(
            record.spec, DONE, node, (), record.edges, (), outputs, record.move, record.attempt, record.freed, True
        )
        plain[task] = CachedRecord(stamp, ended, cell.stamp)
        answers.append(None)


def _release(attempt: "Attempt", rows: Iterable[Release], now_ns: int, answers: list[AnswerType]) -> None:
    shard, stamp = attempt.here, attempt.here.new_stamp
    cache, looked, plain = shard.cache, shard.records.looked, shard.records.plain
    for row in rows:
        task = row.task
        cell: Any = cache.get(task)
        if (
            cell.__class__ is not CachedRecord
            or (record := cell.record) is None
            or record.state != DONE
            or record.children
            or record.inputs
            or row.holder != CLIENT_HOLDER
            or len(record.outputs) != 1
            or record.outputs[0].size_bytes > INLINE_BYTES
            or task in looked
            or task in plain
        ):
            answers.append(release(attempt, shard, row, now_ns))
            continue
        plain[task] = CachedRecord(stamp, None, cell.stamp)
        answers.append(None)


BURSTS: dict[type[Row], Callable[["Attempt", Any, int, list[AnswerType]], None]] = {
    Submit: _submit,
    Finish: _finish,
    Release: _release,
}
