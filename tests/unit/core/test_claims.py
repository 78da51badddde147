"""Offers and claims: a task that moves is lost by nobody and run by one."""

import pytest

from daws.core.claims import accept_once_more
from daws.core.effects import CallStore, StartRun, StopRun
from daws.core.events import RunEnded
from daws.core.places import places
from daws.core.remake import claim_remake
from daws.model.task import AGAIN, CLIENT, REMAKE, REPLICA, SUSPECT
from daws.testing import Driver, ready
from daws.testing.build import object_at
from daws.wire.messages import (
    COPY,
    GIVEN,
    PUSH,
    STOLEN,
    Offer,
    StealDenied,
    StopOrder,
    Submission,
    SubmissionTaken,
    Taken,
)
from daws.wire.store import ANNOUNCE, MOVE, REFUSED, REPLICATE, Claim, Granted, Lease, Leased

TICK = 0


def lend(node: Driver, task: int = 1, move: int = 5) -> Offer:
    """A task whose data is at node 2 is pushed there."""
    node.give(Submission(CLIENT, 100 + move, (ready(task, object_at(9, 2), move=move),)))
    node.expect(SubmissionTaken)
    return node.expect(Offer, to=2)


def tick(node: Driver) -> CallStore:
    """The next tick; returns the call that begins with the renewal of the lease, without those that are repeated."""
    node.fire(TICK)
    calls = [effect for effect in node.effects if isinstance(effect, CallStore)]
    node.drop(CallStore)
    (call,) = [call for call in calls if isinstance(call.rows[0], Lease)]
    return call


def test_an_offer_is_claimed_before_it_is_queued():
    with Driver() as node:
        node.give(Offer(2, 1, PUSH, (ready(1, move=5), ready(2, move=6))))
        call = node.expect_rows(Claim(1, 2, 5, 0, MOVE), Claim(2, 2, 6, 0, MOVE))
        node.answer(call, Granted(6, 0), REFUSED)
        assert node.expect(StartRun, task=1).ready.move == 6
        assert node.expect(Taken, to=2).tasks == ((1, 5),)


def test_a_hand_out_that_is_older_than_one_that_came_before_is_not_taken():
    """A client that goes on with a session hands out what it finds; the last message of the one before is late."""
    with Driver() as node:
        node.give(Submission(CLIENT, 1, (ready(1, mode=AGAIN | SUSPECT),)))
        node.expect(SubmissionTaken)
        node.answer(node.expect_rows(Claim(1, 0, 0, 0, ANNOUNCE)), Granted(1, 0))
        assert node.expect(StartRun, task=1).ready.move == 1
        node.give(Submission(CLIENT, 2, (ready(1),)))
        node.expect(SubmissionTaken)
        node.nothing_left()


def test_a_doubled_offer_is_claimed_once():
    with Driver(cores=1) as node:
        offer = Offer(2, 1, GIVEN, (ready(1, move=5),))
        node.give(offer)
        node.give(offer)
        node.answer(node.expect(CallStore), Granted(6, 0))
        node.expect(StartRun, task=1)
        node.expect(Taken)


def test_an_offer_that_was_forgotten_is_not_taken_twice():
    """So late that its number is not remembered: the store grants the claim again, and says so."""
    with Driver(cores=1) as node:
        for number in (1, 2):
            node.give(Offer(2, number, GIVEN, (ready(1, move=5),)))
            node.answer(node.expect(CallStore), Granted(6, 0, AGAIN if number > 1 else 0))
            node.expect(Taken)
        run = node.expect(StartRun, task=1)
        node.give(RunEnded(1, run.run, 1_000_000_000))
        node.give(Offer(2, 3, GIVEN, (ready(1, move=5),)))
        finish, claim = node.expect(CallStore), node.expect(CallStore)
        node.answer(claim, Granted(6, 0, AGAIN))
        node.expect(Taken)
        node.answer(finish, None)
        assert not node.core.executors.running


def test_a_claim_that_is_granted_again_after_its_answer_was_lost_counts():
    with Driver() as node:
        node.give(Offer(2, 1, PUSH, (ready(1, move=5),)))
        node.answer(node.expect(CallStore), Granted(6, 0, AGAIN))
        assert node.expect(StartRun, task=1).ready.mode == 0
        node.expect(Taken)


def test_what_was_taken_is_forgotten():
    with Driver("mdl") as node:
        lend(node)
        node.give(Taken(1, ((1, 5),)))
        assert 1 in node.core.transfer.lent, "node 1 is not the one it was lent to"
        node.give(Taken(2, ((1, 4),)))
        assert 1 in node.core.transfer.lent, "that was an earlier time"
        node.give(Taken(2, ((1, 5),)))
        assert not node.core.transfer.lent


def test_news_of_an_earlier_loan_do_not_end_a_later_one():
    """Lent, taken, and given back before we heard of it: what we hear then is about the first time."""
    with Driver("mdl") as node:
        lend(node, move=5)
        node.give(Taken(2, ((1, 5),)))
        lend(node, move=7)
        node.give(Taken(2, ((1, 5),)), Taken(2, ((1, 6),)))
        assert 1 in node.core.transfer.lent
        node.give(Taken(2, ((1, 7),)))
        assert not node.core.transfer.lent


def test_what_nobody_took_is_claimed_back():
    with Driver("mdl") as node:
        lend(node)
        for _ in range(2):
            call = tick(node)
            node.answer(call, Leased())
        call = tick(node)
        assert call.rows[1] == Claim(1, 0, 5, 0, MOVE)
        assert not node.core.transfer.lent
        node.answer(call, Leased(), Granted(6, 0))
        assert (
            node.core.queues.shared.count + node.core.queues.dedicated.count + len(node.core.fetching.waiting or ())
            == 1
        )
        node.effects.clear()


def test_what_was_taken_but_not_told_is_not_claimed_back():
    with Driver("mdl") as node:
        lend(node)
        for _ in range(3):
            call = tick(node)
            node.answer(call, Leased(), *[REFUSED] * (len(call.rows) - 1))
        assert not node.core.transfer.lent and not node.core.transfer.claims


def test_a_task_that_comes_back_while_it_is_lent_is_not_lost():
    """It was taken, but we were not told; its new owner offers it to us. The answer to the one claim is not taken for
    the answer to the other."""
    with Driver("mdl") as node:
        lend(node, move=5)
        node.give(Offer(2, 1, GIVEN, (ready(1, object_at(9, 2), move=6),)))
        claim = node.expect_rows(Claim(1, 2, 6, 0, MOVE))
        for _ in range(3):
            call = tick(node)
            node.answer(call, Leased(), *[REFUSED] * (len(call.rows) - 1))
        node.answer(claim, Granted(7, 0))
        assert node.expect_fetch().source == 2
        assert node.expect(Taken, to=2).tasks == ((1, 6),)


def test_a_copy_is_a_run_beside_the_owners():
    with Driver("adage", cores=1) as node:
        node.give(Offer(2, 1, COPY, (ready(1, move=5),)))
        call = node.expect_rows(Claim(1, 2, 5, 0, REPLICATE))
        node.answer(call, Granted(5, 0, REPLICA))
        assert node.expect(StartRun, task=1).ready.mode == REPLICA
        assert node.core.replicas.count == 1


@pytest.mark.parametrize("retry", [True, False])
def test_a_copy_that_fails_is_only_dropped(retry: bool):
    """Neither reported nor tried again: the owner's run decides."""
    with Driver("adage", cores=1) as node:
        node.give(Offer(2, 1, COPY, (ready(1, move=5, makes=[1]),)))
        node.answer(node.expect(CallStore), Granted(5, 0, REPLICA))
        run = node.expect(StartRun, task=1)
        node.give(RunEnded(1, run.run, 50_000_000, (), "bad", retry))
        assert not node.core.executors.running and node.core.idle_count == 1
        assert not node.core.transfer.announcing and not node.core.objects.sizes


def test_a_copy_of_what_runs_here_is_not_taken():
    with Driver("adage", cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1, home=0),)))
        node.drop(SubmissionTaken)
        node.expect(StartRun)
        node.give(Offer(2, 1, COPY, (ready(1),)))


def test_stolen_tasks_may_be_stolen_again():
    with Driver(cores=1) as node:
        node.give(Offer(2, 1, STOLEN, (ready(1), ready(2))))
        node.answer(node.expect(CallStore), Granted(1, 0), Granted(1, 0))
        node.expect(StartRun, task=1)
        node.expect(Taken)
        assert node.core.queues.shared.count == 1 and node.core.transfer.steals == 2


def test_who_runs_a_copy_of_what_it_is_given_goes_on_with_it():
    with Driver("adage", members=2, cores=1) as node:
        node.give(Offer(1, 1, COPY, (ready(5),)))
        node.answer(node.expect(CallStore), Granted(0, 0, REPLICA))
        node.expect(StartRun, task=5)
        node.give(Offer(1, 2, GIVEN, (ready(5),)))
        node.answer(node.expect(CallStore), Granted(1, 0))
        node.expect(Taken)
        assert (
            node.core.executors.running[5].ready.move == 1 and not node.core.executors.running[5].ready.mode & REPLICA
        )
        assert not node.core.queues.dedicated.count


def test_a_copy_in_the_queue_gives_way_to_the_task_itself():
    with Driver("adage", members=2, cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1, home=0),)))
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=1)
        node.give(Offer(1, 1, COPY, (ready(5),)))
        node.answer(node.expect(CallStore), Granted(0, 0, REPLICA))
        assert node.core.queues.shared.count == 1
        node.give(Offer(1, 2, GIVEN, (ready(5),)))
        node.answer(node.expect(CallStore), Granted(1, 0))
        node.expect(Taken)
        assert node.core.queues.shared.count == 0 and node.core.queues.dedicated.count == 1


# -- copies, and tasks that come back ----------------------------------------------------------------------------------


def copied(cores: int = 1) -> Driver:
    """Task 9 runs; a copy of task 1 is queued behind it."""
    node = Driver("adage:replicate=never", cores=cores)
    node.give(Submission(CLIENT, 0, (ready(9),)))
    node.expect(SubmissionTaken)
    node.expect(StartRun, task=9)
    node.give(Offer(2, 1, COPY, (ready(1, move=5),)))
    node.answer(node.expect(CallStore), Granted(5, 0, REPLICA))
    return node


def test_to_have_a_copy_is_not_to_have_the_task():
    """The first answer to the claim got lost."""
    with copied() as node:
        node.give(Offer(2, 2, GIVEN, (ready(1, move=5),)))
        node.answer(node.expect(CallStore), Granted(6, 0, AGAIN))
        node.expect(Taken)
        assert [(one.spec.id, one.mode) for name, one in places(node.core) if name == "dedicated"] == [(1, 0)]
        assert not node.core.queues.shared.count


def test_a_task_is_run_where_a_copy_of_it_was_called_off():
    with copied() as node:
        node.give(StopOrder(2, 1, -1, 0))
        node.give(Offer(2, 2, GIVEN, (ready(1, move=5),)))
        node.answer(node.expect(CallStore), Granted(6, 0))
        node.expect(Taken)
        node.give(RunEnded(9, next(iter(node.core.executors.running.values())).number, 1_000_000_000))
        node.expect(StartRun, task=1)
        node.drop(CallStore)


def test_a_remake_that_is_here_already_is_not_claimed_again():
    """Several tasks asked for it; the answer to the last comes when it runs. A grant could come after its end."""
    with Driver(cores=1) as node:
        claim_remake(node.core, ready(1, move=5, mode=REMAKE), 0)
        node.give()
        node.answer(node.expect(CallStore), Granted(6, 1, REMAKE))
        run = node.expect(StartRun, task=1)
        claim_remake(node.core, ready(1, move=5, mode=REMAKE), 0)
        node.give()
        node.nothing_left()
        node.give(RunEnded(1, run.run, 1_000_000_000))
        finish = node.expect(CallStore)
        claim_remake(node.core, ready(1, move=5, mode=REMAKE), 0)
        node.give()
        node.nothing_left()
        node.answer(finish, None)


def test_a_copy_of_an_earlier_attempt_makes_room_for_a_remake():
    """Nobody told it that it has lost. What it would commit is refused, and its end is not that of the remake."""
    with Driver("adage", cores=1) as node:
        node.give(Offer(2, 1, COPY, (ready(1, move=5),)))
        node.answer(node.expect_rows(Claim(1, 2, 5, 0, REPLICATE)), Granted(5, 0, REPLICA))
        copy = node.expect(StartRun, task=1)
        node.drop(Taken)
        claim_remake(node.core, ready(1, attempt=1, move=6, mode=REMAKE), 0)
        node.give()
        node.answer(node.expect_rows(Claim(1, -1, 6, 0)), Granted(7, 1, REMAKE | AGAIN))
        assert node.expect(StopRun).run == copy.run
        assert node.expect(StartRun, task=1).ready.attempt == 1


def test_a_late_word_of_a_remake_does_not_hide_a_claim():
    with Driver(cores=1) as node:
        node.give(Offer(2, 1, PUSH, (ready(1, move=6),)))
        call = node.expect(CallStore)
        claim_remake(node.core, ready(1, move=5), 0)
        node.give(StealDenied(2))
        node.answer(node.expect_rows(Claim(1, -1, 5, 0)), REFUSED)
        node.answer(call, Granted(7, 0))
        node.expect(StartRun, task=1)
        node.expect(Taken)


@pytest.mark.parametrize("modes", [(0, AGAIN), (AGAIN, 0)])
def test_of_two_answers_about_a_task_that_waited_the_later_starts_nothing(modes):
    """It was told twice, and the other answer comes when it has long ended."""
    with Driver(cores=1) as node:
        for mode in modes:
            accept_once_more(node.core, ready(1, move=5, mode=mode))
            node.give(StealDenied(2))
            if node.core.executors.running:
                node.give(RunEnded(1, node.expect(StartRun, task=1).run, 1_000_000_000))
                node.answer(node.expect(CallStore), None)
        node.nothing_left()


def test_what_was_lent_before_it_waited_again_does_not_hide_it():
    with Driver("mdl", cores=1) as node:
        lend(node, move=3)
        accept_once_more(node.core, ready(1, move=5))
        node.give(StealDenied(2))
        node.expect(StartRun, task=1)
        accept_once_more(node.core, ready(1, move=5))
        node.give(StealDenied(2))
