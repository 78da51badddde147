"""Rule 7, growing graphs, and rule 8: tasks that wait for others are suspended."""

from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import READY, SUSPENDED, WAITING
from daws.model.task import FIRST_SPAWNED_ID, Ready, spawned_id
from daws.wire.store import (
    CANCELLED,
    FAILED,
    OK,
    REFUSED,
    REMAKE_FOR,
    RETRY,
    SATISFY,
    STOP,
    Available,
    Cancel,
    Claim,
    Clear,
    Committed,
    Granted,
    LoggedEnd,
    Open,
    Register,
    Remake,
    Resume,
    Satisfy,
    Spawn,
    Stopped,
    Story,
    Suspend,
    Unready,
    outbox_key,
)
from tests.contract.store.desk import ANN, BOB, CAT, CHILD, DAN, FAR, OTHER, PARENT, Contract, Desk, made


class GrowingContract(Contract):
    # -- rule 7: growing graphs ------------------------------------------------------------------------

    def test_a_guarded_task_waits_until_it_is_opened(self, desk: Desk):
        name = spawned_id(PARENT, 0, 0)
        desk.create(PARENT)
        assert desk(Spawn(PARENT, 0, ANN, (name,))) == OK
        desk.create(name, parents=[OTHER], guarded=True)
        desk.create(OTHER, owner=BOB)
        assert desk(Register(OTHER, name)) == OK
        assert desk(Satisfy(name, OTHER, BOB)) == OK
        assert desk.state(name) == WAITING
        ready = desk(Open(name, ANN))
        assert isinstance(ready, Ready) and desk.story(name).owner == ANN
        assert desk(Open(name, BOB)) == OK

    def test_register_with_a_task_that_is_done_answers_its_objects(self, desk: Desk):
        desk.create(PARENT, outputs=[7])
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        assert desk(Register(PARENT, CHILD)) == Available((made(7, PARENT, ANN),))

    def test_register_with_a_task_that_failed_says_so(self, desk: Desk):
        desk.create(PARENT)
        desk.finish(PARENT, error="bad")
        assert desk(Register(PARENT, CHILD)) == FAILED

    def test_a_registered_child_is_told(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Register(PARENT, CHILD)) == OK
        answer = desk.finish(PARENT)
        assert isinstance(answer, Committed)
        assert (answer.key, answer.children) == (outbox_key(PARENT, SATISFY), (CHILD,))

    def test_a_child_that_registers_during_a_remake_is_told_at_its_end(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        assert desk(Register(PARENT, FAR)) == OK
        answer = desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert answer is not None and {CHILD, FAR} <= {*answer.children}

    def test_a_child_that_registers_with_a_remake_that_nobody_has_claimed_asks_for_it_itself(self, desk: Desk):
        """Bob asks for a remake and dies before he claims it; CHILD was cancelled, and with it went the wish."""
        need = desk.lose()
        move = desk.story(CHILD).move
        assert isinstance(desk(Remake(PARENT, CHILD, BOB, (), 0, need)), Ready)
        desk(Cancel(CHILD, CAT))
        desk(Unready(CHILD, BOB, move - 1, (PARENT,)))
        assert desk(Register(PARENT, FAR)) == Available((made(7, PARENT),)), "an object without a place is a lost one"
        ready, outbox = desk.bury(BOB, CAT)
        assert not ready and not [entry for entry in outbox if entry.verb == REMAKE_FOR]
        desk.remake(PARENT, FAR, CAT)
        answer = desk.done(PARENT, CAT, 1, made(7, PARENT, CAT))
        assert answer is not None and FAR in answer.children

    def test_a_child_that_registers_after_a_failed_remake_is_told_what_is_missing(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        desk.finish(PARENT, BOB, 1, error="bad")
        assert desk(Register(PARENT, FAR)) == Available((made(7, PARENT),))
        assert isinstance(desk(Remake(PARENT, FAR, CAT)), Ready), "it may be tried again"

    def test_spawned_tasks_are_named_in_the_log(self, desk: Desk):
        desk.create(PARENT)
        first, second = spawned_id(PARENT, 0, 0), spawned_id(PARENT, 0, 1)
        desk(Spawn(PARENT, 0, ANN, (first,)))
        desk(Spawn(PARENT, 0, ANN, (second,)))
        desk.done(PARENT)
        assert desk.log() == [LoggedEnd(PARENT, STATE_DONE, "", (first, second))]

    def test_only_the_owner_of_this_attempt_spawns(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Spawn(PARENT, 1, ANN, (FIRST_SPAWNED_ID,))) == REFUSED
        assert desk(Spawn(PARENT, 0, BOB, (FIRST_SPAWNED_ID,))) == REFUSED
        desk(Claim(PARENT, ANN, 0, ANN, RETRY))
        assert desk(Spawn(PARENT, 0, ANN, (FIRST_SPAWNED_ID,))) == REFUSED

    def test_children_of_an_attempt_that_did_not_commit_are_to_be_cancelled(self, desk: Desk):
        desk.create(PARENT)
        name = spawned_id(PARENT, 0, 0)
        desk(Spawn(PARENT, 0, ANN, (name,)))
        _, outbox = desk.bury(ANN, BOB)
        assert [(entry.verb, entry.task, entry.others, entry.error) for entry in outbox] == [
            (STOP, PARENT, (name,), "")
        ]
        desk.done(PARENT, BOB, 1)
        assert desk.log() == [PARENT]

    def test_children_of_an_attempt_that_is_retried_are_to_be_cancelled(self, desk: Desk):
        desk.create(PARENT)
        name = spawned_id(PARENT, 0, 0)
        desk(Spawn(PARENT, 0, ANN, (name,)))
        granted = desk(Claim(PARENT, ANN, 0, ANN, RETRY))
        assert granted == Granted(1, 1, 0, Stopped(outbox_key(PARENT, STOP), (name,)))
        assert [(entry.verb, entry.others) for entry in desk.bury(ANN, BOB)[1]] == [(STOP, (name,))]

    def test_children_of_a_committed_attempt_live_on_when_it_is_remade(self, desk: Desk):
        desk.create(PARENT, children=[CHILD], outputs=[7])
        desk.create(CHILD, parents=[PARENT], inputs=[7])
        name = spawned_id(PARENT, 0, 0)
        desk(Spawn(PARENT, 0, ANN, (name,)))
        desk.create(name, owner=BOB)
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        desk.bury(ANN, CAT)
        desk(Unready(CHILD, BOB, desk.story(CHILD).move, (PARENT,)))
        desk.remake(PARENT, CHILD, CAT, desk.mark)
        _, outbox = desk.bury(CAT, BOB)
        assert [entry for entry in outbox if entry.verb == STOP] == []

    def test_children_of_a_remake_that_fails_are_to_be_stopped(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        name = spawned_id(PARENT, 1, 0)
        desk(Spawn(PARENT, 1, BOB, (name,)))
        assert desk.finish(PARENT, BOB, 1, error="bad") == Stopped(outbox_key(PARENT, STOP), (CHILD, name), (), "bad")
        (entry,) = [one for one in desk.bury(BOB, CAT)[1] if one.verb == STOP]
        assert entry.others == (CHILD, name)
        desk(Clear(CAT, (entry.key,)))
        desk.remake(PARENT, FAR, CAT)
        _, outbox = desk.bury(CAT, DAN)
        assert not [one for one in outbox if one.verb == STOP], "they were stopped once"

    def test_children_of_failed_and_cancelled_tasks_are_named(self, desk: Desk):
        name = spawned_id(PARENT, 0, 0)
        desk.pair()
        desk(Spawn(PARENT, 0, ANN, (name,)))
        assert desk(Cancel(PARENT, BOB)) == Stopped(outbox_key(PARENT, STOP), (CHILD, name), (ANN,))

    # -- rule 8: suspending ----------------------------------------------------------------------------

    def suspended(self, desk: Desk) -> tuple[int, int]:
        """PARENT runs on Ann and waits for two tasks that it has spawned."""
        desk.create(PARENT)
        names = spawned_id(PARENT, 0, 0), spawned_id(PARENT, 0, 1)
        desk(Spawn(PARENT, 0, ANN, names))
        for name in names:
            desk.create(name, owner=BOB)
        assert desk(Suspend(PARENT, 0, ANN, names)) == OK
        for name in names:
            assert desk(Register(name, PARENT, True)) == OK
        return names

    def test_a_suspended_task_is_resumed_by_its_last_edge(self, desk: Desk):
        first, second = self.suspended(desk)
        assert desk.state(PARENT) == SUSPENDED
        assert desk(Satisfy(PARENT, first, BOB)) == OK
        assert desk(Satisfy(PARENT, second, BOB)) == OK
        assert desk(Open(PARENT, ANN)) == Resume(ANN)
        assert desk(Satisfy(PARENT, second, CAT)) == Resume(ANN), "whoever took over the intent hears it too"
        assert desk.story(PARENT) == Story(READY, ANN, 0, 0)
        desk.done(PARENT)

    def test_a_suspended_task_is_resumed_by_any_end_of_what_it_waits_for(self, desk: Desk):
        first, second = self.suspended(desk)
        desk(Open(PARENT, ANN))
        desk(Satisfy(PARENT, first, BOB))
        assert desk.finish(first, BOB) == Committed(outbox_key(first, SATISFY), (PARENT,))
        failed = desk.finish(second, BOB, error="bad")
        assert failed == Stopped(outbox_key(second, STOP), (), (), "bad", (PARENT,)), "who watches is told, not failed"
        assert desk(Satisfy(PARENT, second, BOB)) == Resume(ANN)
        assert desk.state(PARENT) == READY

    def test_who_watches_is_told_by_whoever_takes_over(self, desk: Desk):
        first, second = self.suspended(desk)
        desk.done(first, BOB)
        desk(Cancel(second, BOB))
        _, outbox = desk.bury(BOB, CAT)
        told = {(entry.task, entry.verb, entry.others, entry.watchers) for entry in outbox}
        assert told == {(first, SATISFY, (PARENT,), ()), (second, STOP, (), (PARENT,))}

    def test_watching_what_has_ended_is_answered_at_once(self, desk: Desk):
        desk.create(PARENT)
        desk.create(OTHER)
        desk.done(OTHER)
        assert desk(Register(OTHER, PARENT, True)) == Available(())
        desk.create(FAR)
        desk(Cancel(FAR, BOB))
        assert desk(Register(FAR, PARENT, True)) == CANCELLED

    def test_watching_a_task_that_is_remade_is_answered_at_once(self, desk: Desk):
        """It has ended; that an object of it is made again is no second end."""
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        desk.create(FAR, owner=CAT)
        desk(Suspend(FAR, 0, CAT, (PARENT,)))
        assert isinstance(desk(Register(PARENT, FAR, True)), Available)
        desk(Satisfy(FAR, PARENT, CAT))
        assert desk(Open(FAR, CAT)) == Resume(CAT)
        answer = desk.finish(PARENT, BOB, 1, error="bad")
        assert isinstance(answer, Stopped) and FAR not in answer.children + answer.watchers

    def test_a_suspended_task_can_be_cancelled(self, desk: Desk):
        names = self.suspended(desk)
        assert desk(Cancel(PARENT, BOB)) == Stopped(outbox_key(PARENT, STOP), names, (ANN,))
        assert desk(Satisfy(PARENT, names[0], BOB)) == CANCELLED

    def test_a_suspended_task_that_is_taken_over_runs_again_from_the_start(self, desk: Desk):
        first, _ = self.suspended(desk)
        ready, outbox = desk.bury(ANN, BOB)
        assert [(one.spec.id, one.attempt) for one in ready] == [(PARENT, 1)]
        assert [entry.verb for entry in outbox] == [STOP]
        assert desk.state(PARENT) == READY
        assert desk(Satisfy(PARENT, first, CAT)) == OK, "the new attempt waits for nobody"

    def test_a_suspended_run_can_still_end(self, desk: Desk):
        """Its worker died while it waited, or it gave up waiting."""
        self.suspended(desk)
        answer = desk.finish(PARENT, error="killed")
        assert isinstance(answer, Stopped)
        assert desk.state(PARENT) == STATE_FAILED

    def test_a_suspended_run_can_be_retried(self, desk: Desk):
        self.suspended(desk)
        names = spawned_id(PARENT, 0, 0), spawned_id(PARENT, 0, 1)
        stop = Stopped(outbox_key(PARENT, STOP), names)
        assert desk(Claim(PARENT, ANN, 0, ANN, RETRY)) == Granted(1, 1, 0, stop)
        assert desk.state(PARENT) == READY

    def test_a_suspended_task_cannot_be_moved(self, desk: Desk):
        self.suspended(desk)
        assert desk(Claim(PARENT, ANN, 0, BOB)) == REFUSED

    def test_a_spawn_that_was_repeated_after_its_suspend_is_no_late_one(self, desk: Desk):
        desk.create(PARENT)
        name = spawned_id(PARENT, 0, 0)
        desk(Suspend(PARENT, 0, ANN, (name,)))
        assert desk(Spawn(PARENT, 0, ANN, (name,))) == OK

    def test_a_late_suspend_does_not_suspend_again(self, desk: Desk):
        first, second = self.suspended(desk)
        for name in (first, second):
            desk(Satisfy(PARENT, name, BOB))
        desk(Open(PARENT, ANN))
        assert desk(Suspend(PARENT, 0, ANN, (first, second))) == OK
        assert desk.state(PARENT) == READY, "all that it would wait for has ended"
        third = spawned_id(PARENT, 0, 2)
        assert desk(Suspend(PARENT, 0, ANN, (first, third))) == OK
        assert desk.state(PARENT) == SUSPENDED, "here something is new"
        assert third in desk.story(PARENT).edges

    def test_only_the_owner_of_this_attempt_suspends(self, desk: Desk):
        desk.create(PARENT)
        assert desk(Suspend(PARENT, 0, BOB, (CHILD,))) == REFUSED
        assert desk(Suspend(PARENT, 1, ANN, (CHILD,))) == REFUSED
        desk.create(OTHER, parents=[PARENT])
        assert desk(Suspend(OTHER, 0, -1, (CHILD,))) == REFUSED

    def test_waiting_for_many(self, desk: Desk):
        desk.create(PARENT)
        on = tuple(range(100, 120))
        desk(Suspend(PARENT, 0, ANN, on))
        for task in on:
            assert desk(Satisfy(PARENT, task, BOB)) == OK
        assert desk(Open(PARENT, ANN)) == Resume(ANN)

    def test_a_task_that_lost_an_input_once_can_still_wait_for_others(self, desk: Desk):
        need = desk.lose()
        desk.remake(PARENT, CHILD, BOB, need)
        desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert isinstance(desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, BOB),), 0, need)), Ready)
        desk(Suspend(CHILD, 0, BOB, (FAR,)))
        assert desk(Satisfy(CHILD, FAR, CAT)) == OK
        assert desk(Open(CHILD, BOB)) == Resume(BOB)
