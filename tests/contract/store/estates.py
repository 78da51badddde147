"""Rule 4, death, its second half: what the dead leave behind, and who gets it."""

import pytest

from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import READY
from daws.model.task import SUSPECT
from daws.wire.store import ANNOUNCE, REFUSED, REPLICATE, STOP, STRUCK, Claim, Estate, Granted, Lease, TakeOver
from tests.contract.store.desk import ANN, BOB, CAT, CHILD, FAR, OTHER, PARENT, Contract, Desk


class EstatesContract(Contract):
    def test_taking_over_makes_a_new_attempt_that_the_heir_owns(self, desk: Desk):
        desk.create(PARENT)
        desk.create(CHILD)
        desk.create(OTHER, owner=BOB)
        ready, outbox = desk.bury(ANN, BOB)
        assert [(one.spec.id, one.attempt, one.move, one.mode) for one in ready] == [
            (PARENT, 1, 1, SUSPECT),
            (CHILD, 1, 1, SUSPECT),
        ]
        assert outbox == []
        assert desk.finish(PARENT, ANN, 0) == REFUSED
        assert desk.finish(PARENT, ANN, 1) == REFUSED
        assert desk(Claim(PARENT, ANN, 0, CAT)) == REFUSED, "an offer of the dead is void"
        desk.done(PARENT, BOB, 1)
        assert desk.story(OTHER).attempt == 0

    def test_what_was_left_behind_in_good_order_is_under_no_suspicion(self, desk: Desk):
        desk.create(PARENT, owner=10)
        for node in (10, 11, 12, 13):
            desk(Lease(node, 0, NodeInfo(node, (ExecutorClass(1),))))
            desk(Lease(node, 0, leaving=True))
            ready, _ = desk.bury(node, node + 1)
            assert [(one.spec.id, one.mode) for one in ready] == [(PARENT, 0)]
        assert desk.story(PARENT).state == READY

    def test_taking_over_part_by_part(self, desk: Desk):
        store = Desk(self.make(shards=1), self.snapshot)
        for task in range(7):
            store.create(task)
        seen: list[int] = []
        for part in range(4):
            answer = store(TakeOver(ANN, BOB, part, 2))
            assert isinstance(answer, Estate) and answer.more == (part < 3)
            seen += [ready.spec.id for ready in answer.ready]
        assert seen == list(range(7))

    @pytest.mark.parametrize("limit", [1, 3, 4, 100])
    def test_intents_are_taken_part_by_part_too(self, desk: Desk, limit: int):
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(9):  # seven are done, and their children are not there yet; two are ready
            desk.create(task, children=[task + 10])
            if task < 7:
                desk.done(task)
        taken: list[int] = []
        for part in range(20):
            answer = desk(TakeOver(ANN, BOB, part, limit))
            assert isinstance(answer, Estate) and len(answer.ready) + len(answer.outbox) <= limit
            taken += [one.task for one in answer.outbox] + [one.spec.id for one in answer.ready]
            if not answer.more:
                break
        assert taken == [*range(9)]

    def test_an_earlier_part_asked_for_late_takes_nothing_more(self, desk: Desk):
        """Its answer would be dropped, and with it what it names."""
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(5):
            desk.create(task)
        desk.once(TakeOver(ANN, BOB, 0, 2))
        desk.once(TakeOver(ANN, BOB, 1, 2))
        late = desk.once(TakeOver(ANN, BOB, 0, 2))
        assert isinstance(late, Estate) and late.ready == () and late.outbox == ()
        last = desk.once(TakeOver(ANN, BOB, 2, 2))
        assert isinstance(last, Estate) and [one.spec.id for one in last.ready] == [4]

    def test_two_heirs_share_an_estate(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(4):
            desk.create(task)
        one = desk(TakeOver(ANN, BOB, 0, 2))
        other = desk(TakeOver(ANN, CAT, 0, 2))
        assert isinstance(one, Estate) and isinstance(other, Estate)
        assert [ready.spec.id for ready in one.ready + other.ready] == [0, 1, 2, 3]
        assert one.more and not other.more

    def test_the_dead_cannot_take_over(self, desk: Desk):
        desk.create(PARENT, owner=BOB)
        desk.bury(ANN, CAT)
        assert desk(TakeOver(BOB, ANN)) == STRUCK
        assert desk.story(PARENT).owner == BOB

    def test_an_heir_of_an_heir(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN)
        desk.create(OTHER)
        desk.bury(ANN, BOB)
        ready, outbox = desk.bury(BOB, CAT)
        assert [(one.spec.id, one.attempt) for one in ready] == [(OTHER, 2)]
        assert [entry.task for entry in outbox] == [PARENT]

    def test_a_task_that_killed_three_nodes_fails(self, desk: Desk):
        desk.pair(owner=10)
        for node in (10, 11, 12):
            if node > 10:
                story = desk.story(PARENT)
                granted = desk(Claim(PARENT, node, story.move, node, ANNOUNCE))
                assert granted == Granted(story.move + 1, story.attempt, SUSPECT)
            ready, outbox = desk.bury(node, node + 1)
        assert ready == []
        (entry,) = outbox
        assert (entry.verb, entry.task, entry.others) == (STOP, PARENT, (CHILD,))
        assert "3 nodes" in entry.error
        assert desk.state(PARENT) == STATE_FAILED

    def test_innocent_tasks_in_the_queue_of_dying_nodes_are_not_failed(self, desk: Desk):
        tasks = [PARENT, CHILD, OTHER, FAR]
        for task in tasks:
            desk.create(task, owner=10)
        for node in range(10, 20):
            ready, outbox = desk.bury(node, node + 1)
            assert [one.spec.id for one in ready] == tasks and outbox == []
        assert [desk.story(task).attempt for task in tasks] == [10] * 4

    def test_a_suspect_that_moved_before_it_ran_is_not_blamed(self, desk: Desk):
        desk.create(PARENT, owner=10)
        for node in range(10, 20):
            desk.bury(node, node + 1)
            move = desk.story(PARENT).move
            desk(Claim(PARENT, node + 1, move, node + 1, ANNOUNCE))
            desk(Claim(PARENT, node + 1, move + 1, ANN))
            desk(Claim(PARENT, ANN, move + 2, node + 1))
        assert desk.state(PARENT) == READY

    def test_a_dead_replica_cannot_commit(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        assert desk.bury(BOB, CAT) == ([], [])
        assert desk.finish(PARENT, BOB) == REFUSED
        desk.done(PARENT, ANN)
