"""Memory: tasks that run together never declare more than their node has.

A task that does not fit waits beside the queues, as a wide task waits for executors. Memory that falls free meanwhile
is kept for it: no other task that declares memory starts before it, so a big task is not starved by many small ones.
Tasks that declare nothing may go on, on executors that it does not need. A suspended run gives its memory back together
with its executor, because a task and those that it waits for could be too much for their node. It comes before all
others when it goes on.

How much is in use is added up when somebody asks: only nodes with such tasks pay for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.fetching import add_staged, keep_memory_for
from daws.model.task import Ready

if TYPE_CHECKING:
    from daws.core.node import NodeCore


def memory_used(core: NodeCore) -> int:
    """The bytes that the tasks that run here have declared."""
    used = 0
    for run in core.executors.running.values():
        needs = run.ready.spec.needs
        if needs is not None and not run.suspended:
            used += needs.memory_bytes
    return used


def memory_fits(core: NodeCore, wanted_bytes: int) -> bool:
    limit = core.info.memory_bytes
    return not wanted_bytes or not limit or memory_used(core) + wanted_bytes <= limit


def may_take_memory(core: NodeCore, ready: Ready) -> bool:
    """May this task start now? If not, and nobody waits for memory yet, it is the next to get some."""
    needs = ready.spec.needs
    if needs is None or not needs.memory_bytes or not core.info.memory_bytes:
        return True
    first = waits_for_memory(core)
    if (first is not None and first is not ready) or _resumes(core):
        return False
    if memory_fits(core, needs.memory_bytes):
        keep_memory_for(core, None)
        return True
    keep_memory_for(core, ready)
    return False


def waits_for_memory(core: NodeCore) -> Ready | None:
    """The task for which memory is kept, if it was not called off meanwhile."""
    first = core.fetching.hungry
    return first if first is not None and any(one is first for one in core.fetching.staged) else None


def stand_in_line(core: NodeCore, ready: Ready) -> None:
    """Back to those whose inputs are here: who waits for memory to their head, others that want some right behind."""
    first = waits_for_memory(core)
    at = 0 if first is None else 1 + next(index for index, one in enumerate(core.fetching.staged) if one is first)
    add_staged(core, ready, at)


def _resumes(core: NodeCore) -> bool:
    """Is there a task that could go on if it had its memory back?"""
    for run in core.executors.resumable or ():
        needs = run.ready.spec.needs
        if needs is not None and needs.memory_bytes:
            return True
    return False
