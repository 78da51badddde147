"""Cancelled, failed and pointless runs: a cancel is a write to the store first; stopping what runs is a courtesy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from daws.core.effects import Send
from daws.core.handlers import handles
from daws.core.outbox import own_outbox, spread_stop, told
from daws.core.store_calls import answers, ask, ask_later
from daws.core.unsafe import when_safe
from daws.model.task import CLIENT
from daws.wire.messages import NO_ANSWER, CancelOrder, CancelTaken, StopDone, StopOrder
from daws.wire.store import UNKNOWN, AnswerType, Cancel, Stopped

if TYPE_CHECKING:
    from daws.core.node import NodeCore


@handles(CancelOrder)
def on_cancel_order(core: NodeCore, message: CancelOrder) -> None:
    if core.leaving is not None and core.leaving.said:
        return  # nobody hears that it was taken: the client will ask another
    if message.batch in core.outbox.orders:
        return
    if not message.tasks:
        core.out.append(Send(CLIENT, CancelTaken(core.node, message.batch)))
        return
    own_outbox(core).begin_order(message.batch, len(message.tasks))
    for task in message.tasks:
        ask(core, task, Cancel(task, core.node, message.error, ordered(message.batch)))


OF_ORDER = -2
"""The parent of a cancel that comes from a client's order 0; those of later orders are below."""


def ordered(batch: int) -> int:
    """A number in the place of the parent, which says that the cancel comes from this order of a client."""
    return OF_ORDER - batch


@answers(Cancel)
def on_cancel_answer(core: NodeCore, row: Cancel, answer: AnswerType) -> None:
    if isinstance(answer, Stopped):
        spread_stop(core, row.task, answer)
    elif answer == UNKNOWN and row.parent >= 0:
        ask_later(core, row)
        return
    if row.parent >= 0:
        told(core, row.intent)
    elif core.outbox.orders and row.parent <= OF_ORDER:
        _order_carried_out(core, OF_ORDER - row.parent)


def _order_carried_out(core: NodeCore, batch: int) -> None:
    if core.outbox.end_cancel(batch):
        when_safe(core, partial(_say_taken, core, batch))


def _say_taken(core: NodeCore, batch: int) -> None:
    core.out.append(Send(CLIENT, CancelTaken(core.node, batch)))


@handles(StopOrder)
def on_stop_order(core: NodeCore, message: StopOrder) -> None:
    core.call_off(message.task, message.attempt)
    if message.key != NO_ANSWER:
        core.out.append(Send(message.sender, StopDone(core.node, message.task, message.key)))
