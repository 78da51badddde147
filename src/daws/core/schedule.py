"""Executors: which ready task runs next, what is sent ahead, what is suspended, and what a finished run leaves behind.

The scheduling pass runs once at the end of a step. It starts tasks whose inputs are here, has the inputs of the next
ones fetched meanwhile, and when nothing is left to do it looks for work elsewhere.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from daws.core.effects import ResumeRun
from daws.core.events import Pressure, RunEnded
from daws.core.executors import Group, Run, start
from daws.core.fetching import keep_memory_for, put_back, sort_staged, stage, take_staged
from daws.core.handlers import handles
from daws.core.lengths import count_end
from daws.core.objects import end_reading, missing_inputs, pin, set_pressed, unpin
from daws.core.outliving import ask_whether_outlived, end_waiting, let_go_of_spawned
from daws.core.plain import follow, run_plain
from daws.core.queues import is_doomed, next_queue
from daws.core.reserve import waits_for_better
from daws.core.transfer import claim_own
from daws.model.task import REPLICA, SUSPECT, Ready
from daws.wire.store import ANNOUNCE, RETRY

if TYPE_CHECKING:
    from daws.core.node import NodeCore

CRASHES_MAX = 3
"""A task whose worker died under it is tried again so often, if it may not be tried more often anyway."""
DEATHS_WAITED_MAX = 16
"""The same number for a task that was suspended: other tasks are to blame, but these may be tasks that it spawned
itself, each time anew."""
LOOKED_AT_MAX = 1024
"""The number of tasks that are looked through, under pressure, for one that makes room."""


def schedule(core: NodeCore) -> None:
    """Use every idle executor, fetch ahead, and look for work or for takers."""
    if core.now_ns >= core.membership.leased_until_ns:
        return  # too close to the end of the lease to start anything new; the next renewal schedules again
    queues, executors = core.queues, core.executors
    dedicated, shared = queues.dedicated, queues.shared
    if shared.plain and run_plain(core):
        return
    if not (dedicated.count or shared.count or core.fetching.staged or executors.resumable):
        wants_more = not (core.fetching.waiting or core.objects.pressed) or (core.is_giver and asks_meanwhile(core))
        if wants_more and (executors.plain_free or (len(executors.groups) > 1 and core.idle_count)):
            if executors.inflight:
                core.recall_soon()
            core.look_for_work()
        return
    if dedicated.count > core.tuning.calm_count and core.tuning.relaxing:
        core.relax()
    if executors.resumable:
        resume(core)
    idle = False
    for group in executors.groups:
        free = group.free
        while free:
            makes_room = core.objects.pressed and core.is_busy()
            some = next_to_make_room(core, group) if makes_room else next_ready(core, group)
            if some is None:
                idle = True
                break
            needs = some.spec.needs
            if needs is None:
                start(core, some, free.pop())
                continue
            if needs.cores > len(free):
                # A wide task keeps the executors that fall free until there are enough of them.
                put_back(core, some)
                break
            if needs.memory_bytes and not core.may_take_memory(some):
                core.stand_in_line(some)
                if feed(core):
                    continue
                if not core.objects.pressed:
                    go_on_beside(core, group, needs.cores)
                break
            start(core, some, free.pop(), group.take(needs.cores - 1))
    if not (core.tuning.stall_armed or idle) and (dedicated.count or core.fetching.staged):
        core.watch_for_stall()
    if dedicated.count or shared.count:
        if not (idle or core.objects.pressed):
            if core.now_ns < core.fetching.ahead_until_ns and core.config.fetches_ahead:
                fetch_ahead(core)
            if core.lengths.has_short:
                core.send_ahead()
        if core.is_giver:
            core.look_for_takers()
        # Executors of one sort find nothing in a queue that others have filled.
        idle = idle and not executors.one_group
    if idle and (not (core.fetching.waiting or core.objects.pressed) or (core.is_giver and asks_meanwhile(core))):
        if executors.inflight:
            core.recall_soon()
        core.look_for_work()


def asks_meanwhile(core: NodeCore) -> bool:
    """May the node look for work while inputs are on their way? Only if more executors are idle than tasks wait for
    inputs."""
    return not core.objects.pressed and len(core.fetching.waiting) < core.idle_count


def next_ready(core: NodeCore, group: Group) -> Ready | None:
    """Take the next task for an executor of this group. Tasks whose inputs are not here are staged on the way."""
    patient = core.patience > 0
    if core.fetching.staged and not (patient and queue_goes_first(core)):
        staged = next_staged(core, group)
        if staged is not None:
            return staged
    if core.fetching.waiting and not core.config.fetches_ahead and len(core.fetching.waiting) >= core.idle_count:
        return None  # every idle executor waits for a task of its own
    context = group.context
    dedicated, shared = core.queues.dedicated, core.queues.shared
    while True:
        first = next_queue(core)
        if patient and (core.fetching.waiting or core.objects.finishing):
            head = first.peek()
            if head is not None and head.spec.rank and not missing_inputs(core, head) and waits_for_better(core, head):
                return None
        elif core.executors.waits_until_ns:
            core.executors.wait_until(0)  # nothing is to come that an executor could be kept for
        ready = first.pop(context) if first.count else None
        if ready is None:
            second = shared if first is dedicated else dedicated
            if not second.count or (ready := second.pop(context)) is None:
                return next_staged(core, group) if patient and core.fetching.staged else None
        if core.queues.doomed and is_doomed(core, ready):
            continue
        if ready.mode & SUSPECT:
            claim_own(core, ready, ANNOUNCE)
            continue
        if ready.inputs:
            missing = missing_inputs(core, ready)
            if missing:
                stage(core, ready, missing)
                most = 2 * core.cores if core.config.fetches_ahead else core.idle_count
                if len(core.fetching.waiting) >= most:
                    return next_staged(core, group) if patient and core.fetching.staged else None
                continue
            if core.objects.copies:
                pin(core, ready)
        needs = ready.spec.needs
        if needs is not None and needs.cores > group.count:
            put_back(core, ready)  # for another group of executors
            continue
        return ready


def feed(core: NodeCore) -> bool:
    """Start the task that waits for memory, on executors of any group, if there is enough memory by now."""
    ready = core.waits_for_memory()
    if ready is None or not core.may_take_memory(ready) or missing_inputs(core, ready):
        return False
    assert ready.spec.needs is not None
    cores = ready.spec.needs.cores
    for group in core.executors.groups:
        if len(group.free) >= cores and fits(core, ready, group):
            take_staged(core, next(at for at, one in enumerate(core.fetching.staged) if one is ready))
            start(core, ready, group.take_one(), group.take(cores - 1))
            return True
    keep_memory_for(core, ready)
    return False


def go_on_beside(core: NodeCore, group: Group, kept: int) -> None:
    """While a task waits for memory, let tasks without needs use the executors that it does not need."""
    while len(group.free) > kept:
        ready = next_modest(core, group)
        if ready is None:
            return
        start(core, ready, group.take_one())


def next_modest(core: NodeCore, group: Group) -> Ready | None:
    """Take the next task without needs whose inputs are here, if it is the first in its queue."""
    for index, one in enumerate(core.fetching.staged):
        if one.spec.needs is None and fits(core, one, group) and not missing_inputs(core, one):
            take_staged(core, index)
            return one
    for queue in (core.queues.dedicated, core.queues.shared):
        while (ready := queue.peek()) is not None:
            if ready.spec.needs is not None or ready.mode & SUSPECT or not fits(core, ready, group):
                break
            if ready.inputs and missing_inputs(core, ready):
                break
            queue.pop_head()
            if core.queues.doomed and is_doomed(core, ready):
                continue
            pin(core, ready)
            return ready
    return None


def queue_goes_first(core: NodeCore) -> bool:
    """Is the first task of the queues to run before all of those whose inputs were fetched?"""
    key = core.strategy.order.key
    first = next_queue(core).first_key()
    return all(one.spec.needs is None and first < key(core, one) for one in core.fetching.staged)


def next_staged(core: NodeCore, group: Group) -> Ready | None:
    """The first task for an executor of this group whose inputs were fetched."""
    if core.patience and len(core.fetching.staged) > 1 and all(one.spec.needs is None for one in core.fetching.staged):
        sort_staged(core)
    for index, one in enumerate(core.fetching.staged):
        if fits(core, one, group):
            if core.patience and waits_for_better(core, one):
                return None
            take_staged(core, index)
            missing = missing_inputs(core, one)
            if not missing:
                return one
            # Another run of it was committed meanwhile, or its input was evicted: fetch again what is missing.
            unpin(core, one)
            stage(core, one, missing)
            return None
    return None


def next_to_make_room(core: NodeCore, group: Group) -> Ready | None:
    """The first task for an executor of this group whose end lets go of objects."""
    for index, one in enumerate(islice(core.fetching.staged, LOOKED_AT_MAX)):
        if fits(core, one, group) and core.makes_room(one) and not missing_inputs(core, one):
            take_staged(core, index)
            return one
    return None


def fits(core: NodeCore, ready: Ready, group: Group) -> bool:
    needs = ready.spec.needs
    if needs is None:
        return group.context is None or core.strategy.match.preference(None, group.context) >= 0
    return needs.cores <= group.count and core.strategy.match.preference(needs.context, group.context) >= 0


@handles(RunEnded)
def on_run_ended(core: NodeCore, event: RunEnded) -> None:
    task = event.task
    executors = core.executors
    running = executors.running
    run = running.pop(task, None) if running else None
    if run is None:
        return
    if run.number != event.run or run.growing:
        running[task] = run
        if run.number == event.run:
            run.end_later(event)  # what it spawned must be in the store before it may count as done
            if run.holds and core.keeping is not None and core.shard_count > 1:
                ask_whether_outlived(core, run)
        return
    ready = run.ready
    if core.spawning.growing:
        end_waiting(core, task)
    if run.holds:
        let_go_of_spawned(core, run)
    if not event.error:
        count_end(core, ready.spec.kind, event.duration_ns)
    if run.suspended:
        core.schedule_soon()
    elif run.more_slots or not (core.lane_open and follow(core, run)):
        executors.release(run)
        core.schedule_soon()
    if ready.inputs:
        end_reading(core, ready)
    if event.error:
        if ready.mode & REPLICA:
            return  # only a copy: the owner's run decides
        if ready.attempt < max(ready.spec.retries, tries_more(event)):
            claim_own(core, ready, RETRY)
            return
    core.finish(ready, event.sizes, event.error, event.values, event.failure)


def tries_more(event: RunEnded) -> int:
    """The number of attempts that a task has at least if a run of it ended like this."""
    if not event.retry:
        return 0
    return DEATHS_WAITED_MAX if event.waited else CRASHES_MAX


def fetch_ahead(core: NodeCore) -> None:
    """While all executors are busy, bring in what the next tasks will read."""
    while True:
        queue = next_queue(core)
        ready = queue.peek()
        if ready is None or not ready.inputs or ready.mode & SUSPECT:
            return
        missing = missing_inputs(core, ready)
        if not missing or len(core.fetching.waiting) + len(core.fetching.staged) >= 2 * core.cores:
            return
        queue.pop_head()
        if not (core.queues.doomed and is_doomed(core, ready)):
            stage(core, ready, missing)


@handles(Pressure)
def on_pressure(core: NodeCore, event: Pressure) -> None:
    set_pressed(core, event.on)
    core.close_lane()
    core.schedule_soon()
    if event.on:
        for queue in (core.queues.dedicated, core.queues.shared):
            queue.take_out([ready for ready in queue.all() if core.step_forward(ready)])
        if core.executors.inflight:
            core.recall_ahead(core.executors.ahead + 2)


def resume(core: NodeCore) -> None:
    """Tasks whose children have ended come before all others: they hold memory and others wait for them."""
    assert core.executors.resumable is not None
    waiting: list[Run] = []
    for run in core.executors.resumable:
        if core.executors.running.get(run.ready.spec.id) is not run:
            continue
        for group in core.executors.groups:
            needs = run.ready.spec.needs
            cores = 1 if needs is None else needs.cores
            enough = needs is None or core.memory_fits(needs.memory_bytes)
            if enough and len(group.free) >= cores and fits(core, run.ready, group):
                run.resume(group.take_for(run), group.take(cores - 1))
                core.out.append(ResumeRun(run.ready.spec.id, run.number, run.slot, run.more_slots))
                break
        else:
            waiting.append(run)
    core.executors.wait_longer(waiting)
