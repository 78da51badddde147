"""Starting a run on an executor of this node."""

from daws.core.effects import StartRun
from daws.core.node import EMPTY, NodeCore, Run
from daws.core.objects import missing_inputs, pin
from daws.model.task import Ready


def start(core: NodeCore, ready: Ready, slot: int) -> Run:
    """Everything it reads is here."""
    core.token = number = core.token + 1
    if core.running is EMPTY:
        core.running = {}
    core.running[ready.spec.id] = run = Run(number, ready, slot)
    if core.lengths is not None:
        run.since_ns = core.now_ns
    core.out.append(StartRun(number, slot, ready))
    return run


def start_at_once(core: NodeCore, ready: Ready) -> bool:
    """A task that finds an idle executor and empty queues need not stand in one: the scheduling pass would take it out
    again. False if it is not as simple as that."""
    if (
        not core.plain_free
        or core.shared.count
        or core.dedicated.count
        or core.staged
        or core.resumable
        or core.pressed
        or ready.mode
        or ready.spec.needs is not None
        or core.groups[0].context is not None
        or core.doomed
        or core.now_ns >= core.leased_until_ns
    ):
        return False
    if ready.inputs:
        if missing_inputs(core, ready):
            return False
        if core.copies:
            pin(core, ready)
    core.plain = False
    start(core, ready, core.plain_free.pop())
    return True
