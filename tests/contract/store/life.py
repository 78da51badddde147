"""A task's life: it is created, becomes ready when the last edge is told (rule 1), and its first run wins (rule 3)."""

import msgspec
import pytest

from daws.model.states import DONE as STATE_DONE
from daws.model.states import READY, WAITING
from daws.model.task import AGAIN, REPLICA, Input, Ready, TaskSpec
from daws.wire.store import (
    CANCELLED,
    DONE,
    FAILED,
    OK,
    REFUSED,
    REPLICATE,
    RETRY,
    SATISFY,
    STRUCK,
    UNKNOWN,
    AddPlace,
    Available,
    Cancel,
    Claim,
    Committed,
    Create,
    DropPlace,
    Finish,
    FinishSmall,
    Granted,
    Inspect,
    Locate,
    Open,
    Register,
    Release,
    Remake,
    Retain,
    Row,
    Satisfy,
    Spawn,
    Story,
    Suspend,
    Unready,
    outbox_key,
)
from tests.contract.store.desk import ANN, BOB, CAT, CHILD, FAR, OTHER, PARENT, Contract, Desk, made, same


class LifeContract(Contract):
    # -- create ----------------------------------------------------------------------------------------

    def test_a_task_without_parents_is_ready_and_owned(self, desk: Desk):
        desk.create(PARENT, owner=BOB)
        assert desk.story(PARENT) == Story(READY, BOB, 0, 0)

    def test_a_task_with_parents_waits_and_is_owned_by_nobody(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT, OTHER], owner=BOB)
        assert desk.story(CHILD) == Story(WAITING, -1, 0, 0, (PARENT, OTHER))

    def test_a_second_task_under_the_same_id_is_refused(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Create(TaskSpec(PARENT, kind=5), owner=BOB)) == REFUSED
        assert desk.story(PARENT).owner == ANN

    def test_create_repeated_late_changes_nothing(self, desk: Desk):
        spec = desk.create(PARENT)
        desk.done(PARENT)
        assert desk(Create(spec, owner=ANN)) == OK
        assert desk.state(PARENT) == STATE_DONE

    def test_who_was_taken_over_creates_nothing(self, desk: Desk):
        desk.bury(ANN, BOB)
        assert desk(Create(TaskSpec(PARENT), owner=ANN)) == STRUCK
        assert desk(Inspect(PARENT)) == UNKNOWN

    def test_rows_of_one_call_are_answered_in_order(self, desk: Desk):
        store = desk.store
        rows = [Create(TaskSpec(2), owner=ANN), Finish(2, 0, ANN), Inspect(2), Inspect(3)]
        created, finished, story, nothing = store.apply(0, rows, 0)
        assert created == OK and same(finished, None) and nothing == UNKNOWN
        assert isinstance(story, Story) and story.state == STATE_DONE

    def test_the_end_of_a_small_run_is_the_same_in_short(self, desk: Desk):
        desk.create(PARENT, outputs=[PARENT])
        desk.create(OTHER, outputs=[OTHER])
        in_full = Finish(PARENT, 0, ANN, (Input(PARENT, 3, PARENT, (ANN,), b"abc"),))
        assert same(desk(FinishSmall(OTHER, 0, ANN, b"abc")), desk(in_full))
        assert desk.state(OTHER) == desk.state(PARENT) == STATE_DONE
        assert desk(Locate(OTHER)) == Available((Input(OTHER, 3, OTHER, (ANN,), b"abc"),))
        assert desk(FinishSmall(OTHER, 1, BOB, b"late")) == desk(Finish(PARENT, 1, BOB))

    def test_an_empty_call_is_answered(self, desk: Desk):
        assert desk.store.apply(0, [], 0) == []

    @pytest.mark.parametrize(
        "row",
        [
            Finish(9, 0, ANN),
            FinishSmall(9, 0, ANN, b"x"),
            Satisfy(9, 1, ANN),
            Open(9, ANN),
            Claim(9, ANN, 0, BOB),
            Unready(9, ANN, 0, (1,)),
            Remake(9, 1, ANN),
            Register(9, 1),
            Cancel(9, ANN),
            Release(9),
            Locate(9),
            Inspect(9),
        ],
        ids=lambda row: type(row).__name__,
    )
    def test_a_task_that_is_not_there_yet_is_unknown(self, desk: Desk, row: Row):
        assert desk(row) == UNKNOWN

    @pytest.mark.parametrize(
        "row",
        [Spawn(9, 0, ANN, (10,)), Suspend(9, 0, ANN, (10,)), Retain(9, 5), AddPlace(9, 7, ANN), DropPlace(9, 7, ANN)],
    )
    def test_what_only_an_owner_or_holder_does_is_refused_where_there_is_no_task(self, desk: Desk, row: Row):
        assert desk(row) == REFUSED

    # -- rule 1: readiness is told ---------------------------------------------------------------------

    def test_finish_commits_and_names_the_children_to_tell(self, desk: Desk):
        desk.pair()
        answer = desk.finish(PARENT, ANN, 0, made(7, PARENT, ANN))
        assert isinstance(answer, Committed)
        assert (answer.key, answer.children) == (outbox_key(PARENT, SATISFY), (CHILD,))
        assert desk.state(PARENT) == STATE_DONE and desk.log() == [PARENT]

    def test_finish_of_a_leaf_leaves_nothing_to_tell(self, desk: Desk):
        desk.create(PARENT)
        assert same(desk.finish(PARENT), None)
        desk.create(CHILD, outputs=[7])
        assert desk.finish(CHILD, ANN, 0, made(7, CHILD, ANN)) == Committed(-1)
        assert desk.bury(ANN, BOB) == ([], [])

    def test_the_last_edge_makes_ready_and_the_caller_the_owner(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT, OTHER], inputs=[7, 8])
        assert desk(Satisfy(CHILD, PARENT, ANN, (made(7, PARENT, ANN),))) == OK
        assert desk.story(CHILD) == Story(WAITING, -1, 0, 0, (OTHER,))
        answer = desk(Satisfy(CHILD, OTHER, BOB, (made(8, OTHER, BOB), made(9, OTHER, BOB))))
        assert isinstance(answer, Ready)
        assert answer.inputs == (made(7, PARENT, ANN), made(8, OTHER, BOB)), "what it does not read is left out"
        assert (answer.attempt, answer.move) == (0, 1)
        assert desk.story(CHILD) == Story(READY, BOB, 1, 0)

    def test_satisfy_is_told_again_only_to_the_caller_who_made_it_ready(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT, OTHER])
        desk(Satisfy(CHILD, PARENT, ANN))
        first = desk(Satisfy(CHILD, OTHER, BOB))
        assert isinstance(first, Ready)
        assert desk(Satisfy(CHILD, OTHER, CAT)) == OK
        assert desk(Satisfy(CHILD, PARENT, BOB)) == OK, "another edge than the one that made it ready"
        assert desk(Satisfy(CHILD, OTHER, BOB)) == msgspec.structs.replace(first, mode=AGAIN)
        assert desk.story(CHILD).owner == BOB

    def test_satisfy_is_not_told_again_after_the_task_has_moved(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT])
        ready = desk(Satisfy(CHILD, PARENT, BOB))
        assert isinstance(ready, Ready)
        desk(Claim(CHILD, BOB, ready.move, CAT))
        assert desk(Satisfy(CHILD, PARENT, BOB)) == OK
        desk(Claim(CHILD, CAT, ready.move + 1, BOB))
        assert desk(Satisfy(CHILD, PARENT, BOB)) == OK, "Bob has it by a claim now"

    def test_many_edges(self, desk: Desk):
        parents = list(range(100, 120))
        desk.create(CHILD, parents=parents)
        for parent in parents[:-1]:
            assert desk(Satisfy(CHILD, parent, ANN)) == OK
        assert isinstance(desk(Satisfy(CHILD, parents[-1], BOB)), Ready)

    def test_an_edge_that_never_was_changes_nothing(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT])
        assert desk(Satisfy(CHILD, OTHER, BOB)) == OK
        assert desk.story(CHILD).edges == (PARENT,)

    def test_satisfy_of_an_ended_task_says_how_it_ended(self, desk: Desk):
        for task, end, code in ((CHILD, "", CANCELLED), (OTHER, "broken", FAILED)):
            desk.create(task, parents=[PARENT])
            desk(Cancel(task, ANN, end))
            assert desk(Satisfy(task, PARENT, BOB)) == code
        desk.create(FAR)
        desk.done(FAR)
        assert desk(Satisfy(FAR, PARENT, BOB)) == DONE

    def test_who_was_taken_over_cannot_become_owner_by_satisfy(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT, OTHER], inputs=[7, 8])
        desk.bury(ANN, BOB)
        desk(Satisfy(CHILD, OTHER, BOB, (made(8, OTHER, BOB),)))
        assert desk(Satisfy(CHILD, PARENT, ANN, (made(7, PARENT, ANN),))) == STRUCK
        assert desk.story(CHILD) == Story(WAITING, -1, 0, 0, (PARENT,))
        answer = desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        assert isinstance(answer, Ready)
        assert answer.inputs == (made(8, OTHER, BOB), made(7, PARENT, ANN)), "each of them once"

    # -- rule 3: commit by run -------------------------------------------------------------------------

    def test_finish_by_another_node_or_attempt_is_refused(self, desk: Desk):
        desk.create(PARENT)
        assert desk.finish(PARENT, BOB) == REFUSED
        assert desk.finish(PARENT, ANN, 1) == REFUSED
        desk(Claim(PARENT, ANN, 0, BOB))
        assert desk.finish(PARENT, ANN) == REFUSED
        assert desk.log() == []
        desk.done(PARENT, BOB)
        assert desk.finish(PARENT, ANN) == DONE

    def test_finish_of_a_waiting_task_is_refused(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT])
        assert desk.finish(CHILD, ANN) == REFUSED

    def test_the_first_of_several_runs_wins_and_the_others_are_named(self, desk: Desk):
        desk.pair()
        assert desk(Claim(PARENT, ANN, 0, BOB, REPLICATE)) == Granted(0, 0, REPLICA)
        assert desk(Claim(PARENT, ANN, 0, CAT, REPLICATE)) == Granted(0, 0, REPLICA)
        answer = desk.finish(PARENT, BOB, 0, made(7, PARENT, BOB))
        assert answer == Committed(outbox_key(PARENT, SATISFY), (CHILD,), (ANN, CAT))
        assert desk.finish(PARENT, ANN, 0, made(7, PARENT, ANN)) == DONE
        assert desk.finish(PARENT, CAT, 0, made(7, PARENT, CAT)) == DONE
        assert desk.log() == [PARENT]
        assert desk(Locate(PARENT)) == Available((made(7, PARENT, BOB),))

    def test_the_owner_may_win_too(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        assert desk.finish(PARENT, ANN) == Committed(-1, (), (BOB,))
        assert desk.finish(PARENT, BOB) == DONE

    def test_replicas_are_limited_and_not_for_the_owner(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Claim(PARENT, ANN, 0, ANN, REPLICATE)) == REFUSED
        assert desk(Claim(PARENT, BOB, 0, CAT, REPLICATE)) == REFUSED, "Bob does not own it"
        granted = [desk(Claim(PARENT, ANN, 0, node, REPLICATE)) for node in (10, 11, 12, 13)]
        assert granted == [Granted(0, 0, REPLICA), Granted(0, 0, REPLICA), REFUSED, REFUSED]

    def test_a_new_attempt_strikes_replicas(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        desk(Claim(PARENT, ANN, 0, ANN, RETRY))
        assert desk.finish(PARENT, BOB) == REFUSED

    def test_a_replica_survives_that_its_owner_moves(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        desk(Claim(PARENT, ANN, 0, CAT))
        assert desk.finish(PARENT, BOB) == Committed(-1, (), (CAT,))
