"""Where the tasks of a node are. A task has one place here, from when this node owns it until its run was reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from daws.core.store_calls import unanswered_rows, waiting_rows
from daws.model.task import REPLICA, Ready
from daws.wire.store import Finish, FinishSmall, Unready

if TYPE_CHECKING:
    from daws.core.node import NodeCore


def places(core: NodeCore) -> Iterator[tuple[str, Ready]]:
    """Every task that is to run, runs or waits here, and the place where it is."""
    for ready in core.queues.dedicated.all():
        yield "dedicated", ready
    for ready in core.queues.shared.all():
        yield "shared", ready
    for one in core.fetching.waiting.values():
        yield "staging", one.ready
    for ready in core.fetching.staged:
        yield "staged", ready
    for run in core.executors.running.values():
        yield "suspended" if run.suspended else "running", run.ready
    for ready in (core.transfer.announcing or {}).values():
        yield "announcing", ready
    for ready in core.queues.stranded or ():
        yield "stranded", ready


def holds(core: NodeCore, task: int, attempt: int = 0, move: int = 0) -> bool:
    """Is this task anywhere here, or on its way out, with this attempt or a later one? A task that was lent before this
    move has come back since. (A long search, for rare doubts.)"""
    lent = core.transfer.lent.get(task)
    if lent is not None and lent.ready.attempt >= attempt and lent.ready.move >= move:
        return True
    if any(ready.spec.id == task and ready.attempt >= attempt for _, ready in places(core)):
        return True
    return ends(core, task, attempt)


def holds_itself(core: NodeCore, task: int, move: int) -> bool:
    """Is this task here, and not only a copy of it, with this move number or a later one? (As long a search.)"""
    lent = core.transfer.lent.get(task)
    if lent is not None and lent.ready.move >= move:
        return True
    return any(ready.spec.id == task and ready.move >= move and not ready.mode & REPLICA for _, ready in places(core))


def ends(core: NodeCore, task: int, attempt: int = 0) -> bool:
    """Has a run of it ended (of this attempt, or a later one), or was it given up, without the store's having answered?
    The end of a copy that has lost is none of what came after."""
    return any(
        row.task == task and (not isinstance(row, Finish | FinishSmall) or row.attempt >= attempt)
        for row in (*unanswered_rows(core), *waiting_rows(core))
        if isinstance(row, Finish | FinishSmall | Unready)
    )
