"""Carrying out what stands in outboxes of the store: intents that outlive the node that had them.

A node that commits, fails or cancels a task finds the task's children in the answer and tells them. `telling` counts
what an entry still waits for; at zero the entry is cleared (lazily, many at a time). If this node dies before, the next
owner of the entry does it all again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from daws.core.effects import Send
from daws.core.empty import shared_part
from daws.core.handlers import handles
from daws.core.store_calls import ANSWERED, add_row, ask, ask_shard
from daws.core.unsafe import when_safe
from daws.model.task import Input, NodeId
from daws.wire.messages import Awake, StopDone, StopOrder, Wake
from daws.wire.store import (
    REMAKE_FOR,
    SATISFY,
    SHARD_BLOCK_BITS,
    AnswerType,
    Cancel,
    Clear,
    OutboxEntry,
    Remake,
    Row,
    Satisfy,
    Stopped,
)

if TYPE_CHECKING:
    from daws.core.node import NodeCore

CLEAR_BATCH = 64
EVERY_ATTEMPT = 1 << 30


class Intent:
    """An outbox entry that is being carried out: how many have yet to answer, and what to clear then."""

    __slots__ = ("key", "left", "mark")

    def __init__(self, left: int, key: int, mark: int) -> None:
        self.left = left
        self.key = key
        self.mark = mark


class Outbox:
    """The intents of this node, and the nodes that have to hear of them."""

    __slots__ = ("clearing", "orders", "spreading", "stops", "telling", "wakes")

    def __init__(self) -> None:
        self.telling: dict[int, Intent] = {}  # intents that are being carried out
        self.clearing: dict[int, list[tuple[int, int]]] = {}  # by shard: keys and marks of those that were carried out
        self.spreading: set[tuple[int, int]] = set()  # key and mark of ends that are being spread, until cleared
        self.wakes: dict[tuple[int, int], tuple[NodeId, int]] = {}
        self.stops: dict[tuple[int, NodeId], tuple[int, int]] = {}
        self.orders: dict[int, int] = {}  # by a client's order to cancel: rows that were not answered

    def begin_order(self, batch: int, count: int) -> None:
        self.orders[batch] = count

    def end_cancel(self, batch: int) -> bool:
        """One row of an order was answered. True if it was the last."""
        left = self.orders.pop(batch, 0) - 1
        if left > 0:
            self.orders[batch] = left
        return left <= 0


NO_OUTBOX = shared_part(Outbox())
"""Shared by all nodes that have never had an intent. `own_outbox` creates a node's own."""


def own_outbox(core: NodeCore) -> Outbox:
    """The outbox of this node, to change something."""
    if core.outbox is NO_OUTBOX:
        core.outbox = Outbox()
    return core.outbox


def spread_again(core: NodeCore, task: int, stopped: Stopped) -> None:
    """Another node may run the task by now, though the mark is one of before."""
    own_outbox(core).spreading.discard((stopped.key, stopped.mark))
    spread_stop(core, task, stopped)


def intend(core: NodeCore, left: int, key: int, mark: int) -> int:
    """Begin to carry out an entry; rows and messages that belong to it carry the number that this returns."""
    number = core.executors.next_token()
    own_outbox(core).telling[number] = Intent(left, key, mark)
    return number


def told(core: NodeCore, number: int) -> None:
    """One of those that an entry names has been told."""
    intent = core.outbox.telling.get(number)
    if intent is None:
        return
    intent.left -= 1
    if not intent.left:
        del core.outbox.telling[number]
        clear(core, intent.key, intent.mark)


def clear(core: NodeCore, key: int, mark: int) -> None:
    """The intent was carried out; where what was said for it may get lost, it is kept until that is safe."""
    if core.keeping is not None:
        when_safe(core, partial(_clear, core, key, mark))
    else:
        _clear(core, key, mark)


def _clear(core: NodeCore, key: int, mark: int) -> None:
    shard = (key >> 2 >> SHARD_BLOCK_BITS) % core.shard_count
    clearing = own_outbox(core).clearing
    pairs = clearing.get(shard)
    if pairs is None:
        clearing[shard] = [(key, mark)]
        return
    pairs.append((key, mark))
    if len(pairs) >= CLEAR_BATCH:
        del clearing[shard]
        _send_clear(core, shard, pairs)


def send_clears(core: NodeCore) -> None:
    clearing, core.outbox.clearing = core.outbox.clearing, {}
    for shard, pairs in clearing.items():
        _send_clear(core, shard, pairs)


def _send_clear(core: NodeCore, shard: int, pairs: list[tuple[int, int]]) -> None:
    if core.outbox.spreading:
        core.outbox.spreading.difference_update(pairs)
    row = Clear(core.node, tuple([key for key, _ in pairs]), tuple([mark for _, mark in pairs]))
    if core.store.rows is None:
        ask_shard(core, shard, row)
    else:
        add_row(core, shard, row)  # it leaves with what is there, which it does not hurry


def tell_children(
    core: NodeCore,
    key: int,
    mark: int,
    task: int,
    children: tuple[int, ...],
    inputs: tuple[Input, ...],
    needs: tuple[int, ...],
) -> None:
    number = intend(core, len(children), key, mark)
    node = core.node
    if not needs:
        for child in children:
            ask(core, child, Satisfy(child, task, node, inputs, number))
    else:
        for child, need in zip(children, needs, strict=True):
            ask(core, child, Satisfy(child, task, node, inputs, number, need))


def carry_out(core: NodeCore, entry: OutboxEntry) -> None:
    """Do what a dead node had meant to do."""
    if entry.verb == SATISFY:
        if entry.others:
            tell_children(core, entry.key, entry.mark, entry.task, entry.others, entry.inputs, entry.needs)
        else:
            clear(core, entry.key, entry.mark)
    elif entry.verb == REMAKE_FOR:
        ask_for_remakes(core, entry.key, entry.mark, entry.task, entry.others, ())
    else:
        stopped = Stopped(entry.key, entry.others, entry.nodes, entry.error, entry.watchers, entry.mark)
        spread_stop(core, entry.task, stopped)


def ask_for_remakes(
    core: NodeCore, key: int, mark: int, waiter: int, producers: tuple[int, ...], gone: tuple[NodeId, ...]
) -> None:
    number = intend(core, len(producers), key, mark)
    for producer in producers:
        ask(core, producer, Remake(producer, waiter, core.node, gone, number, mark))


def hear_late(core: NodeCore, answers: Sequence[AnswerType]) -> None:
    """A call was repeated, and both calls have arrived. The first answer counts. A task that was unknown then may have
    been cancelled by the second call: its end stands in the outbox of this node, which has to spread it."""
    for answer in answers:
        if isinstance(answer, Stopped) and answer.mark:
            spread_stop(core, answer.key >> 2, answer)


# -- ends that spread --------------------------------------------------------------------------------------------------


def spread_stop(core: NodeCore, task: int, stopped: Stopped) -> None:
    """A task was cancelled or failed: so are its children, who runs it is told to stop, and who waited for it wakes."""
    outbox = own_outbox(core)
    if (stopped.key, stopped.mark) in outbox.spreading:
        return  # another of its parents brought the news: in a graph of diamonds, twice each layer is too often
    outbox.spreading.add((stopped.key, stopped.mark))
    count = len(stopped.children) + len(stopped.nodes) + len(stopped.watchers)
    if not count:
        clear(core, stopped.key, stopped.mark)
        return
    number = intend(core, count, stopped.key, stopped.mark)
    for child in stopped.children:
        ask(core, child, Cancel(child, core.node, stopped.error, task, number))
    for watcher in stopped.watchers:
        ask(core, watcher, Satisfy(watcher, task, core.node, (), number))
    for node in stopped.nodes:
        outbox.stops[number, node] = (task, core.membership.lease_count)
        core.out.append(Send(node, StopOrder(core.node, task, number, EVERY_ATTEMPT)))


@handles(StopDone)
def on_stop_done(core: NodeCore, message: StopDone) -> None:
    if own_outbox(core).stops.pop((message.key, message.sender), None) is not None:
        told(core, message.key)


# -- tasks that wait for tasks -----------------------------------------------------------------------------------------


def wake(core: NodeCore, task: int, number: int, owner: NodeId) -> None:
    """The last of the tasks that a suspended task waited for has ended: its owner must hear of it."""
    if owner == core.node:
        wake_here(core, task)
        told(core, number)
    else:
        own_outbox(core).wakes[number, task] = (owner, core.membership.lease_count)
        core.out.append(Send(owner, Wake(core.node, task, number)))


def wake_here(core: NodeCore, task: int) -> None:
    run = core.executors.running.get(task)
    if run is not None and run.suspended and core.executors.wake(run):
        core.close_lane()
        core.schedule_soon()


@handles(Wake)
def on_wake(core: NodeCore, message: Wake) -> None:
    wake_here(core, message.task)
    core.out.append(Send(message.sender, Awake(core.node, message.task, message.key)))


@handles(Awake)
def on_awake(core: NodeCore, message: Awake) -> None:
    if own_outbox(core).wakes.pop((message.key, message.task), None) is not None:
        told(core, message.key)


def repeat_orders(core: NodeCore) -> None:
    """Send again, on each tick, the orders that were not acknowledged; a dead node need not be told."""
    outbox = core.outbox
    for (number, task), (owner, since) in list(outbox.wakes.items()):
        if _is_dead(core, owner, since):
            del outbox.wakes[number, task]
            told(core, number)  # whoever takes the task over runs it again from the start
        else:
            core.out.append(Send(owner, Wake(core.node, task, number)))
    for (number, node), (task, since) in list(outbox.stops.items()):
        if _is_dead(core, node, since):
            del outbox.stops[number, node]
            told(core, number)
        else:
            core.out.append(Send(node, StopOrder(core.node, task, number, EVERY_ATTEMPT)))


def _is_dead(core: NodeCore, node: NodeId, since: int) -> bool:
    """No member, and not only because it joined after we last heard who is: two renewals were answered meanwhile."""
    return node not in core.members and core.membership.lease_count > since + 1


def ignore(core: NodeCore, row: Row, answer: AnswerType) -> None:
    """Nothing follows from the answer."""


ANSWERED[Clear] = ignore
