"""Cancelled, failed and pointless runs: a cancel is first a write to the store; stopping what runs is only a courtesy."""

from daws.core.calls import ask
from daws.core.effects import Send
from daws.core.events import CancelAsked
from daws.core.node import NodeCore, handles
from daws.core.running import call_off
from daws.wire.messages import StopDone, StopOrder
from daws.wire.store import Cancel


@handles(CancelAsked)
def on_cancel_asked(core: NodeCore, event: CancelAsked) -> None:
    for task in event.tasks:
        ask(core, task, Cancel(task, core.node))


@handles(StopOrder)
def on_stop_order(core: NodeCore, message: StopOrder) -> None:
    call_off(core, message.task, message.attempt)
    if message.key >= 0:
        core.out.append(Send(message.sender, StopDone(core.node, message.task, message.key)))
