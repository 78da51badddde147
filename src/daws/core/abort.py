"""Runs that end before their time: a task is forgotten wherever it stands here, and its executor is free again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.effects import DropObject, StopRun
from daws.core.executors import Group, Run
from daws.core.fetching import unstage
from daws.core.objects import unpin
from daws.core.outliving import forget_spawned, spawned_by
from daws.core.store_calls import ask
from daws.core.transfer import forget_lent
from daws.model.task import Ready
from daws.wire.store import CLIENT_HOLDER, Release

if TYPE_CHECKING:
    from daws.core.node import NodeCore


def call_off(core: NodeCore, task: int, attempt: int) -> None:
    """Forget a task wherever it stands here, and kill it if it runs."""
    run = core.running.get(task)
    if run is not None and run.ready.attempt <= attempt:
        del core.running[task]
        if run.outcome is None:
            core.out.append(StopRun(task, run.number))
        else:  # it has ended, only its commit had to wait
            core.out.extend([DropObject(object_) for object_ in run.ready.spec.outputs])
        if run.holds:
            let_go_of_spawned(core, run)
        if not run.suspended:
            release_slot(core, run)
        unpin(core, run.ready)
        core.schedule_soon()
    if unstage(core, task, attempt):
        core.schedule_soon()  # executors or memory may have been kept for it
    forget_lent(core, task, attempt)
    if core.dedicated.count or core.shared.count:
        if core.doomed is None:
            core.doomed = {}
            core.plain = False
        core.doomed[task] = max(attempt, core.doomed.get(task, 0))
    else:
        core.doomed = None


def is_doomed(core: NodeCore, ready: Ready) -> bool:
    """Was this run called off while it stood in a queue?"""
    assert core.doomed is not None
    attempt = core.doomed.get(ready.spec.id)
    return attempt is not None and ready.attempt <= attempt


def let_go_of_spawned(core: NodeCore, run: Run) -> None:
    """A run is over: it neither waits for the tasks that it spawned nor asks for what they made."""
    names = spawned_by(run)
    forget_spawned(core, names)
    for name in names:
        ask(core, name, Release(name, CLIENT_HOLDER))


def release_slot(core: NodeCore, run: Run) -> None:
    """An executor falls free (or loses one of the runs that were sent to it)."""
    slot, inflight = run.slot, core.inflight
    if inflight is not None:
        sent = inflight.get(slot)
        if sent is not None:
            core.ahead -= 1
            if sent > 2:
                inflight[slot] = sent - 1
            else:
                del inflight[slot]
            return
    group = core.groups[0] if len(core.groups) == 1 else group_of(core, slot)
    group.free.append(slot)
    if run.more_slots:
        group.free.extend(run.more_slots)
        run.more_slots = ()


def group_of(core: NodeCore, slot: int) -> Group:
    """The executors among which this one is."""
    first = 0
    for group in core.groups:
        if slot < first + group.count:
            return group
        first += group.count
    raise AssertionError(f"node {core.node} has no executor {slot}")
