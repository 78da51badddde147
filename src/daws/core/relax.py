"""Dedicated tasks that would wait for this node for too long: they are shared, so that others may steal them.

How long they would wait follows from how long tasks have taken here. That says nothing about a node on which no run
ends for long: its tasks are longer now than those that ran before. Therefore a timer looks whether any run has ended
(`stall_ns` of `relax`), while all executors are busy and tasks wait for this node alone. It is set only then, and asks
nothing of a run that ends: it compares how many have ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.effects import STALL, SetTimer
from daws.core.fetching import unstage
from daws.core.handlers import fires
from daws.core.placement import enqueue
from daws.core.queues import shared_queue
from daws.core.tuning import arm_stall, disarm_stall, note_stall, set_tt, stay_calm
from daws.model.task import Ready

if TYPE_CHECKING:
    from daws.core.node import NodeCore


def relax(core: NodeCore) -> None:
    """Share dedicated tasks that would wait here for too long."""
    excess = core.strategy.relax.excess(core)
    if excess <= 0:
        stay_calm(core, core.queues.dedicated.count)  # no need to ask again before there are more of them
        return
    core.queues.dedicated.pour_into(shared_queue(core), excess)
    set_tt(core, core.strategy.relax.after_sharing(core))


def watch_for_stall(core: NodeCore) -> None:
    """All executors are busy and tasks wait for this node alone: look again after a while."""
    if core.objects.pressed or not core.tuning.relaxing or not (core.queues.dedicated.count or _waiting(core)):
        return
    arm_stall(core, (core.now_ns, core.lengths.done_count))
    core.out.append(SetTimer(STALL, core.now_ns + _stall_ns(core)))


@fires(STALL)
def look_for_stall(core: NodeCore) -> None:
    """The timer has fired. (Timers of a real clock may be early by a part of a millisecond.)"""
    stall_ns = _stall_ns(core)
    disarm_stall(core, not stall_ns)  # the strategy may have changed meanwhile
    if not stall_ns:
        return
    since_ns, done_count = core.tuning.stall_since
    if core.lengths.done_count != done_count:
        watch_for_stall(core)
    elif core.now_ns - since_ns < stall_ns:
        arm_stall(core)
        core.out.append(SetTimer(STALL, since_ns + stall_ns))
    else:
        relax_stalled(core, core.now_ns - since_ns)


def relax_stalled(core: NodeCore, since_ns: int) -> None:
    """Share dedicated tasks because no run has ended for this long. The tasks that run here are long, so the time that
    the next ones will wait does not follow from the lengths of others. Staged tasks, whose inputs are here already, go
    back into the queue first."""
    if core.idle_count or core.objects.pressed or not core.tuning.relaxing:
        return
    for ready in _waiting(core):
        unstage(core, ready.spec.id, ready.attempt)
        enqueue(core, ready, dedicated=True)
    if core.queues.dedicated.count:
        note_stall(core, since_ns)
        relax(core)
        note_stall(core, 0)
        core.schedule_soon()  # who looks for takers has some to offer


def _stall_ns(core: NodeCore) -> int:
    stall_ns = core.strategy.traits.relax.stall_ns
    return 0 if stall_ns is None else stall_ns(core)


def _waiting(core: NodeCore) -> list[Ready]:
    """Tasks whose inputs are here and that may go back into a queue without losing what was fetched for them."""
    return [one for one in core.fetching.staged if _can_wait(core, one)]


def _can_wait(core: NodeCore, staged: Ready) -> bool:
    if staged.mode or staged.spec.needs is not None:
        return False
    return all(core.strategy.cache.keeps(core, one.size_bytes) for one in staged.inputs)
