"""Membership: the lease that keeps a node alive, the deaths of others, and the tick that repeats what was not answered.

A node renews its lease long before it runs out, counts from when it sent the renewal, and starts nothing new past half
of it. When a lease has run out, any node may take over the tasks of the dead one; a hash says which node tries first.
Safety rests on the store alone.

How long a lease is must not change where or when tasks run as long as nobody dies and no message is lost. Therefore
neither the tick nor the answer to a renewal asks the strategy anything or starts a scheduling pass, unless a lease had
run out or the members have changed. Everything else that has to be looked at after a while has a timer of its own
(`handlers.fires`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from daws.core.config import Phase
from daws.core.effects import TICK, FetchAgain, SetTimer
from daws.core.empty import same
from daws.core.events import PlaceUnknown, Started
from daws.core.fetching import look_again
from daws.core.handlers import fires, handles
from daws.core.membership import NO_VERSION, forget_leavers
from daws.core.objects import audit_in_time, send_releases
from daws.core.outbox import carry_out, repeat_orders, send_clears
from daws.core.placement import accept, place_stranded
from daws.core.store_calls import answers, ask_shard, call_now, forget_hope, repeat_calls, restart, shrink_calls
from daws.core.transfer import take_back
from daws.core.unsafe import when_safe
from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.wire.store import MEMBERSHIP_SHARD, AnswerType, Buried, Estate, Lease, Leased, TakeOver, Watch

if TYPE_CHECKING:
    from daws.core.node import NodeCore


@handles(Started)
def on_started(core: NodeCore, event: Started) -> None:
    core.take_members(event.members)
    if core.node in event.members:
        core.membership.lease(same(core.now_ns + core.config.lease_ns // 2))
        core.enter(Phase.ACTIVE)
    else:
        join(core)
    # The first tick comes at a moment of its own, so that the nodes of a cluster do not all renew at once.
    _set_tick(core, int(core.config.tick_ns * (0.5 + core.rng.unit() / 2)))
    core.look_for_work_soon()


def join(core: NodeCore) -> None:
    """Become a member; nothing starts here before the store has agreed."""
    ask_shard(core, MEMBERSHIP_SHARD, Lease(core.node, core.members.version, core.info, asked_ns=core.now_ns))


def _set_tick(core: NodeCore, delay_ns: int) -> None:
    core.out.append(SetTimer(TICK, core.now_ns + delay_ns))


@fires(TICK)
def tick(core: NodeCore) -> None:
    tick_ns = core.config.tick_ns
    _set_tick(core, tick_ns)
    old_token = core.store.old_token
    repeat_calls(core)
    if core.node in core.members and not (core.leaving is not None and core.leaving.said):
        _renew(core)
    if core.transfer.lent:
        take_back(core, 2 * tick_ns)
    if core.outbox.wakes or core.outbox.stops:
        repeat_orders(core)
    if core.outbox.clearing:
        send_clears(core)
    if core.objects.releases:
        send_releases(core)
    if core.objects.made:
        audit_in_time(core)
    forget_hope(core, old_token)
    core.forget_lost_round(tick_ns)
    if core.membership.orphans:
        take_over_orphans(core)
    if core.keeping is not None:
        core.say_again()


def _renew(core: NodeCore) -> None:
    """Ask for a longer lease. Ends of tasks that are held back for company stay where they are: the call is its own."""
    row = Lease(core.node, core.members.version, asked_ns=core.now_ns)
    if core.store.rows is None:
        ask_shard(core, MEMBERSHIP_SHARD, row)
        return
    call_now(core, MEMBERSHIP_SHARD, [row])


@answers(Lease)
def on_lease_answer(core: NodeCore, row: Lease, answer: AnswerType) -> None:
    assert isinstance(answer, Leased)
    if row.leaving:
        restart(core, "")
        return
    core.membership.count_renewal()
    shrink_calls(core)
    until_ns = row.asked_ns + core.config.lease_ns // 2
    if core.leaving is None:
        if core.now_ns >= core.membership.leased_until_ns:
            core.schedule_soon()  # nothing was started meanwhile
        core.membership.lease(max(core.membership.leased_until_ns, until_ns))
        core.enter(Phase.ACTIVE)
    else:
        core.leaving.lease(until_ns)  # only to go on with what it has begun
        core.schedule_soon()
    if answer.members is not None:
        _take_members(core, answer.members)
    core.membership.hear_of_orphans(answer.orphans, core)
    if core.membership.orphans:
        take_over_orphans(core)


@answers(Watch)
def on_watch_answer(core: NodeCore, row: Watch, answer: AnswerType) -> None:
    assert isinstance(answer, Leased)
    if answer.members is not None and answer.members.version > core.members.version:
        _take_members(core, answer.members)
    look_again(core)
    if row.version == NO_VERSION:
        core.out.append(FetchAgain())


@handles(PlaceUnknown)
def on_place_unknown(core: NodeCore, event: PlaceUnknown) -> None:
    ask_shard(core, MEMBERSHIP_SHARD, Watch(NO_VERSION))


def _take_members(core: NodeCore, members: Members) -> None:
    core.take_members(members)
    core.search.forget_neighbours()
    core.schedule_soon()  # a new one may have work, or take some
    if core.membership.leavers:
        forget_leavers(core)
    take_back(core, 1 << 62)
    if core.queues.stranded:
        place_stranded(core)


def take_over_orphans(core: NodeCore) -> None:
    """Take over dead nodes when it is our turn: one node at once, the next ones only if it stays undone."""
    assert core.membership.orphans is not None
    if core.leaving is not None or core.node not in core.members:
        return  # (a store that forgets may not know us, for the moment)
    for dead, since_ns in core.membership.orphans.items():
        if core.membership.is_burying(dead):
            continue
        if core.now_ns - since_ns >= _turn(core, dead) * core.config.lease_ns:
            core.membership.bury(dead, core.config.shard_count)
            for shard in range(core.config.shard_count):
                ask_shard(core, shard, TakeOver(dead, core.node, shard=shard))


def _turn(core: NodeCore, dead: NodeId) -> int:
    nodes = core.members.nodes
    first = (dead * 0x9E3779B97F4A7C15 >> 20) % len(nodes)
    position = core.members.position(core.node)
    return (position - first) % len(nodes)


@answers(TakeOver)
def on_take_over_answer(core: NodeCore, row: TakeOver, answer: AnswerType) -> None:
    assert isinstance(answer, Estate)
    for entry in answer.outbox:
        carry_out(core, entry)
    for ready in answer.ready:
        if core.replicas.count:
            core.call_off(ready.spec.id, ready.attempt - 1)  # a copy of it may run here: it cannot commit any more
        accept(core, ready)
    if not core.membership.is_burying(row.dead):
        return
    if answer.more:
        ask_shard(core, row.shard, TakeOver(row.dead, core.node, row.part + 1, row.limit, row.shard))
        return
    if core.membership.end_shard(row.dead):
        when_safe(core, partial(ask_shard, core, MEMBERSHIP_SHARD, Buried(row.dead, core.node)))


@answers(Buried)
def on_buried_answer(core: NodeCore, row: Buried, answer: AnswerType) -> None:
    core.membership.end_burial(row.dead)
