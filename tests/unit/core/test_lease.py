"""Leases, deaths and take-over."""

from itertools import pairwise

import pytest

from daws.core.effects import CallStore, EffectType, FetchAgain, Restart, StartRun, StopRun
from daws.core.events import PlaceUnknown, RunEnded, Started, StoreAnswered
from daws.core.membership import NO_VERSION
from daws.core.node import SECOND_NS, NodeConfig, NodeCore
from daws.model.cluster import Members
from daws.model.states import READY
from daws.model.task import CLIENT, REPLICA, SUSPECT, node_id
from daws.strategy import parse_strategy
from daws.testing import Driver, members_of, ready
from daws.testing.build import object_at
from daws.wire.messages import COPY, LoadQuery, Offer, Submission, SubmissionTaken
from daws.wire.store import (
    ANNOUNCE,
    OK,
    SATISFY,
    STRUCK,
    Buried,
    Claim,
    Committed,
    Estate,
    Granted,
    Inspect,
    Lease,
    Leased,
    OutboxEntry,
    Satisfy,
    Story,
    TakeOver,
    Watch,
    outbox_key,
)

TICK = 0
LEASE_NS = 8 * SECOND_NS
DEAD = node_id(1, 0)


def tick(node: Driver) -> CallStore:
    node.fire(TICK)
    return node.expect(CallStore)


def test_a_new_node_joins_and_starts_nothing_before_it_is_a_member():
    members = members_of(2)
    info = members_of(3).infos[2]
    core = NodeCore(info, parse_strategy("mlb"), NodeConfig(lease_ns=LEASE_NS), 1)
    out: list[EffectType] = []
    core.step(0, [Started(members)], out)
    (call,) = [effect for effect in out if isinstance(effect, CallStore)]
    assert call.rows == [Lease(2, 1, info)]
    out.clear()
    core.step(5, [Submission(CLIENT, 0, (ready(1),))], out)
    assert not any(isinstance(effect, StartRun) for effect in out)
    out.clear()
    core.step(10, [StoreAnswered(call.token, [Leased(Members(2, (*members.infos, info)))])], out)
    assert any(isinstance(effect, StartRun) for effect in out)


def test_the_lease_counts_from_when_it_was_asked_for():
    with Driver() as node:
        call = tick(node)
        asked_ns = node.now_ns
        assert call.rows == [Lease(0, 1, asked_ns=asked_ns)]
        node.now_ns += SECOND_NS
        node.answer(call, Leased())
        assert node.core.membership.leased_until_ns == asked_ns + LEASE_NS // 2


def test_a_late_answer_does_not_shorten_the_lease():
    with Driver() as node:
        first, second = tick(node), tick(node)
        if first.token in [effect.token for effect in node.effects if isinstance(effect, CallStore)]:
            node.drop(CallStore)
        node.answer(second, *[Leased()] * len(second.rows))
        until_ns = node.core.membership.leased_until_ns
        node.answer(first, Leased())
        assert node.core.membership.leased_until_ns == until_ns
        node.drop(CallStore)


def test_the_driver_hears_of_members_when_it_came_across_a_place_that_is_not_known():
    node = Driver("mlb", members=2)
    node.give(PlaceUnknown())
    call = node.expect_rows(Watch(NO_VERSION))
    node.answer(call, Leased(Members(2, members_of(3).infos)))
    node.expect(FetchAgain)
    assert 2 in node.core.members


def test_ticks_go_on():
    with Driver() as node:
        times = []
        for _ in range(3):
            times.append(node.timers[TICK])
            node.answer(tick(node), Leased())
        assert [later - earlier for earlier, later in pairwise(times)] == [LEASE_NS // 4] * 2


def test_what_was_not_answered_is_asked_again():
    with Driver() as node:
        node.give(Offer(2, 1, 0, (ready(1),)))
        call = node.expect(CallStore)
        node.answer(tick(node), Leased())
        node.fire(TICK)
        assert node.expect(CallStore, token=call.token) == call
        node.drop(CallStore)


def test_who_was_struck_starts_anew_and_says_nothing_more():
    with Driver() as node:
        node.give(Offer(2, 1, 0, (ready(1),)))
        claim = node.expect(CallStore)
        node.answer(tick(node), STRUCK)
        node.expect(Restart)
        node.answer(claim, STRUCK)
        node.give(LoadQuery(1))
        node.drop(object)


def test_a_member_that_is_gone_gives_back_what_was_lent_to_it():
    with Driver("mdl") as node:
        node.give(Submission(CLIENT, 0, (ready(1, object_at(9, 2), move=5),)))
        node.drop(SubmissionTaken)
        node.expect(Offer, to=2)
        node.answer(tick(node), Leased(Members(2, members_of(2).infos)))
        node.expect_rows(Claim(1, 0, 5, 0))


def orphaned(node: Driver, turns: int = 0) -> CallStore:
    """Node 1 has died; the take-over of its first shard, after so many leases of waiting."""
    left = Members(2, tuple(info for info in members_of(3).infos if info.id != DEAD))
    call = tick(node)
    node.answer(call, Leased(left, (DEAD,)))
    while not any(isinstance(effect, CallStore) for effect in node.effects):
        assert turns >= 0, "nobody takes over"
        turns -= 1
        node.now_ns += LEASE_NS
        node.answer(tick(node), Leased(None, (DEAD,)))
    return node.expect(CallStore)


def test_the_dead_are_taken_over_and_buried():
    with Driver(cores=1) as node:
        call = orphaned(node, 2)
        assert call.rows == [TakeOver(DEAD, 0)]
        key = outbox_key(7, SATISFY)
        told = OutboxEntry(key, SATISFY, 7, (8,), (), mark=3)
        node.answer(call, Estate((ready(1, attempt=1, move=2, mode=SUSPECT),), (told,)))
        call = node.expect(CallStore)
        assert [type(row) for row in call.rows] == [Satisfy, Buried, Claim]
        assert call.rows[2] == Claim(1, 0, 2, 0, ANNOUNCE)
        node.answer(call, OK, OK, Granted(3, 1, SUSPECT))
        node.expect(StartRun, task=1)


def test_who_owns_something_and_is_known_to_nobody_is_taken_over_from():
    """It had joined and died before the store's replica knew of it."""
    with Driver(config=NodeConfig(lease_ns=LEASE_NS, audit_ns=LEASE_NS, replicated=True)) as node:
        node.give(Submission(CLIENT, 0, (ready(8, makes=[8]),)))
        node.expect(SubmissionTaken)
        node.give(RunEnded(8, node.expect(StartRun).run, SECOND_NS, (100_000,)))
        node.answer(node.expect(CallStore), Committed(-1, (), (), (9,)))
        dead = node_id(2, 1)
        takers = []
        for _ in range(20):
            node.fire(TICK)
            for call in [one for one in node.effects if isinstance(one, CallStore)]:
                node.effects.remove(call)
                if call.token not in node.core.store.calls:
                    continue
                takers += [row for row in call.rows if isinstance(row, TakeOver)]
                story = Story(READY, dead, 1, 0)
                node.answer(call, *[story if isinstance(row, Inspect) else _plainly(row) for row in call.rows])
        node.drop(object)
        assert takers == [TakeOver(dead, 0)]


def _plainly(row: object) -> Leased | Estate | int:
    return Leased() if isinstance(row, Lease) else Estate() if isinstance(row, TakeOver) else OK


def test_a_large_estate_is_taken_part_by_part():
    with Driver(cores=1) as node:
        call = orphaned(node, 2)
        node.answer(call, Estate(more=True))
        call = node.expect_rows(TakeOver(DEAD, 0, 1))
        node.answer(call, Estate())
        node.answer(node.expect_rows(Buried(DEAD, 0)), OK)
        node.answer(tick(node), Leased(None, (DEAD,)))


def test_one_node_after_the_other_gets_its_turn():
    first_turns = []
    for own in (0, 2):
        node = Driver(node=own)
        left = Members(2, tuple(info for info in members_of(3).infos if info.id != DEAD))
        node.answer(tick(node), Leased(left, (DEAD,)))
        first_turns.append(any(isinstance(effect, CallStore) for effect in node.effects))
    assert sorted(first_turns) == [False, True], "exactly one tries at once"


def test_a_copy_of_a_task_that_is_inherited_gives_way():
    """Node 0 runs a copy of what node 1 owned; now it owns the task itself, in a new attempt."""
    with Driver("adage", cores=2) as node:
        node.give(Offer(DEAD, 1, COPY, (ready(1),)))
        node.answer(node.expect(CallStore), Granted(0, 0, REPLICA))
        node.expect(StartRun, task=1)
        call = orphaned(node, 2)
        node.answer(call, Estate((ready(1, attempt=1, move=1, mode=SUSPECT),)))
        node.expect(StopRun, task=1)
        call = node.expect(CallStore)
        node.answer(call, *(Granted(2, 1, SUSPECT) if isinstance(row, Claim) else OK for row in call.rows))
        assert node.expect(StartRun, task=1).ready.attempt == 1
        assert node.core.idle_count == 1


@pytest.mark.parametrize("shards", [1, 3])
def test_every_shard_is_taken_over(shards: int):
    with Driver(config=NodeConfig(shard_count=shards, lease_ns=LEASE_NS)) as node:
        first = orphaned(node, 2)
        calls = [first, *(node.expect(CallStore) for _ in range(shards - 1))]
        assert [call.shard for call in calls] == list(range(shards))
        for call in calls:
            assert not any(isinstance(effect, CallStore) for effect in node.effects)
            node.answer(call, Estate())
        node.expect_rows(Buried(DEAD, 0))
