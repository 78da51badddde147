"""Idle nodes that look for work, and loaded nodes that look for takers.

A round asks a few nodes for their load and turns to one of them. After a round without success the node waits, longer
each time but never for good; randomness spreads the waits. The strategy (`balance`) sets the numbers. Nodes that are
remembered or invited need not ask again: see `lifelines`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from daws.core.effects import POLL, Send, SetTimer
from daws.core.handlers import fires, handles
from daws.core.lifelines import (
    accept_invitation,
    be_named,
    feed,
    forget_invitation,
    invite,
    leave_name,
    remember,
    uninvite,
)
from daws.core.membership import note_leaver
from daws.core.peers import heard_load
from daws.core.queues import shared_queue
from daws.core.replicas import note_copy, offer_copy, overdue_runs
from daws.core.store_calls import hope
from daws.core.transfer import give_task, offer
from daws.core.tuning import set_tt, stay_calm
from daws.model.context import Context
from daws.model.task import NOBODY, REPLICA, NodeId
from daws.wire.messages import COPY, GIVEN, LEAVES, STOLEN, LoadQuery, LoadReply, StealDenied, StealRequest

if TYPE_CHECKING:
    from daws.core.node import NodeCore

NO_ROUND = -1
"""A value of `stealing_since_ns`: this node asks nobody for work."""
NO_NEWS: tuple[NodeId, int, int] = (NOBODY, 0, -(1 << 62))
"""A node, the number of tasks that it had to steal, and when this node heard of it."""
FIRST_LOOK_NS = 10_000_000
FIRST_LOOK_PER_NODE_NS = 10_000
"""A client needs some time to hand out work to each of many nodes."""
RUMOUR_NS = 100_000_000
"""News of somebody who has work are passed on for so long."""


class Search(Struct, gc=False):
    """How far this node has come in looking for work, or for somebody to give work to."""

    poll_ns: int
    neighbour_count: int = 0
    poll_armed: bool = False
    probe: list[tuple[NodeId, int]] | None = None  # the loads that were said in this round
    probe_count: int = 0  # ... of so many nodes that were asked
    stealing_since_ns: int = NO_ROUND  # when this round began
    rich: tuple[NodeId, int, int] = NO_NEWS
    idle_since_ns: int = 0
    done_when_idle: int = 0
    failed_steals: int = 0
    failed_steals_total: int = 0

    def begin_round(self, now_ns: int) -> None:
        self.stealing_since_ns = now_ns

    def end_round(self) -> None:
        self.probe = None
        self.stealing_since_ns = NO_ROUND

    def forget_neighbours(self) -> None:
        """The members, or the strategy, have changed."""
        self.neighbour_count = 0

    def begin_anew(self, poll_ns: int) -> None:
        """Another strategy says how often to look."""
        self.poll_ns, self.neighbour_count = poll_ns, 0


def look_for_work(core: NodeCore) -> None:
    """An executor is idle and nothing is queued here."""
    if len(core.members.infos) < 2:
        return  # a new member is told with a lease, after which there is a scheduling pass
    if core.search.poll_armed or core.search.probe is not None or core.search.stealing_since_ns >= 0:
        return
    uninvite(core, core.lifelines.invited)  # all of them have gone
    if core.lifelines.invitations:
        accept_invitation(core, wanted_contexts(core))
    elif core.strategy.balance.mode == "steal":
        if core.lifelines.named or hope(core):
            return
        if core.lengths.done_count != core.search.done_when_idle:
            # There was work since we last looked: begin with short intervals again.
            core.search.done_when_idle = core.lengths.done_count
            core.search.idle_since_ns = core.now_ns
            core.search.poll_ns, core.search.neighbour_count = core.strategy.balance.after_success(core)
        start_round(core)


def look_for_work_soon(core: NodeCore) -> None:
    """A node that has just started: give those who hand out work a moment, then look for it."""
    if core.strategy.balance.mode == "steal":
        core.search.idle_since_ns = core.now_ns
        core.search.poll_armed = True
        delay_ns = (FIRST_LOOK_NS + FIRST_LOOK_PER_NODE_NS * len(core.members)) * (1 + core.rng.unit())
        core.out.append(SetTimer(POLL, core.now_ns + int(delay_ns)))


def look_for_takers(core: NodeCore) -> None:
    """More is queued here than can run at once."""
    mode = core.strategy.balance.mode
    if mode == "give":
        if not core.search.poll_armed and core.search.probe is None:
            wait(core)
    elif mode == "invite":
        invite(core)
    elif core.lifelines.thieves and core.queues.shared.count:
        feed(core)


def start_round(core: NodeCore) -> None:
    balance = core.strategy.balance
    if not core.search.neighbour_count:
        core.search.neighbour_count = balance.start_neighbours(len(core.members))
    targets = balance.targets(core, core.rng)
    if not targets:
        return
    core.search.stealing_since_ns = core.now_ns
    if not balance.asks_load:
        leaves = core.strategy.traits.balance.leaves_name
        if leaves is not None:
            leave_name(core, leaves(core))
        request = StealRequest(core.node, wanted_contexts(core), balance.wish, core.lifelines.naming)
        for target in targets if core.lifelines.naming else targets[:1]:
            core.out.append(Send(target, request))
        return
    core.search.probe = []
    core.search.probe_count = len(targets)
    query = LoadQuery(core.node)
    for target in targets:
        core.out.append(Send(target, query))


def wanted_contexts(core: NodeCore) -> tuple[Context | None, ...] | None:
    """The contexts of the idle executors; None stands for plain executors, the usual case."""
    if len(core.executors.groups) == 1 and core.executors.groups[0].context is None:
        return None
    return tuple(group.context for group in core.executors.groups if group.free)


@handles(LoadQuery)
def on_load_query(core: NodeCore, message: LoadQuery) -> None:
    if core.peers.loads is not None:
        heard_load(core, message.sender, 0)  # only who is idle asks, or who gives away
    load = core.queues.shared.count + core.queues.dedicated.count + len(core.executors.running)
    rich, riches, since_ns = core.search.rich
    if core.now_ns - since_ns > RUMOUR_NS or rich == message.sender:
        rich, riches = NOBODY, 0
    if core.leaving is not None:
        load = LEAVES
    stealable = core.queues.shared.count + core.staged_count()
    if core.lengths.last is not None:
        stealable += len(overdue_runs(core))
    core.out.append(Send(message.sender, LoadReply(core.node, stealable, load, rich, riches)))


def note_rich(core: NodeCore, node: NodeId, riches: int) -> None:
    """Remember where there was something to steal, for ourselves and for others who ask us."""
    core.search.rich = (node, riches, core.now_ns)


@handles(LoadReply)
def on_load_reply(core: NodeCore, message: LoadReply) -> None:
    if message.load == LEAVES:
        note_leaver(core, message.sender)
    elif core.peers.loads is not None:
        heard_load(core, message.sender, message.load)
    replies = core.search.probe
    if replies is None:
        return
    giving = core.strategy.balance.mode == "give"
    if message.load == LEAVES:
        core.search.probe_count -= 1
    else:
        replies.append((message.sender, message.load if giving else message.stealable))
    if message.stealable:
        note_rich(core, message.sender, message.stealable)
    elif message.riches and message.rich != core.node:
        note_rich(core, message.rich, message.riches)
    if len(replies) < core.search.probe_count:
        return
    core.search.probe = None
    chosen = core.strategy.balance.pick(core, replies)
    if chosen == NOBODY and core.strategy.balance.follows_rumours:
        rich, riches, since_ns = core.search.rich
        if core.now_ns - since_ns <= RUMOUR_NS and rich in core.members:
            chosen = core.strategy.balance.pick(core, [(rich, riches)])
            core.search.rich = (NOBODY, 0, -RUMOUR_NS)  # whatever comes of it, it is old news then
    if giving:
        core.search.stealing_since_ns = NO_ROUND
        if chosen == NOBODY or not give(core, chosen):
            round_failed(core)
        else:
            round_succeeded(core)
            wait(core)
    elif chosen == NOBODY:
        round_failed(core)
    else:
        core.out.append(Send(chosen, StealRequest(core.node, wanted_contexts(core), core.strategy.balance.wish)))


@handles(StealRequest)
def on_steal_request(core: NodeCore, message: StealRequest) -> None:
    thief = message.sender
    if core.peers.loads is not None:
        heard_load(core, thief, 0)
    loot = core.loot_for(thief, message.contexts, message.wish)
    uninvite(core, len(loot))
    for ready in loot:
        offer(core, thief, STOLEN, ready)
    if not loot and not (core.lengths.last is not None and offer_copy(core, thief)):
        core.out.append(Send(thief, StealDenied(core.node)))
        if message.waits and core.leaving is None:
            remember(core, thief, message.contexts)


@handles(StealDenied)
def on_steal_denied(core: NodeCore, message: StealDenied) -> None:
    forget_invitation(core, message.sender)
    if core.search.stealing_since_ns >= 0 and core.search.probe is None:
        round_failed(core)


def give(core: NodeCore, receiver: NodeId) -> bool:
    """Hand part of the queue to another node, or let it run copies of it.

    A task of which a copy was given away goes into the shared queue, behind those that only this node has. If there are
    no others it is offered again, up to as many copies as `replicate` allows.
    """
    queue = core.queues.dedicated if core.queues.dedicated.count else core.queues.shared
    strategy = core.strategy
    info = core.members.info(receiver)
    if info is None:
        return False
    contexts = tuple([group.context for group in info.executors])
    given = False
    for ready in queue.cut(strategy.balance.amount(core, queue.count), strategy.balance.from_head, contexts):
        copies = strategy.replicate.copies(core, ready.spec)
        offered = core.replicas.copied.get(ready.spec.id, 0)
        wanted = not ready.mode & REPLICA and info.can_run(ready.spec.needs)
        if wanted and not copies:
            give_task(core, receiver, GIVEN, ready)
        else:
            shared_queue(core).push(strategy.order.key(core, ready), core.queues.next_sequence(), ready)
            wanted = wanted and offered < copies
            if wanted:
                note_copy(core, ready.spec.id)
                offer(core, receiver, COPY, ready)
        given = given or wanted
    return given


def round_succeeded(core: NodeCore) -> None:
    core.search.probe = None
    core.search.stealing_since_ns = NO_ROUND
    core.search.idle_since_ns = core.now_ns
    core.search.failed_steals = 0
    core.search.poll_ns, core.search.neighbour_count = core.strategy.balance.after_success(core)


def round_failed(core: NodeCore) -> None:
    """Nothing was found: wait, and let the strategy draw its conclusions."""
    core.search.probe = None
    core.search.stealing_since_ns = NO_ROUND
    core.search.failed_steals += 1
    core.search.failed_steals_total += 1
    strategy = core.strategy
    set_tt(core, strategy.relax.after_failed_steal(core))
    stay_calm(core, 0)
    if be_named(core):
        pass
    elif core.lifelines.invitations:
        core.schedule_soon()  # others have called too
    elif strategy.balance.mode != "invite":
        wait(core)
    core.search.poll_ns, core.search.neighbour_count = strategy.balance.after_failure(core)


def wait(core: NodeCore) -> None:
    """Look again after the polling interval, give or take half of it."""
    core.search.poll_armed = True
    delay_ns = int(core.search.poll_ns * (0.5 + core.rng.unit()))
    core.out.append(SetTimer(POLL, core.now_ns + max(1, delay_ns)))


@fires(POLL)
def poll(core: NodeCore) -> None:
    core.search.poll_armed = False
    if core.search.probe is not None or core.search.stealing_since_ns >= 0:
        return
    if core.strategy.balance.mode == "give":
        if core.queues.dedicated.count + core.queues.shared.count and not core.idle_count:
            start_round(core)
        return
    core.schedule_soon()  # the scheduling pass looks for work if there still is none


def forget_lost_round(core: NodeCore, older_than_ns: int) -> None:
    """End a round whose question or answer got lost; called on each tick."""
    if core.search.stealing_since_ns >= 0 and core.now_ns - core.search.stealing_since_ns >= older_than_ns:
        round_failed(core)
