"""Room for objects is short: first what makes room, and never nothing.

The driver says when the objects here take more room than they may, and when there is enough again (`Pressure`). In
between, tasks that read objects which lie here come before all others, and those whose end lets go of some may start as
always. Any other task could only make more: one of them starts when nothing else runs. Thus objects are read before
more are made, and a node under pressure still comes to an end. It takes back what it has sent ahead, fetches nothing
ahead and looks for no work elsewhere; others may take what waits here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.fetching import add_staged
from daws.core.objects import missing_inputs, pin
from daws.model.task import INLINE_BYTES, Ready
from daws.wire.store import HELD

if TYPE_CHECKING:
    from daws.core.node import NodeCore


def step_forward(core: NodeCore, ready: Ready) -> bool:
    """Stage a task that reads objects and has them all here, so that under pressure it does not wait behind others."""
    if ready.mode or (core.queues.doomed and ready.spec.id in core.queues.doomed):
        return False
    if not any(one.size_bytes > INLINE_BYTES for one in ready.inputs) or missing_inputs(core, ready):
        return False
    pin(core, ready)
    add_staged(core, ready)
    core.schedule_soon()
    return True


def makes_room(core: NodeCore, ready: Ready) -> bool:
    """Does it read something here that goes when its readers have ended? An object that a client holds does not."""
    for one in ready.inputs:
        if one.size_bytes > INLINE_BYTES:
            if one.object in core.objects.copies:
                return True
            made = core.objects.made.get(one.producer)
            if made is not None and HELD not in made.readers:
                return True
    return False


def is_busy(core: NodeCore) -> bool:
    """Does anything run here? A suspended run does not count: it may wait for tasks that have not started."""
    return any(not run.suspended for run in core.executors.running.values())
