"""Where a ready task goes: into a queue, or to another node."""

from daws.core.effects import CallStore, Send, StartRun
from daws.core.events import RunEnded, StoreAnswered
from daws.core.placement import accept
from daws.core.transfer import GIVEN_UP_MAX, know_until, own_transfer
from daws.model.cluster import Members
from daws.model.task import AGAIN, CLIENT, SUSPECT
from daws.testing import Driver, members_of, ready
from daws.testing.build import BIG, object_at
from daws.wire.messages import PUSH, Offer, Submission, SubmissionTaken
from daws.wire.store import Committed, Lease, Leased


def test_data_pulls_a_task_to_where_it_is():
    with Driver("mdl") as node:
        node.give(Submission(CLIENT, 0, (ready(1, object_at(9, 2)), ready(2, object_at(8, 2)))))
        node.expect(SubmissionTaken)
        offer = node.expect(Offer, to=2, why=PUSH)
        assert [one.spec.id for one in offer.tasks] == [1, 2], "one message for both"
        assert set(node.core.transfer.lent) == {1, 2}
        assert node.core.transfer.pushes == 2


def test_every_offer_has_a_number_of_its_own():
    with Driver("mdl") as node:
        for batch in range(2):
            node.give(Submission(CLIENT, batch, (ready(batch, object_at(9, 2)),)))
        node.drop(SubmissionTaken)
        assert node.expect(Offer).number != node.expect(Offer).number


def test_what_this_node_cannot_run_goes_to_one_that_can():
    members = members_of(3, contexts={2: "gpu"})
    with Driver(members=members) as node:
        node.give(Submission(CLIENT, 0, (ready(1, context="gpu"),)))
        node.drop(SubmissionTaken)
        node.expect(Offer, to=2, why=PUSH)


def test_what_nobody_can_run_waits_for_somebody_who_can():
    with Driver(members=members_of(2)) as node:
        node.give(Submission(CLIENT, 0, (ready(1, context="gpu"),)))
        node.drop(SubmissionTaken)
        assert node.core.queues.stranded is not None
        node.fire(0)
        call = node.expect(CallStore)
        assert isinstance(call.rows[0], Lease)
        joined = Members(2, members_of(3, contexts={2: "gpu"}).infos)
        node.answer(call, Leased(joined))
        node.expect(Offer, to=2)
        node.drop(Send)


def test_the_stranded_wait_until_it_is_one_who_can_run_them():
    with Driver(members=members_of(1)) as node:
        node.give(Submission(CLIENT, 0, (ready(1, context="gpu"), ready(2, cores=3), ready(3, context="gpu"))))
        node.drop(SubmissionTaken)
        for version, count, stranded in ((2, 2, [1, 2, 3]), (3, 3, [2])):
            node.fire(0)
            joined = Members(version, members_of(count, contexts={2: "gpu"}).infos)
            node.answer(node.expect(CallStore), Leased(joined))
            assert [one.spec.id for one in node.core.queues.stranded or ()] == stranded
        assert [one.spec.id for one in node.expect(Offer, to=2, why=PUSH).tasks] == [1, 3]
        node.drop(Send)


def test_children_that_a_commit_made_ready_start_at_once():
    with Driver(cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1, makes=[1]),)))
        node.drop(SubmissionTaken)
        run = node.expect(StartRun, task=1)
        node.give(RunEnded(1, run.run, 50_000_000, (BIG,)))
        child = ready(2, object_at(1, 0), move=1)
        node.answer(node.expect(CallStore), Committed(-1, readers=(2,), ready=(child,)))
        node.expect(StartRun, task=2)
        node.drop(Send)


def test_children_that_a_commit_names_again_start_once():
    """The answer to the first of two equal calls got lost, but one of the children came here by another way."""
    with Driver(cores=2) as node:
        node.give(Submission(CLIENT, 0, (ready(1), ready(2, move=1))))
        node.drop(SubmissionTaken)
        run = node.expect(StartRun, task=1)
        node.expect(StartRun, task=2)
        node.give(RunEnded(1, run.run, 50_000_000))
        again = tuple(ready(task, move=1, mode=AGAIN) for task in (2, 3))
        node.answer(node.expect(CallStore), Committed(-1, readers=(2, 3), ready=again))
        assert node.expect(StartRun).ready == ready(3, move=1)
        node.drop(Send)


def test_a_task_that_is_given_again_is_taken_once():
    """The store repeats itself when it is asked again; the node knows what it has."""
    with Driver("random", cores=1, members=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1), ready(2))))
        node.drop(SubmissionTaken)
        node.expect(StartRun, task=1)
        for task in (1, 2):
            node.give(Submission(CLIENT, task, (ready(task, mode=AGAIN),)))
        node.drop(SubmissionTaken)
        assert node.core.queues.shared.count + node.core.queues.dedicated.count == 1
        node.give(Submission(CLIENT, 9, (ready(3, mode=AGAIN | SUSPECT),)))
        node.drop(SubmissionTaken)
        assert sorted(one.mode for one in node.core.queues.shared.all() + node.core.queues.dedicated.all()) == [
            0,
            SUSPECT,
        ]


def test_an_answer_to_nothing_is_dropped():
    with Driver() as node:
        node.give(StoreAnswered(99, [3]))


def test_what_was_said_before_a_task_went_back_to_waiting_is_not_taken_up():
    """The store repeats what it said (AGAIN); meanwhile the task was given up, because an input was lost."""
    with Driver("mlb", members=1, cores=1) as node:
        own_transfer(node.core).given_up = {5: 3}
        accept(node.core, ready(5, move=3, mode=AGAIN))
        accept(node.core, ready(5, move=4, mode=AGAIN))
        assert [one.move for one in node.core.queues.shared.all()] == [4]


def test_what_is_known_of_tasks_that_were_given_up_is_not_kept_for_ever():
    node = Driver("mlb")
    for task in range(3 * GIVEN_UP_MAX):
        know_until(node.core, ready(task, move=3))
        know_until(node.core, ready(0, move=task))  # it happens again and again
    given_up = node.core.transfer.given_up
    assert len(given_up) <= GIVEN_UP_MAX
    assert given_up[0] == 3 * GIVEN_UP_MAX - 1
    assert given_up[3 * GIVEN_UP_MAX - GIVEN_UP_MAX // 3] == 3
