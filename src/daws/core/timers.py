"""The functions that are called when a timer has fired, one for each timer. The first is membership's; all others
belong to decisions and to what a node does in time, and none of them hangs on how long a lease is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.effects import ASK_AGAIN, CALL, COMMIT, PATIENCE, POLL, RECALL, STALL, TICK, VALIDATE
from daws.core.events import TimerFired
from daws.core.handlers import handles
from daws.core.lease import tick
from daws.core.lifelines import call_again
from daws.core.relax import look_for_stall
from daws.core.reserve import patience_is_over
from daws.core.send_ahead import recall_now
from daws.core.steal import poll
from daws.core.store_calls import ask_unknown_again, look_at_held
from daws.core.validating import validate

if TYPE_CHECKING:
    from daws.core.node import NodeCore

FIRED = {
    TICK: tick,
    POLL: poll,
    COMMIT: look_at_held,
    RECALL: recall_now,
    PATIENCE: patience_is_over,
    STALL: look_for_stall,
    CALL: call_again,
    VALIDATE: validate,
    ASK_AGAIN: ask_unknown_again,
}


@handles(TimerFired)
def on_timer_fired(core: NodeCore, event: TimerFired) -> None:
    act = FIRED.get(event.timer)
    if act is not None:  # at the deadline of a node that leaves nothing is left to decide
        act(core)
