"""A node that is told to leave, and what the others make of it."""

import pytest

from daws.core.effects import (
    DEADLINE,
    CallStore,
    DropObject,
    FetchObjects,
    Left,
    RecallRun,
    ResumeRun,
    Send,
    StartRun,
    StopRun,
)
from daws.core.events import Leave, ObjectsPut, RunEnded, RunRecalled, RunWaits, TimerFired
from daws.core.leaving import TAKERS_MAX, hindrance
from daws.core.node import SECOND_NS, NodeConfig
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.context import parse_context
from daws.model.task import AGAIN, CLIENT, REPLICA, SUSPECT
from daws.testing import Driver, members_of, ready
from daws.testing.build import fetched, object_at
from daws.wire.messages import (
    COPY,
    GIVEN,
    LEAVES,
    LEAVING,
    PUSH,
    STOLEN,
    HandOver,
    LoadQuery,
    LoadReply,
    Offer,
    Refusal,
    Releases,
    StealDenied,
    StealRequest,
    Submission,
    SubmissionTaken,
    Taken,
    Wake,
)
from daws.wire.store import (
    OK,
    RETRY,
    STRUCK,
    Claim,
    Committed,
    Estate,
    Finish,
    Granted,
    Inspect,
    Lease,
    Leased,
    Owned,
    Suspend,
    TakeOver,
)

TICK = 0
POLL = 1
LEASE_NS = 8 * SECOND_NS
TICK_NS = LEASE_NS // 4


def submit(node: Driver, *tasks, batch: int = 0) -> None:
    node.give(Submission(CLIENT, batch, tasks))
    node.expect(SubmissionTaken)


def offers(node: Driver) -> dict[int, list[int]]:
    """What is given away, by receiver."""
    given: dict[int, list[int]] = {}
    for effect in node.effects:
        if isinstance(effect, Send) and isinstance(effect.message, Offer):
            assert effect.message.why == LEAVING
            given.setdefault(effect.to, []).extend(one.spec.id for one in effect.message.tasks)
    node.drop(Offer)
    return given


def given(node: Driver) -> list[int]:
    """What is given away, to whomever."""
    return sorted(task for tasks in offers(node).values() for task in tasks)


def taken(node: Driver) -> None:
    """Everything that was offered is claimed by whom it was offered to."""
    for task, lent in list(node.core.transfer.lent.items()):
        node.give(Taken(lent.to, ((task, lent.ready.move),)))


def farewell(node: Driver) -> None:
    """The store has nothing of this node, which leaves then."""
    look = node.core.leaving.look
    node.answer(node.expect_rows(Owned(0, look)), Estate())
    call = node.expect_rows(Lease(0, 1, leaving=True, asked_ns=node.now_ns))
    node.answer(call, Leased())


def test_an_idle_node_leaves_when_the_store_has_nothing_of_it():
    with Driver() as node:
        node.give(Leave())
        assert not hindrance(node.core)
        farewell(node)
        assert node.expect(Left).behind == ""


def test_what_waits_is_given_away_and_what_runs_may_end():
    with Driver(cores=1) as node:
        submit(node, *(ready(task, leaf=True) for task in range(5)))
        run = node.expect(StartRun, task=0)
        node.give(Leave())
        dealt = offers(node)
        assert sorted(dealt[1] + dealt[2]) == [1, 2, 3, 4], "spread over all members"
        taken(node)
        assert hindrance(node.core) == "1 runs that have not ended"
        node.give(RunEnded(0, run.run, SECOND_NS))
        node.answer(node.expect_rows(Finish(0, 0, 0)), None)
        farewell(node)
        node.expect(Left)


def test_nothing_starts_any_more():
    with Driver(cores=2) as node:
        node.give(Leave())
        node.drop(CallStore)
        submit(node, ready(1))
        assert given(node) == [1]
        node.give(TimerFired(POLL))


def test_a_renewal_lets_nothing_start():
    with Driver() as node:
        node.give(Leave())
        node.drop(CallStore)
        node.fire(TICK)
        node.answer(node.expect(CallStore), Leased())
        assert node.core.membership.leased_until_ns == 0
        node.drop(CallStore)


def test_a_task_that_becomes_ready_is_given_away():
    with Driver(cores=1) as node:
        submit(node, ready(1, makes=[1]))
        run = node.expect(StartRun, task=1)
        node.give(Leave())
        node.give(RunEnded(1, run.run, SECOND_NS, (10,)))
        call = node.expect(CallStore)
        node.answer(call, Committed(-1, (), (), (2,), ready=(ready(2, move=1),)))
        assert given(node) == [2]


def test_a_staged_task_and_one_whose_inputs_are_on_their_way_are_given_away():
    with Driver("mlb", cores=1) as node:
        submit(node, ready(1, object_at(8, 1)), ready(2, object_at(9, 2)), ready(3, object_at(9, 2)))
        node.drop(FetchObjects)
        node.give(fetched(8, 1))
        run = node.expect(StartRun, task=1)
        assert len(node.core.fetching.waiting) == 2
        node.give(Leave())
        assert given(node) == [2, 3]
        node.give(fetched(9, 2))
        node.expect(DropObject, object=9)
        node.give(RunEnded(1, run.run, SECOND_NS))
        node.drop(object)


def test_a_task_goes_where_its_data_is():
    with Driver("mdl", members=9, cores=1) as node:
        node.give(ObjectsPut(((8, 100_000),)))
        submit(node, ready(0, object_at(8, 0)), ready(1, object_at(8, 0)))
        node.expect(StartRun, task=0)
        node.give(Offer(2, 1, PUSH, (ready(2, object_at(9, 7), move=3),)))
        node.answer(node.expect(CallStore), Granted(4, 0))
        node.expect(Taken)
        node.give(Leave())
        dealt = offers(node)
        assert 2 in dealt[7] and sum(map(len, dealt.values())) == 2


def test_what_was_sent_ahead_is_recalled_and_given_away():
    with Driver(cores=1, config=NodeConfig(lease_ns=LEASE_NS, ahead_ns=10_000_000)) as node:
        submit(node, *(ready(task) for task in range(7)))
        for task in (0, 1, 2):
            node.give(RunEnded(task, node.expect(StartRun, task=task).run, 1000))
        node.drop(CallStore)
        runs = {task: node.expect(StartRun, task=task).run for task in (3, 4, 5, 6)}
        node.give(Leave())
        for task in (4, 5, 6):
            node.expect(RecallRun, task=task)
        assert not node.effects, "task 3 has begun, and nothing was queued"
        node.give(RunRecalled(4, runs[4]))
        assert given(node) == [4]
        node.give(RunEnded(5, runs[5], 1000))
        node.drop(CallStore)
        assert not node.effects, "it came too late: it is done"


def test_copies_are_dropped():
    with Driver("adage", cores=1) as node:
        for number in (1, 2):
            node.give(Offer(1, number, COPY, (ready(number),)))
            node.answer(node.expect(CallStore), Granted(0, 0, REPLICA))
        node.expect(StartRun, task=1)
        node.give(Leave())
        node.expect(StopRun, task=1)
        farewell(node)
        assert node.expect(Left).behind == ""


@pytest.mark.parametrize("why", [PUSH, STOLEN, GIVEN, COPY, LEAVING])
def test_offers_are_refused(why: int):
    with Driver() as node:
        node.give(Leave())
        node.drop(CallStore)
        node.give(Offer(2, 1, why, (ready(1, move=5), ready(2, move=6))))
        assert node.expect(Refusal, to=2).tasks == ((1, 5), (2, 6))


def test_a_claim_under_way_is_carried_to_its_end_and_given_on():
    with Driver() as node:
        node.give(Offer(2, 1, PUSH, (ready(1, move=5),)))
        claim = node.expect(CallStore)
        node.give(Leave())
        node.answer(claim, Granted(6, 0))
        assert node.expect(Taken, to=2).tasks == ((1, 5),)
        assert given(node) == [1]


def test_nobody_is_asked_for_work_by_who_leaves():
    with Driver(cores=1) as node:
        node.fire(POLL)
        assert node.drop(LoadQuery) == 2
        node.give(Leave())
        node.drop(CallStore)
        for other in (1, 2):
            node.give(LoadReply(other, 100, 100))
        node.give(TimerFired(POLL))
        node.give(LoadQuery(1))
        assert node.expect(LoadReply).load == LEAVES
        node.give(StealRequest(1))
        node.expect(StealDenied)


def test_what_a_client_has_not_handed_over_yet_is_found_in_the_store():
    with Driver() as node:
        node.give(Leave())
        call = node.expect_rows(Owned(0, 1))
        node.answer(call, Estate((ready(1, mode=AGAIN), ready(2, mode=AGAIN))))
        assert given(node) == [1, 2]
        submit(node, ready(1), ready(2))
        assert not node.effects, "it knows them already"
        taken(node)
        farewell(node)
        node.expect(Left)


def test_what_is_found_after_something_has_happened_is_looked_for_again():
    with Driver() as node:
        node.give(Leave())
        old = node.expect_rows(Owned(0, 1))
        submit(node, ready(1))
        offers(node)
        taken(node)
        node.answer(old, Estate((ready(1, mode=AGAIN),)))
        assert node.core.leaving.look == 2
        farewell(node)
        node.expect(Left)


def test_every_shard_is_asked():
    with Driver(config=NodeConfig(shard_count=3, lease_ns=LEASE_NS)) as node:
        node.give(Leave())
        calls = [node.expect(CallStore) for _ in range(3)]
        assert [call.shard for call in calls] == [0, 1, 2]
        for call in calls:
            assert not node.effects
            node.answer(call, Estate())
        node.expect_rows(Lease(0, 1, leaving=True))


def test_objects_are_kept_until_they_were_read():
    with Driver(cores=1) as node:
        submit(node, ready(1, makes=[1]))
        run = node.expect(StartRun, task=1)
        node.give(Leave())
        node.give(RunEnded(1, run.run, SECOND_NS, (100_000,)))
        node.answer(node.expect(CallStore), Committed(-1, (), (), (2,)))
        assert hindrance(node.core) == "1 tasks whose objects are yet to be read"
        node.expect(HandOver)
        assert not node.effects
        node.give(Releases(2, ((1, 2),)))
        node.drop(object)
        assert hindrance(node.core) == "words that the store has not heard"
        (call,) = list(node.core.store.calls.values())
        node.answer(call, OK)
        farewell(node)
        assert node.expect(Left).behind == ""


def test_who_leaves_asks_soon_whether_its_objects_were_read():
    """The reader may have been told of another place, and has said so there."""
    with Driver(cores=1) as node:
        submit(node, ready(1, makes=[1]))
        run = node.expect(StartRun, task=1)
        node.give(Leave())
        node.give(RunEnded(1, run.run, SECOND_NS, (100_000,)))
        node.answer(node.expect(CallStore), Committed(-1, (), (), (2,)))
        asked = []
        for _ in range(4):
            node.fire(TICK)
            asked += [row for call in node.core.store.calls.values() for row in call.rows if isinstance(row, Inspect)]
            node.drop(CallStore)
        assert asked and {row.task for row in asked} == {2}
        node.drop(Send)


def test_at_the_deadline_objects_are_left_behind():
    with Driver(cores=1) as node:
        submit(node, ready(1, makes=[1]))
        run = node.expect(StartRun, task=1)
        node.give(Leave(SECOND_NS))
        node.give(RunEnded(1, run.run, SECOND_NS, (100_000,)))
        node.answer(node.expect(CallStore), Committed(-1, (), (), (2,)))
        node.expect(HandOver)
        node.fire(DEADLINE)
        farewell(node)
        assert node.expect(Left).behind == "the objects of 1 tasks, which are yet to be read"


def test_at_the_deadline_runs_are_stopped_and_their_tasks_given_away():
    with Driver(cores=1) as node:
        submit(node, ready(1, move=4))
        node.expect(StartRun, task=1)
        node.give(Leave(SECOND_NS))
        node.fire(DEADLINE)
        node.expect(StopRun, task=1)
        node.answer(node.expect_rows(Claim(1, 0, 4, 0, RETRY)), Granted(5, 1))
        assert given(node) == [1]
        assert node.core.transfer.lent[1].ready.attempt == 1
        taken(node)
        farewell(node)
        assert node.expect(Left).behind == ""


def test_who_cannot_hand_over_in_time_leaves_anyway():
    with Driver(cores=1) as node:
        submit(node, ready(1, move=4))
        node.expect(StartRun, task=1)
        node.give(Leave(SECOND_NS))
        node.fire(DEADLINE)
        node.drop(object)
        assert node.timers[DEADLINE] == SECOND_NS + TICK_NS
        node.fire(DEADLINE)
        call = node.expect(CallStore)
        assert call.rows[-1] == Lease(0, 1, leaving=True, asked_ns=node.now_ns)
        node.answer(call, *[Leased()] * len(call.rows))
        assert node.expect(Left).behind == "1 tasks that it wants to try again"


def test_the_earliest_deadline_counts():
    with Driver(cores=1) as node:
        submit(node, ready(1))
        node.expect(StartRun, task=1)
        for deadline_s in (5, 3, 9):
            node.give(Leave(deadline_s * SECOND_NS))
        assert node.timers[DEADLINE] == 3 * SECOND_NS
        node.give(Leave())
        assert node.core.leaving.deadline_ns == 3 * SECOND_NS


def test_a_suspended_run_is_waited_for_and_goes_on():
    with Driver(cores=1) as node:
        submit(node, ready(1))
        run = node.expect(StartRun, task=1)
        node.give(RunWaits(1, run.run, (7,)))
        assert isinstance(node.expect(CallStore).rows[0], Suspend)
        node.give(Leave())
        node.give(Wake(2, 1, 55))
        node.expect(ResumeRun, task=1)
        node.drop(object)


def test_who_leaves_takes_over_from_nobody():
    with Driver() as node:
        node.give(Leave())
        node.drop(CallStore)
        left = Members(2, tuple(info for info in members_of(3).infos if info.id != 1))
        for _ in range(4):
            node.fire(TICK)
            calls = [effect for effect in node.effects if isinstance(effect, CallStore)]
            node.drop(CallStore)
            assert not any(isinstance(row, TakeOver) for call in calls for row in call.rows)
            node.answer(
                calls[-1], *(Leased(left, (1,)) if isinstance(row, Lease) else Estate() for row in calls[-1].rows)
            )
            node.now_ns += LEASE_NS
        node.drop(object)


def test_who_is_struck_while_it_leaves_does_not_begin_anew():
    with Driver() as node:
        node.give(Leave())
        node.answer(node.expect_rows(Owned(0, 1)), STRUCK)
        assert "lease ran out" in node.expect(Left).behind
        node.drop(object)


def test_after_its_farewell_it_renews_nothing_and_says_it_again():
    with Driver() as node:
        node.give(Leave())
        node.answer(node.expect_rows(Owned(0, 1)), Estate())
        call = node.expect(CallStore)
        node.fire(TICK)
        node.fire(TICK)
        assert node.expect(CallStore) == call
        node.answer(call, Leased())
        node.expect(Left)


def test_a_renewal_that_comes_too_late_makes_no_difference():
    """It reaches the store after the farewell, and its answer comes first."""
    with Driver() as node:
        node.fire(TICK)
        renewal = node.expect(CallStore)
        node.give(Leave())
        node.answer(node.expect_rows(Owned(0, 1)), Estate())
        node.expect(CallStore)
        node.answer(renewal, STRUCK)
        assert node.expect(Left).behind == ""


def test_the_last_node_leaves_what_nobody_is_there_to_take():
    with Driver(members=1, cores=1) as node:
        submit(node, ready(1), ready(2))
        run = node.expect(StartRun, task=1)
        node.give(Leave())
        node.give(RunEnded(1, run.run, SECOND_NS))
        node.answer(node.expect(CallStore), Committed(-1))
        node.answer(node.expect_rows(Owned(0, node.core.leaving.look)), Estate((ready(2, mode=AGAIN),)))
        node.answer(node.expect(CallStore), Leased())
        assert node.expect(Left).behind == "1 tasks that nobody is there to take"


def test_two_that_leave_find_out_about_each_other():
    with Driver(members=2, cores=1) as node:
        submit(node, ready(1), ready(2, move=3))
        node.expect(StartRun, task=1)
        node.give(Leave())
        assert offers(node) == {1: [2]}
        node.give(Refusal(1, ((2, 3),)))
        node.answer(node.expect_rows(Claim(2, 0, 3, 0)), Granted(4, 0))
        assert [one.spec.id for one in node.core.queues.stranded or ()] == [2]


def labelled() -> Members:
    """Nodes 0 and 2 have what node 1 has not."""
    gpu, plain = ExecutorClass(1, parse_context("gpu")), ExecutorClass(1)
    return Members(1, (NodeInfo(0, (plain, gpu)), NodeInfo(1, (plain,)), NodeInfo(2, (plain, gpu))))


def test_contexts_are_respected():
    with Driver(members=labelled()) as node:
        submit(node, *(ready(task, context="gpu") for task in range(8)))
        node.drop(StartRun)
        node.give(Leave())
        assert set(offers(node)) == {2}


def test_what_nobody_can_run_goes_to_anybody():
    members = labelled()
    with Driver(members=Members(1, members.infos[:2])) as node:
        submit(node, *(ready(task, context="gpu") for task in range(3)))
        node.drop(StartRun)
        node.give(Leave())
        assert set(offers(node)) == {1}


def test_much_is_dealt_to_many_but_not_to_all():
    with Driver(members=190, cores=1) as node:
        submit(node, *(ready(task) for task in range(1001)))
        node.drop(StartRun)
        node.give(Leave())
        sizes = [len(tasks) for tasks in offers(node).values()]
        assert sum(sizes) == 1000 and len(sizes) == TAKERS_MAX and max(sizes) == 16


# -- the others --------------------------------------------------------------------------------------------------------


def test_what_is_refused_is_taken_back_at_once_and_not_offered_there_again():
    with Driver("mdl") as node:
        for move in (5, 6):
            submit(node, ready(1, object_at(9, 2), move=move), batch=move)
            if move == 5:
                node.expect(Offer, to=2)
                node.give(Refusal(2, ((1, 4),)), Refusal(1, ((1, 5),)))
                assert not node.effects, "not what was offered, or not to that node"
                node.give(Refusal(2, ((1, 5),)))
                node.answer(node.expect_rows(Claim(1, 0, 5, 0)), Granted(6, 0))
                node.expect_fetch(9, 2)
                assert 1 in (node.core.fetching.waiting or {})
                node.core.fetching.waiting.clear()
        assert not any(isinstance(effect, Offer) for effect in node.effects)
        node.drop(object)


def test_a_task_of_somebody_who_leaves_is_placed_anew():
    with Driver("mdl", cores=1) as node:
        node.give(Offer(2, 1, LEAVING, (ready(1, object_at(9, 2), move=5), ready(2, object_at(8, 1), move=6))))
        node.answer(node.expect(CallStore), Granted(6, 0), Granted(7, 0, SUSPECT))
        node.expect(Taken, to=2)
        assert [one.spec.id for one in node.expect(Offer, to=1).tasks] == [2], "its data is there"
        node.expect_fetch(9, 2)
        assert node.core.membership.leavers == {2}


def test_what_only_leavers_can_run_is_kept_until_somebody_joins():
    with Driver(members=labelled(), node=1) as node:
        node.give(LoadReply(2, 0, LEAVES), LoadReply(0, 0, LEAVES))
        submit(node, ready(1, context="gpu"))
        assert [one.spec.id for one in node.core.queues.stranded or ()] == [1]
        node.fire(TICK)
        more = Members(2, (*labelled().infos[1:], NodeInfo(3, labelled().infos[0].executors)))
        node.answer(node.expect(CallStore), Leased(more))
        node.expect(Offer, to=3)
        assert node.core.membership.leavers == {2}


def test_nothing_is_given_to_who_leaves():
    with Driver("adage:replicate=never", members=5, cores=1) as node:
        submit(node, *(ready(task) for task in range(9)))
        node.expect(StartRun)
        node.fire(POLL)
        asked = node.drop(LoadQuery)
        assert asked == 2
        node.give(LoadReply(1, 0, LEAVES))
        node.give(LoadReply(3, 0, 0))
        node.expect(Offer, to=3, why=GIVEN)


def test_nobody_is_left_to_steal_from():
    with Driver(members=3, cores=1) as node:
        node.fire(POLL)
        assert node.drop(LoadQuery) == 2
        node.give(LoadReply(1, 0, LEAVES))
        node.give(LoadReply(2, 0, LEAVES))
        assert node.core.search.probe is None and node.core.search.failed_steals == 1


def test_who_is_told_too_late_has_a_tick_to_hand_over():
    with Driver(cores=1) as node:
        submit(node, ready(1, move=4))
        node.expect(StartRun, task=1)
        node.now_ns = 3 * SECOND_NS
        node.give(Leave(SECOND_NS))
        node.expect(StopRun, task=1)
        node.expect_rows(Claim(1, 0, 4, 0, RETRY))
        assert node.timers[DEADLINE] == node.now_ns + TICK_NS
