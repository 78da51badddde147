"""What a node still has that is about to leave."""

from daws.model.task import AGAIN
from daws.wire.store import REPLICATE, STRUCK, Claim, Estate, Owned, OwnedBy, Owners, Suspend
from tests.contract.store.desk import ANN, BOB, CAT, CHILD, OTHER, PARENT, Contract, Desk


class LeavingContract(Contract):
    def test_a_node_is_told_which_ready_tasks_are_its_own(self, desk: Desk):
        desk.create(PARENT, children=[CHILD])
        desk.create(CHILD, parents=[PARENT])
        desk.create(OTHER, owner=BOB)
        answer = desk(Owned(ANN))
        assert isinstance(answer, Estate) and not answer.outbox and not answer.more
        assert [(one.spec.id, one.attempt, one.move, one.mode) for one in answer.ready] == [(PARENT, 0, 0, AGAIN)]

    def test_asking_changes_nothing(self, desk: Desk):
        desk.create(PARENT)
        desk(Owned(ANN))
        assert desk.story(PARENT).owner == ANN and desk.story(PARENT).attempt == 0
        desk.done(PARENT, ANN)

    def test_what_has_ended_waits_or_was_given_away_is_not_told(self, desk: Desk):
        for task in (PARENT, PARENT + 1, PARENT + 2):
            desk.create(task)
        desk.create(CHILD, parents=[PARENT + 1])
        desk.done(PARENT)
        desk(Claim(PARENT + 1, ANN, 0, BOB))
        desk(Suspend(PARENT + 2, 0, ANN, (CHILD,)))
        assert desk(Owned(ANN)) == Estate()

    def test_many_tasks_are_told_in_parts(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(5):
            desk.create(task)
        answer = desk(Owned(ANN, limit=3))
        assert isinstance(answer, Estate) and answer.more
        assert len(answer.ready) == 3
        for one in answer.ready:
            desk(Claim(one.spec.id, ANN, one.move, BOB))
        answer = desk(Owned(ANN, limit=3))
        assert isinstance(answer, Estate) and not answer.more and len(answer.ready) == 2

    def test_the_dead_own_nothing(self, desk: Desk):
        desk.create(PARENT)
        desk.bury(ANN, BOB)
        assert desk(Owned(ANN)) == STRUCK

    def test_all_are_named_who_have_something_to_take_over(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        assert desk(Owners()) == OwnedBy()
        desk.create(PARENT, children=[CHILD])
        desk.create(CHILD, parents=[PARENT])
        assert desk(Owners()) == OwnedBy((ANN,))
        desk(Claim(PARENT, ANN, 0, CAT, REPLICATE))
        desk.create(OTHER, owner=BOB)
        desk(Suspend(OTHER, 0, BOB, (CHILD,)))
        assert desk(Owners()) == OwnedBy(tuple(sorted((ANN, BOB, CAT))))

    def test_who_means_to_do_something_is_named_though_all_its_tasks_have_ended(self, desk: Desk):
        desk.create(PARENT, children=[CHILD])
        desk.create(CHILD, parents=[PARENT])
        desk.done(PARENT)
        assert desk(Owners()) == OwnedBy((ANN,))
