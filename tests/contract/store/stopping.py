"""Failures, and rule 9, cancel: the first final state wins, and it spreads through outboxes."""

from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import READY
from daws.model.task import TaskSpec, spawned_id
from daws.wire.store import (
    CANCELLED,
    DONE,
    FAILED,
    OK,
    REPLICATE,
    STOP,
    STRUCK,
    Cancel,
    Claim,
    Clear,
    Create,
    Finish,
    Locate,
    LoggedEnd,
    Open,
    Register,
    Remake,
    Spawn,
    Stopped,
    Suspend,
    Unready,
    outbox_key,
)
from tests.contract.store.desk import ANN, BOB, CAT, CHILD, DAN, OTHER, PARENT, Contract, Desk


class StoppingContract(Contract):
    # -- failures --------------------------------------------------------------------------------------

    def test_a_failure_names_the_children_to_fail_with_it(self, desk: Desk):
        desk.pair()
        answer = desk.finish(PARENT, error="disk full")
        assert answer == Stopped(outbox_key(PARENT, STOP), (CHILD,), (), "disk full")
        assert desk.log() == [LoggedEnd(PARENT, STATE_FAILED, "disk full", ())]
        spread = desk(Cancel(CHILD, ANN, "disk full", PARENT))
        assert spread == Stopped(outbox_key(CHILD, STOP), (), (), "disk full")
        assert desk.story(CHILD).error == "disk full"
        assert desk.state(CHILD) == STATE_FAILED

    def test_a_failure_stops_the_other_runs(self, desk: Desk):
        desk.create(PARENT)
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        assert desk.finish(PARENT, error="bad") == Stopped(outbox_key(PARENT, STOP), (), (BOB,), "bad")
        assert desk.finish(PARENT, BOB) == FAILED

    def test_the_intent_to_fail_the_children_outlives_the_node(self, desk: Desk):
        desk.pair()
        desk.finish(PARENT, error="bad")
        _, outbox = desk.bury(ANN, BOB)
        assert [(entry.verb, entry.others, entry.error) for entry in outbox] == [(STOP, (CHILD,), "bad")]

    def test_what_a_run_raised_stays_with_its_task(self, desk: Desk):
        desk(Create(TaskSpec(PARENT, kind=4, outputs=(7,)), (), (CHILD,), owner=ANN))
        desk(Finish(PARENT, 0, ANN, (), "disk full", b"OSError"))
        story = desk.story(PARENT)
        assert (story.error, story.failure, story.cause, story.kind) == ("disk full", b"OSError", -1, 4)
        assert desk(Finish(PARENT, 0, ANN, (), "disk full", b"other")) == Stopped(
            outbox_key(PARENT, STOP), (CHILD,), (), "disk full"
        ), "said again"
        assert desk.story(PARENT).failure == b"OSError"

    def test_a_task_remembers_the_task_because_of_which_it_ended(self, desk: Desk):
        desk.pair()
        desk.create(OTHER)
        desk.finish(PARENT, error="disk full")
        desk(Cancel(CHILD, ANN, "disk full", PARENT))
        story = desk.story(CHILD)
        assert (story.state, story.error, story.failure, story.cause) == (STATE_FAILED, "disk full", b"", PARENT)
        desk(Cancel(OTHER, ANN, "", CHILD))
        assert desk.story(OTHER).state == STATE_CANCELLED and desk.story(OTHER).cause == CHILD
        assert desk.story(PARENT).cause == -1

    def test_an_order_of_a_client_is_no_task(self, desk: Desk):
        desk.create(PARENT)
        desk.create(OTHER)
        desk(Cancel(PARENT, ANN, "", -7))
        desk(Cancel(OTHER, ANN, "refused", -7))
        assert desk.story(PARENT).cause == desk.story(OTHER).cause == -1

    # -- rule 9: cancel --------------------------------------------------------------------------------

    def test_cancel_names_children_and_who_may_be_running_it(self, desk: Desk):
        desk.pair()
        desk(Claim(PARENT, ANN, 0, BOB, REPLICATE))
        assert desk(Cancel(PARENT, CAT)) == Stopped(outbox_key(PARENT, STOP), (CHILD,), (ANN, BOB))
        assert desk.log() == [LoggedEnd(PARENT, STATE_CANCELLED, "", ())]
        assert desk(Cancel(PARENT, DAN)) == CANCELLED, "another caller need not spread it"

    def test_cancel_of_a_waiting_task_stops_nobody(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT], children=[OTHER])
        assert desk(Cancel(CHILD, CAT)) == Stopped(outbox_key(CHILD, STOP), (OTHER,), ())

    def test_after_a_cancel_everything_answers_cancelled(self, desk: Desk):
        desk.create(PARENT)
        desk(Cancel(PARENT, CAT))
        assert desk.finish(PARENT) == CANCELLED
        assert desk.finish(PARENT, error="bad") == CANCELLED
        assert desk(Claim(PARENT, ANN, 0, BOB)) == CANCELLED
        assert desk(Unready(PARENT, ANN, 0, (9,))) == CANCELLED
        assert desk(Remake(PARENT, CHILD, BOB)) == CANCELLED
        assert desk(Register(PARENT, CHILD)) == CANCELLED
        assert desk(Locate(PARENT)) == CANCELLED
        assert desk(Spawn(PARENT, 0, ANN, (9,))) == CANCELLED
        assert desk(Suspend(PARENT, 0, ANN, (9,))) == CANCELLED
        assert desk.log() == [LoggedEnd(PARENT, STATE_CANCELLED, "", ())]

    def test_the_first_terminal_state_wins(self, desk: Desk):
        desk.create(PARENT)
        desk.done(PARENT)
        assert desk(Cancel(PARENT, CAT)) == DONE
        assert desk(Cancel(PARENT, CAT, "late")) == DONE
        desk.create(CHILD)
        desk.finish(CHILD, error="bad")
        assert desk(Cancel(CHILD, CAT)) == FAILED
        desk.create(OTHER)
        desk(Cancel(OTHER, CAT))
        assert desk(Cancel(OTHER, CAT, "late")) == Stopped(outbox_key(OTHER, STOP), (), (ANN,)), "as it was"
        assert [desk.state(task) for task in (PARENT, CHILD, OTHER)] == [STATE_DONE, STATE_FAILED, STATE_CANCELLED]
        assert len(desk.log()) == 3

    def test_a_cancel_spreads_through_whoever_takes_over(self, desk: Desk):
        desk.pair()
        desk(Cancel(PARENT, CAT))
        _, outbox = desk.bury(CAT, BOB)
        (entry,) = outbox
        assert (entry.verb, entry.task, entry.others, entry.nodes) == (STOP, PARENT, (CHILD,), (ANN,))
        assert desk(Clear(BOB, (entry.key,))) == OK
        assert desk.bury(BOB, DAN)[1] == []

    def test_who_was_taken_over_cannot_cancel(self, desk: Desk):
        """Its intent to spread the cancel would stand in an outbox that nobody looks at any more."""
        desk.pair(owner=BOB)
        desk.bury(ANN, BOB)
        assert desk(Cancel(PARENT, ANN)) == STRUCK
        assert desk(Cancel(PARENT, ANN, "bad")) == STRUCK
        assert desk.state(PARENT) == READY

    def test_cancelling_a_spawned_task_that_does_not_exist_keeps_it_from_coming_to_life(self, desk: Desk):
        name = spawned_id(PARENT, 0, 0)
        assert desk(Cancel(name, CAT)) == CANCELLED
        assert desk(Create(TaskSpec(name), owner=ANN, guarded=True)) == CANCELLED
        assert desk(Open(name, ANN)) == CANCELLED
        assert desk.bury(ANN, BOB) == ([], [])
        assert desk.log() == []
