"""Where a ready task goes: into a queue, or to another node."""

from daws.core.effects import CallStore, Send, StartRun
from daws.core.events import StoreAnswered
from daws.model.cluster import Members
from daws.model.task import AGAIN, CLIENT, SUSPECT
from daws.testing import Driver, members_of, ready
from daws.testing.build import object_at
from daws.wire.messages import PUSH, Offer, Submission, SubmissionTaken
from daws.wire.store import Lease, Leased


def test_data_pulls_a_task_to_where_it_is():
    with Driver("mdl") as node:
        node.give(Submission(CLIENT, 0, (ready(1, object_at(9, 2)), ready(2, object_at(8, 2)))))
        node.expect(SubmissionTaken)
        offer = node.expect(Offer, to=2, why=PUSH)
        assert [one.spec.id for one in offer.tasks] == [1, 2], "one message for both"
        assert set(node.core.lent) == {1, 2}
        assert node.core.pushes == 2


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
        assert node.core.stranded is not None
        node.fire(0)
        call = node.expect(CallStore)
        assert isinstance(call.rows[0], Lease)
        joined = Members(2, members_of(3, contexts={2: "gpu"}).infos)
        node.answer(call, Leased(joined))
        node.expect(Offer, to=2)
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
        assert node.core.shared.count + node.core.dedicated.count == 1
        node.give(Submission(CLIENT, 9, (ready(3, mode=AGAIN | SUSPECT),)))
        node.drop(SubmissionTaken)
        assert sorted(one.mode for one in node.core.shared.all() + node.core.dedicated.all()) == [0, SUSPECT]


def test_an_answer_to_nothing_is_dropped():
    with Driver() as node:
        node.give(StoreAnswered(99, [3]))
