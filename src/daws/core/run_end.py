"""Short runs end in bursts: what `on_run_ended` does with each of them, in one go for all that are alike.

A worker that has short tasks waiting reports many ends at once. Where all of them are the plain kind (sent ahead, read
nothing large, made one small object, spawned nothing), a tight loop does the same in a third of the time. Any other
event is left to the usual handlers, in its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING

from daws.core.events import EventType, RunDone, RunEnded, RunsDone
from daws.core.handlers import HANDLERS, handles
from daws.core.lengths import SAMPLE_ALL, SAMPLE_MASK, count_end, learn_length
from daws.core.objects import are_small
from daws.core.store_calls import add_ends
from daws.wire.store import Finish, FinishSmall, Row

if TYPE_CHECKING:
    from daws.core.node import NodeCore

is_leaf = attrgetter("leaf")


def end_together(core: NodeCore, events: Sequence[EventType]) -> Sequence[EventType]:
    """Take in the plain ends at the beginning of these events; what is left is for the usual handlers."""
    if core.store.rows is None:  # the first decides when the rows of this step leave
        HANDLERS[type(events[0])](core, events[0])
        events = events[1:]
    rows: list[Row] = []
    is_awaited = False
    inflight, running = core.executors.inflight, core.executors.running
    if core.store.rows is None or inflight is None or core.shard_count > 1 or core.plain:
        return events
    node, here = core.node, core.here or core.only_here()
    first = done = core.lengths.done_count
    look_at = _next_look(core)
    slot, sent = -1, 0
    for event in events:
        if event.__class__ is not RunDone:
            break
        task = event.task
        run = running.get(task)
        if run is None or run.number != event.run or run.spawned or run.suspended:
            break
        ready = run.ready
        if ready.inputs and not are_small(ready.inputs):
            break
        if run.slot != slot:  # mostly all are of one executor
            if sent:
                inflight[slot] = sent
            slot = run.slot
            sent = inflight.get(slot, 0)
        if sent <= 2:  # the executor may fall idle now
            break
        sent -= 1
        del running[task]
        done += 1
        if done == look_at:
            core.lengths.count_ends(done - core.lengths.done_count - 1)
            count_end(core, ready.spec.kind, event.duration_ns)
            look_at = _next_look(core)
        spec, value = ready.spec, event.value
        rows.append(Finish(task, ready.attempt, node, ((spec.outputs[0], len(value), task, here, value),)))
        if not spec.leaf:
            is_awaited = True
    ended = done - first
    if ended:
        add_ends(core, rows, is_awaited)
        core.lengths.count_ends(done - core.lengths.done_count)
        core.executors.end_sent(slot, sent, ended)
        core.schedule_soon()
    return events[ended:]


@handles(RunDone)
def on_run_done(core: NodeCore, event: RunDone) -> None:
    """One that came alone, or that is not of the plain kind."""
    value = event.value
    HANDLERS[RunEnded](core, RunEnded(event.task, event.run, event.duration_ns, (len(value),), values=(value,)))


@handles(RunsDone)
def on_runs_done(core: NodeCore, event: RunsDone) -> None:
    """Column by column, all that come first and are plain; the others as if each had come by itself."""
    if core.store.rows is None:
        _end_slowly(core, event, 0, 1)  # it decides when the rows of this step leave
        done = 1
    else:
        done = 0
    done += _end_columns(core, event, done)
    if done < len(event.tasks):
        _end_slowly(core, event, done, len(event.tasks))


def _end_slowly(core: NodeCore, event: RunsDone, first: int, last: int) -> None:
    part = slice(first, last)
    columns = event.tasks[part], event.runs[part], event.durations_ns[part], event.values[part]
    rest = [*map(RunDone, *columns)]
    if len(rest) > 1 and core.executors.inflight is not None:
        rest = end_together(core, rest)  # type: ignore[assignment]
    for one in rest:
        on_run_done(core, one)


def _end_columns(core: NodeCore, event: RunsDone, first: int) -> int:
    """How many were taken in: none, if anything about them is unusual."""
    inflight, running = core.executors.inflight, core.executors.running
    done = core.lengths.done_count
    if (
        core.store.rows is None
        or inflight is None
        or core.shard_count > 1
        or core.plain
        or core.lengths.last is not None
    ):
        return 0
    tasks, numbers = event.tasks[first:], event.runs[first:]
    found = [*map(running.get, tasks)]
    if not found or found[0] is None:
        return 0
    slot = found[0].slot
    count = min(len(tasks), inflight.get(slot, 0) - 2)  # with the others the executor may fall idle
    if count <= 0 or done < SAMPLE_ALL or done < core.tuning.adapt_at <= done + count:
        return 0
    readies = []
    for run, number in zip(found, numbers, strict=True):
        if run is None or run.number != number or run.slot != slot or run.spawned or run.suspended:
            return 0
        ready = run.ready
        if ready.inputs and not are_small(ready.inputs):
            return 0
        readies.append(ready)
    if count < len(tasks):
        del tasks[count:], readies[count:]
    specs = [ready.spec for ready in readies]
    values = event.values[first : first + count]
    here = core.here or core.only_here()
    for task in tasks:
        del running[task]
    core.executors.end_sent(slot, inflight[slot] - count, count)
    core.schedule_soon()
    core.lengths.count_ends(count)
    sampled = slice(~done & SAMPLE_MASK, count, SAMPLE_MASK + 1)
    durations_ns = event.durations_ns[first:][sampled]
    kinds = [spec.kind for spec in specs[sampled]]
    if len(set(kinds)) == 1:
        learn_length(core, kinds[0], sum(durations_ns), len(kinds))
    else:
        for kind, duration_ns in zip(kinds, durations_ns, strict=True):
            learn_length(core, kind, duration_ns)
    objects = [spec.outputs[0] for spec in specs]
    attempts = [ready.attempt for ready in readies]
    if core.config.small_finishes and objects == tasks and all(values):
        rows: list[Row] = [*map(FinishSmall, tasks, attempts, repeat(core.node), values)]
    else:
        outputs = zip(zip(objects, map(len, values), tasks, repeat(here), values))
        rows = [*map(Finish, tasks, attempts, repeat(core.node), outputs)]
    add_ends(core, rows, not all(map(is_leaf, specs)))
    return count


def _next_look(core: NodeCore) -> int:
    """After which end there is more to do than to count it."""
    done = core.lengths.done_count + 1
    sampled = done if done < SAMPLE_ALL else (done + SAMPLE_MASK) & ~SAMPLE_MASK
    adapt_at = core.tuning.adapt_at  # below `done` if the strategy never adapts
    return adapt_at if done <= adapt_at < sampled else sampled
