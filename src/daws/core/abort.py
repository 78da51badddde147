"""Runs that end before their time: a task is forgotten wherever it stands here, and its executor is free again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.effects import DropObject, StopRun
from daws.core.fetching import unstage
from daws.core.objects import unpin
from daws.core.outliving import let_go_of_spawned
from daws.core.transfer import forget_lent

if TYPE_CHECKING:
    from daws.core.node import NodeCore


def call_off(core: NodeCore, task: int, attempt: int) -> None:
    """Forget a task wherever it stands here, and kill it if it runs."""
    run = core.executors.running.get(task)
    if run is not None and run.ready.attempt <= attempt:
        core.executors.remove_run(task)
        if run.outcome is None:
            core.out.append(StopRun(task, run.number))
        else:  # it has ended, only its commit had to wait
            core.out.extend([DropObject(object_) for object_ in run.ready.spec.outputs])
        if run.holds:
            let_go_of_spawned(core, run)
        if not run.suspended:
            core.executors.release(run)
        unpin(core, run.ready)
        core.schedule_soon()
    if unstage(core, task, attempt):
        core.schedule_soon()  # executors or memory may have been kept for it
    forget_lent(core, task, attempt)
    if core.queues.dedicated.count or core.queues.shared.count:
        core.close_lane()
        core.queues.doom(task, attempt)
    elif core.queues.doomed is not None:
        core.queues.forget_doomed()
