"""The fast lane: plain tasks on a node that has nothing else to decide.

A task is plain if it needs one executor of any kind, runs for the usual reason, and reads only objects that travel
inside records (`placement.is_plain`). That is decided once, when the task is queued: a queue knows whether all its
tasks are plain (`ReadyQueue.plain`). The lane of a node is open while nothing but the shared queue can say which task
runs next. Anything else that comes up closes the lane. The next scheduling pass that finds nothing of the kind opens it
again.

The general way (`schedule`, `send_ahead`, `RunEnded`) has the same effects on such tasks, and takes several times as
long. `tests/property/test_lane.py` compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from daws.core.effects import StartRun, StartRuns
from daws.core.events import EventType, RunDone, RunEnded, RunsDone
from daws.core.executors import Run, start
from daws.core.handlers import HANDLERS, handles
from daws.core.lengths import SAMPLE_ALL, SAMPLE_MASK, learn_length
from daws.core.objects import are_small
from daws.core.store_calls import add_ends
from daws.model.task import Input, Ready, TaskSpec
from daws.wire.store import Finish, FinishSmall, Row

if TYPE_CHECKING:
    from daws.core.node import NodeCore

MANY = 8
"""The number of tasks sent ahead from which it pays to deal them to the executors together."""
IS_USED = True
"""Tests switch the lane off with this."""

is_leaf = attrgetter("leaf")


def is_clear(core: NodeCore) -> bool:
    """Is there nothing on this node that decides which task runs next, except its shared queue?"""
    queues, fetching, executors = core.queues, core.fetching, core.executors
    return IS_USED and not (
        queues.dedicated.count
        or queues.doomed
        or fetching.waiting
        or fetching.staged
        or executors.resumable
        or executors.waits_until_ns
        or core.objects.pressed
        or not executors.one_group
        or executors.groups[0].context is not None
    )


def run_plain(core: NodeCore) -> bool:
    """The scheduling pass of a node whose shared queue is plain. False if the general pass has to go on: the lane is
    closed, or no task is left."""
    shared = core.queues.shared
    if not shared.count:
        return False
    if not core.lane_open:
        if not is_clear(core):
            return False
        core.open_lane()
    free = core.executors.plain_free
    if free and shared.count == 1:
        start(core, shared.pop_oldest(), free.pop())
        return False
    if free:
        for ready in shared.cut_oldest(min(len(free), shared.count)):
            start(core, ready, free.pop())
        if not shared.count:
            return False
    if core.lengths.has_short:
        _send_ahead(core)
    if core.is_giver:
        core.look_for_takers()
    return True


def follow(core: NodeCore, run: Run) -> bool:
    """Let the next task take the executor of a run that has ended, if a scheduling pass would do that and nothing else.
    A pass takes up to ten times as long. The lane is open. False if there is more to decide."""
    shared = core.queues.shared
    if not (shared.plain and shared.count) or core.now_ns >= core.membership.leased_until_ns:
        return False
    inflight = core.executors.inflight
    if inflight is None:
        if core.lengths.has_short or not core.one_kind:
            return False
    elif inflight.get(run.slot) != 2 or core.executors.ahead != core.cores or len(inflight) != core.cores:
        return False
    else:
        # Each executor has one task at hand beside the one that it runs, and is to have no more.
        kind = run.ready.spec.kind
        if core.is_giver or not shared.begins_with(kind) or core.ahead_most(kind) != core.cores:
            return False
    start(core, shared.pop_oldest(), run.slot)
    return True


# -- tasks that are sent ahead -----------------------------------------------------------------------------------------


def _send_ahead(core: NodeCore) -> None:
    """Do for plain tasks what `send_ahead` does, many at a time."""
    slots = core.slots_to_queue_at()
    shared, executors = core.queues.shared, core.executors
    while slots and shared.count:
        kind = shared.oldest().spec.kind
        count = min(core.ahead_most(kind, shared.alike is not None) - executors.ahead, shared.count)
        if count <= 0:
            return
        tasks = shared.cut_kind(kind, count)
        if len(tasks) < MANY:
            for ready in tasks:
                core.send_to_first(slots, ready)
            continue
        numbers, dealt = executors.send_all(tasks, slots)
        if not (core.config.starts_together and (shared.alike is not None or _are_alike(tasks))):
            core.out.extend(map(StartRun, numbers, dealt, tasks))
            continue
        if dealt.count(dealt[0]) == len(dealt):
            core.out.append(StartRuns([*numbers], dealt[0], tasks))
            continue
        for slot in dict.fromkeys(dealt):
            mine = [one == slot for one in dealt]
            core.out.append(StartRuns([*compress(numbers, mine)], slot, [*compress(tasks, mine)]))


def _are_alike(tasks: list[Ready]) -> bool:
    """Do these tasks of one kind differ in nothing but their numbers and arguments?"""
    return not any(ready.inputs or ready.spec.timeout_ns or len(ready.spec.outputs) != 1 for ready in tasks)


# -- runs that end together --------------------------------------------------------------------------------------------


def end_together(core: NodeCore, events: Sequence[EventType]) -> Sequence[EventType]:
    """Take in the ends of runs at the beginning of these events as columns; the other events are left."""
    count = next((at for at, event in enumerate(events) if event.__class__ is not RunDone), len(events))
    if count <= 1:
        return events
    ends: Sequence[Any] = events[:count]
    columns = (
        [end.task for end in ends],
        [end.run for end in ends],
        [end.duration_ns for end in ends],
        [end.value for end in ends],
    )
    on_runs_done(core, RunsDone(*columns))
    return events[count:]


@handles(RunDone)
def on_run_done(core: NodeCore, event: RunDone) -> None:
    value = event.value
    HANDLERS[RunEnded](core, RunEnded(event.task, event.run, event.duration_ns, (len(value),), values=(value,)))


@handles(RunsDone)
def on_runs_done(core: NodeCore, event: RunsDone) -> None:
    """Take in as many as possible at a time, any other one in the general way."""
    done, count = 0, len(event.tasks)
    while done < count:
        ended = _end_plain(core, event, done)
        if not ended:
            one = RunDone(event.tasks[done], event.runs[done], event.durations_ns[done], event.values[done])
            on_run_done(core, one)
            ended = 1
        done += ended


def _end_plain(core: NodeCore, event: RunsDone, first: int) -> int:
    """End plain runs of one executor, from the first one on, while runs that were sent ahead are left to it. The result
    is their number. A run that has created tasks is not among them."""
    executors, lengths = core.executors, core.lengths
    inflight, running, done = executors.inflight, executors.running, lengths.done_count
    if inflight is None or core.store.rows is None or core.shard_count > 1 or lengths.last is not None:
        return 0  # rows: the first row decides when the call of this step leaves
    run = running.get(event.tasks[first])
    if run is None or done < SAMPLE_ALL or not IS_USED:
        return 0
    slot = run.slot
    most = inflight.get(slot, 0) - 2  # with the others the executor may fall idle
    if done < core.tuning.adapt_at:
        most = min(most, core.tuning.adapt_at - done - 1)
    if most <= 0:
        return 0
    last = first + most
    tasks, readies = event.tasks[first:last], []
    for run, number in zip(map(running.get, tasks), event.runs[first:last], strict=True):
        if run is None or run.number != number or run.slot != slot or run.spawned or run.suspended:
            break
        ready = run.ready
        if ready.inputs and not are_small(ready.inputs):
            break
        readies.append(ready)
    count = len(readies)
    if not count:
        return 0
    last = first + count
    del tasks[count:]
    executors.end_all(slot, inflight[slot] - count, tasks)
    core.schedule_soon()
    specs = [ready.spec for ready in readies]
    sampled = slice(~done & SAMPLE_MASK, count, SAMPLE_MASK + 1)
    lengths.count_ends(count)
    durations_ns = event.durations_ns[first:last][sampled]
    kinds = [spec.kind for spec in specs[sampled]]
    if len(set(kinds)) == 1:
        learn_length(core, kinds[0], sum(durations_ns), len(kinds))
    else:
        for kind, duration_ns in zip(kinds, durations_ns, strict=True):
            learn_length(core, kind, duration_ns)
    _commit(core, tasks, readies, specs, event.values[first:last])
    return count


def _commit(core: NodeCore, tasks: list[int], readies: list[Ready], specs: list[TaskSpec], values: list[bytes]) -> None:
    """Ask the store to commit runs that have made one small object each. Tasks that read something are of a graph, and
    mostly have children, which are given the full row."""
    here = core.here or core.only_here()
    objects = [spec.outputs[0] for spec in specs]
    attempts = [ready.attempt for ready in readies]
    if core.config.small_finishes and not readies[0].inputs and objects == tasks and all(values):
        rows: list[Row] = [*map(FinishSmall, tasks, attempts, repeat(core.node), values)]
    else:
        outputs = zip(map(Input, objects, map(len, values), tasks, repeat(here), values))
        rows = [*map(Finish, tasks, attempts, repeat(core.node), outputs)]
    add_ends(core, rows, not all(map(is_leaf, specs)))
