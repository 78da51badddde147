"""Short tasks that are sent ahead: they wait at the executors themselves, so that no executor waits for this node."""

from __future__ import annotations

from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

from daws.core.effects import RECALL, RecallRun, SetTimer
from daws.core.empty import EMPTY
from daws.core.events import RunRecalled
from daws.core.executors import Run, start
from daws.core.fetching import put_back
from daws.core.handlers import fires, handles
from daws.core.objects import missing_inputs, pin
from daws.core.queues import is_doomed, next_queue
from daws.model.task import SUSPECT, Ready

if TYPE_CHECKING:
    from daws.core.node import NodeCore

BAG_FACTOR = 4
"""How many times more tasks may wait at an executor if they are started together and only new tasks of their kind are
queued. The fixed cost of a batch still shows then. In a graph, though, other tasks would hear later of what these have
made."""


def send_ahead(core: NodeCore) -> None:
    """Queue short tasks at the executors themselves, so that none of them waits for this node between two tasks.

    Only kinds whose length is known, only where everything they read is here, and never beside a suspect task.
    """
    if not core.executors.one_group or core.executors.groups[0].context is not None:
        return
    slots: list[tuple[int, int]] | None = None
    while True:
        queue = next_queue(core)
        ready = queue.peek() if queue.count else None
        if ready is None or ready.spec.needs is not None or ready.mode & SUSPECT:
            return
        if core.executors.ahead >= ahead_most(core, ready.spec.kind):
            return
        if ready.inputs and missing_inputs(core, ready):
            return
        if slots is None:
            slots = slots_to_queue_at(core)
        if not slots:
            return  # all that run here are long: who is idle elsewhere may have it
        queue.pop_head()
        if core.queues.doomed and is_doomed(core, ready):
            continue
        if core.objects.copies:
            pin(core, ready)
        send_to_first(core, slots, ready)


def send_to_first(core: NodeCore, slots: list[tuple[int, int]], ready: Ready) -> None:
    """Send a task to the executor that has the fewest."""
    sent, slot = slots[0]
    heapreplace(slots, (sent + 1, slot))
    core.executors.send(slot, sent + 1)
    start(core, ready, slot)


def ahead_most(core: NodeCore, kind: int, of_bag: bool = False) -> int:
    """How many tasks of this kind may wait at the executors; none if it is not known to be short.

    At each of them no more than were seen: one that is short by chance says little of those behind it, and what waits
    there is hidden from thieves. Of a bag of tasks there may be more: no task that becomes ready stands behind them.
    Few tasks that make large objects may wait: the tasks that follow them come before the next ones, and free memory.
    """
    seen = core.lengths.kinds.get(kind)
    if seen is None:
        return 0
    config, cores = core.config, core.cores
    most = config.ahead_ns * cores * seen.count // (seen.total_ns or 1)
    if most < cores and seen.total_ns <= config.next_ns * seen.count:
        return cores
    count_max = config.ahead_count_max
    if seen.made_bytes > config.ahead_bytes // count_max:
        count_max = config.ahead_bytes // seen.made_bytes or 1
    elif of_bag and config.starts_together:
        count_max *= BAG_FACTOR
    return min(most, cores * min(seen.count, count_max))


def slots_to_queue_at(core: NodeCore) -> list[tuple[int, int]]:
    """A heap of (number of runs that were sent to the executor, executor). It leaves out executors that run a task that
    is wide, suspect or not known to be short: such a run is the only one of its executor."""
    inflight, kinds, short_ns = core.executors.inflight or EMPTY, core.lengths.kinds, core.config.short_ns
    heap = [(sent, slot) for slot, sent in inflight.items()]
    if len(heap) < core.cores:
        for run in core.executors.running.values():
            if run.slot in inflight or run.suspended:
                continue
            spec = run.ready.spec
            seen = kinds.get(spec.kind)
            if seen and seen.total_ns <= short_ns * seen.count and spec.needs is None and not run.ready.mode & SUSPECT:
                heap.append((1, run.slot))
    heapify(heap)
    return heap


def recall_soon(core: NodeCore) -> None:
    """An executor is idle while tasks wait at others behind runs, which may be unusually long. Mostly they are not, and
    a recall costs more than a short task takes. Therefore tasks are recalled only after a while."""
    if not core.config.recall_ns:
        recall_ahead(core)
    elif not core.executors.recall_armed:
        core.executors.arm_recall(True)
        core.out.append(SetTimer(RECALL, core.now_ns + core.config.recall_ns))


@fires(RECALL)
def recall_now(core: NodeCore) -> None:
    """Recall runs if an executor is still idle."""
    core.executors.arm_recall(False)
    waiting = core.queues.dedicated.count or core.queues.shared.count or core.fetching.staged
    if core.executors.inflight and core.executors.plain_free and not waiting:
        recall_ahead(core)


def recall_ahead(core: NodeCore, kept: int = 2) -> None:
    """Recall half of the runs that wait at executors, the last ones. Of `kept` runs one stays, and the first always."""
    assert core.executors.inflight is not None
    behind: dict[int, list[Run]] = {slot: [] for slot in sorted(core.executors.inflight)}
    for run in core.executors.running.values():
        if run.slot in behind and not run.suspended:
            behind[run.slot].append(run)
    for runs in behind.values():
        asked = sum(run.recalled for run in runs)
        for run in runs[max(1, -(-len(runs) // kept)) :]:
            if not asked and not run.recalled:
                run.recall()
                core.out.append(RecallRun(run.ready.spec.id, run.number))


@handles(RunRecalled)
def on_run_recalled(core: NodeCore, event: RunRecalled) -> None:
    run = core.executors.running.get(event.task)
    if run is None or run.number != event.run:
        return
    core.executors.remove_run(event.task)
    core.executors.release(run)
    put_back(core, run.ready)
    core.schedule_soon()


def recall_behind(core: NodeCore, run: Run) -> None:
    """Recall runs that were sent ahead behind a suspended run, so that they do not wait for it."""
    if core.executors.inflight is None or run.slot not in core.executors.inflight:
        return
    for other in core.executors.running.values():
        if other.slot == run.slot and other is not run and not other.suspended:
            core.out.append(RecallRun(other.ready.spec.id, other.number))
