"""Rule 2, moving is claiming: owner and move number are compared, and of two claims the first wins."""

import pytest

from daws.model.states import READY
from daws.model.task import AGAIN
from daws.wire.store import ANNOUNCE, DONE, MOVE, REFUSED, REPLICATE, RETRY, STRUCK, Claim, Granted, Story
from tests.contract.store.desk import ANN, BOB, CAT, CHILD, OTHER, PARENT, Contract, Desk


class MovingContract(Contract):
    def test_claim_compares_owner_and_move(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Claim(PARENT, BOB, 0, CAT)) == REFUSED
        assert desk(Claim(PARENT, ANN, 1, CAT)) == REFUSED
        assert desk(Claim(PARENT, ANN, 0, CAT)) == Granted(1, 0)
        assert desk.story(PARENT) == Story(READY, CAT, 1, 0)

    def test_of_two_claims_the_first_wins(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Claim(PARENT, ANN, 0, BOB)) == Granted(1, 0)
        assert desk(Claim(PARENT, ANN, 0, CAT)) == REFUSED
        assert desk(Claim(PARENT, ANN, 0, BOB)) == Granted(1, 0, AGAIN)

    def test_a_late_claim_fails_after_the_lender_took_it_back(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Claim(PARENT, ANN, 0, ANN)) == Granted(1, 0)
        assert desk(Claim(PARENT, ANN, 0, BOB)) == REFUSED
        assert desk.story(PARENT).owner == ANN

    def test_taking_back_fails_after_the_receiver_claimed(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB))
        assert desk(Claim(PARENT, ANN, 0, ANN)) == REFUSED

    def test_a_claim_repeated_after_the_task_moved_on_fails(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB))
        desk(Claim(PARENT, BOB, 1, CAT))
        assert desk(Claim(PARENT, ANN, 0, BOB)) == REFUSED

    def test_a_claim_repeated_after_its_claimer_took_the_task_back_fails(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB))
        desk(Claim(PARENT, BOB, 1, BOB))
        assert desk(Claim(PARENT, ANN, 0, BOB)) == REFUSED

    def test_who_was_taken_over_cannot_claim(self, desk: Desk):
        desk.create(PARENT, owner=BOB)
        desk.bury(ANN, BOB)
        assert desk(Claim(PARENT, BOB, 0, ANN)) == STRUCK
        assert desk(Claim(PARENT, BOB, 0, ANN, REPLICATE)) == STRUCK

    @pytest.mark.parametrize("why", [MOVE, ANNOUNCE, RETRY, REPLICATE])
    def test_only_a_ready_task_can_be_claimed(self, desk: Desk, why: int):
        desk.create(CHILD, parents=[PARENT])
        assert desk(Claim(CHILD, -1, 0, BOB, why)) == REFUSED
        desk.create(OTHER)
        desk.done(OTHER)
        assert desk(Claim(OTHER, ANN, 0, BOB, why)) == DONE

    def test_a_retry_is_a_new_attempt(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Claim(PARENT, ANN, 0, ANN, RETRY)) == Granted(1, 1)
        assert desk.finish(PARENT, ANN, 0) == REFUSED
        desk.done(PARENT, ANN, 1)

    @pytest.mark.parametrize("first", [MOVE, ANNOUNCE, RETRY])
    @pytest.mark.parametrize("second", [MOVE, ANNOUNCE, RETRY])
    def test_a_claim_for_another_reason_is_no_repetition(self, desk: Desk, first: int, second: int):
        desk.create(PARENT)
        granted = desk(Claim(PARENT, ANN, 0, ANN, first))
        assert isinstance(granted, Granted)
        again = Granted(granted.move, granted.attempt, AGAIN)
        assert desk(Claim(PARENT, ANN, 0, ANN, second)) == (again if first == second else REFUSED)
