"""Rule 5, lost objects: who cannot get an input waits again, and what is gone is made again, once."""

from daws.model.states import DONE as STATE_DONE
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import REMAKING, WAITING
from daws.model.task import REMAKE, SUSPECT, Ready, spawned_id
from daws.wire.store import (
    CANCELLED,
    DONE,
    OK,
    REFUSED,
    REMAKE_FOR,
    SATISFY,
    STOP,
    STRUCK,
    UNDERWAY,
    AddPlace,
    Available,
    Cancel,
    Claim,
    Clear,
    Finish,
    Granted,
    Locate,
    Noted,
    Register,
    Release,
    Remake,
    Satisfy,
    Spawn,
    Stopped,
    Unready,
    outbox_key,
)
from tests.contract.store.desk import ANN, BOB, CAT, CHILD, DAN, FAR, OTHER, PARENT, Contract, Desk, made


class RemakingContract(Contract):
    def test_unready_goes_back_to_waiting_for_what_is_gone(self, desk: Desk):
        desk.create(CHILD, parents=[PARENT, OTHER], inputs=[7, 8])
        desk(Satisfy(CHILD, PARENT, ANN, (made(7, PARENT, ANN),)))
        ready = desk(Satisfy(CHILD, OTHER, BOB, (made(8, OTHER, BOB),)))
        assert isinstance(ready, Ready)
        assert desk(Unready(CHILD, CAT, ready.move, (PARENT,))) == REFUSED
        assert desk(Unready(CHILD, BOB, ready.move + 1, (PARENT,))) == REFUSED
        assert desk(Unready(CHILD, BOB, ready.move, (PARENT,))) == Noted(outbox_key(CHILD, REMAKE_FOR), 0)
        assert desk.story(CHILD).edges == (PARENT,) and desk.state(CHILD) == WAITING
        assert desk.finish(CHILD, BOB) == REFUSED
        need = desk.mark
        assert desk(Satisfy(CHILD, PARENT, CAT, (made(7, PARENT, ANN),))) == OK, (
            "a row that was said before it was lost"
        )
        assert desk.story(CHILD).edges == (PARENT,)
        again = desk(Satisfy(CHILD, PARENT, CAT, (made(7, PARENT, CAT),), 0, need))
        assert isinstance(again, Ready)
        assert again.inputs == (made(8, OTHER, BOB), made(7, PARENT, CAT))

    def test_a_late_word_does_not_have_made_again_what_was_made_since(self, desk: Desk):
        """Cat had lost it herself when she asked. She has it since, which the copy of her word knows nothing of."""
        need = desk.lose()
        asks = Remake(PARENT, CHILD, CAT, (ANN, CAT), 0, need)
        ready = desk(asks)
        assert isinstance(ready, Ready)
        desk(Claim(PARENT, -1, ready.move, CAT))
        desk.done(PARENT, CAT, 1, made(7, PARENT, CAT))
        assert desk(asks) == Available((made(7, PARENT, CAT),))
        assert desk.state(PARENT) == STATE_DONE
        lost_again = desk(Remake(PARENT, CHILD, BOB, (CAT,), 0, need + 1))
        assert isinstance(lost_again, Ready) and lost_again.attempt == 2

    def test_the_intent_to_remake_outlives_the_node(self, desk: Desk):
        desk.lose()
        _, outbox = desk.bury(BOB, CAT)
        assert [(one.verb, one.task, one.others) for one in outbox] == [(REMAKE_FOR, CHILD, (PARENT,))]

    def test_the_intent_to_remake_ends_with_a_task_that_was_cancelled_meanwhile(self, desk: Desk):
        desk.lose()
        move = desk.story(CHILD).move
        assert isinstance(desk(Cancel(CHILD, CAT)), Stopped)
        assert desk(Unready(CHILD, BOB, move - 1, (PARENT,))) == CANCELLED, "Bob has not heard the first answer"
        _, outbox = desk.bury(BOB, CAT)
        assert not [one for one in outbox if one.verb == REMAKE_FOR]

    def test_what_a_remake_spawned_is_stopped_when_it_is_committed(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        name = spawned_id(PARENT, 1, 0)
        assert desk(Spawn(PARENT, 1, BOB, (name,))) == OK
        answer = desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        key = outbox_key(PARENT, STOP)
        assert answer is not None and answer.stop is not None
        assert (answer.stop.key, answer.stop.children, answer.stop.nodes) == (key, (name,), ())
        _, outbox = desk.bury(BOB, CAT)
        assert [(one.key, one.others) for one in outbox if one.verb == STOP] == [(key, (name,))], "it outlives Bob"
        desk(Clear(CAT, (key,)))
        desk.remake(PARENT, OTHER, CAT)
        _, outbox = desk.bury(CAT, DAN)
        assert not [one for one in outbox if one.verb == STOP], "it was stopped once"

    def test_what_a_remake_spawned_is_stopped_also_if_nobody_waits_for_it_any_more(self, desk: Desk):
        desk.create(PARENT, outputs=[7])
        desk.done(PARENT, ANN, 0, made(7, PARENT))
        desk.remake(PARENT, CHILD, BOB)
        desk.once(Cancel(CHILD, BOB))
        name = spawned_id(PARENT, 1, 0)
        desk(Spawn(PARENT, 1, BOB, (name,)))
        answer = desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert answer is not None and answer.stop is not None and answer.stop.children == (name,)

    def test_a_remake_runs_once_however_many_ask(self, desk: Desk):
        need = desk.lose()
        ready = desk(Remake(PARENT, CHILD, BOB, (), 0, need))
        assert isinstance(ready, Ready)
        assert (ready.mode & REMAKE, ready.attempt) == (REMAKE, 1)
        assert desk(Remake(PARENT, OTHER, CAT)) == ready, "nobody has claimed it yet"
        assert desk(Claim(PARENT, -1, ready.move, CAT)) == Granted(ready.move + 1, 1, REMAKE)
        assert desk(Claim(PARENT, -1, ready.move, BOB)) == REFUSED
        assert desk(Remake(PARENT, CHILD, BOB, (), 0, need)) == UNDERWAY
        assert desk.story(PARENT).state == REMAKING

    def test_the_end_of_a_remake_tells_only_those_who_asked(self, desk: Desk):
        need = desk.lose()
        assert desk(Register(PARENT, FAR)) == Available((made(7, PARENT, ANN),))
        desk.remake(PARENT, CHILD, BOB, need)
        desk(Clear(CAT, (outbox_key(PARENT, SATISFY),)))
        answer = desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert answer is not None and answer.children == (CHILD,) and answer.needs == (need,)
        assert {*answer.readers} == {CHILD, FAR}, "but all its children may read what it made"
        assert desk.log() == [PARENT], "its future has had its value for long"
        assert desk(Locate(PARENT)) == Available((made(7, PARENT, BOB),))

    def test_a_remake_does_not_cut_short_what_was_still_to_be_told(self, desk: Desk):
        """Cat has not told all children of the first commit when the remake for one of them ends."""
        desk.create(PARENT, children=[CHILD, OTHER], outputs=[7])
        desk.create(CHILD, parents=[PARENT], inputs=[7])
        desk.create(OTHER, parents=[PARENT], inputs=[7])
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk.bury(ANN, CAT)
        ready = desk(Satisfy(CHILD, PARENT, CAT, (made(7, PARENT, ANN),)))
        assert isinstance(ready, Ready)
        desk(Unready(CHILD, CAT, ready.move, (PARENT,)))
        need = desk.mark
        desk.remake(PARENT, CHILD, CAT, need)
        desk.done(PARENT, CAT, 1, made(7, PARENT, CAT))
        _, outbox = desk.bury(CAT, BOB)
        (told,) = [entry for entry in outbox if entry.verb == SATISFY]
        pairs = {*zip(told.others, told.needs, strict=True)}
        assert {(CHILD, need), (OTHER, 0)} <= pairs

    def test_what_still_has_a_place_is_not_remade(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(AddPlace(PARENT, 7, BOB))
        assert desk(Remake(PARENT, CHILD, CAT, (ANN,))) == Available((made(7, PARENT, BOB),))
        assert desk.state(PARENT) == STATE_DONE
        assert isinstance(desk(Remake(PARENT, CHILD, CAT, (BOB,))), Ready)

    def test_freed_objects_can_be_remade(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        assert desk(Release(PARENT)) == OK
        desk.remake(PARENT, CHILD, BOB)
        answer = desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert answer is not None and answer.children == (CHILD,)

    def test_what_was_forgotten_cannot_be_remade(self, desk: Desk):
        desk.create(PARENT, outputs=[7])
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Release(PARENT))
        assert desk(Remake(PARENT, CHILD, BOB)) == REFUSED

    def test_who_was_taken_over_remakes_nothing(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk.bury(ANN, BOB)
        ready = desk(Remake(PARENT, CHILD, ANN))
        assert isinstance(ready, Ready), "anybody may say that it is lost"
        assert desk(Claim(PARENT, -1, ready.move, ANN)) == STRUCK
        assert desk(Claim(PARENT, -1, ready.move, BOB)) == Granted(ready.move + 1, 1, REMAKE)

    def test_a_failed_remake_fails_its_waiters_and_keeps_its_own_value(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        assert desk(Finish(PARENT, 1, BOB, (), "bad")) == Stopped(outbox_key(PARENT, STOP), (CHILD,), (), "bad")
        assert desk.state(PARENT) == STATE_DONE and desk.log() == [PARENT]
        assert isinstance(desk(Cancel(CHILD, BOB, "bad", PARENT)), Stopped)
        assert desk.state(CHILD) == STATE_FAILED

    def test_a_failed_remake_outlives_the_node(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        desk.finish(PARENT, BOB, 1, error="bad")
        _, outbox = desk.bury(BOB, CAT)
        stops = [entry for entry in outbox if entry.verb == STOP]
        assert [(one.task, one.others, one.error) for one in stops] == [(PARENT, (CHILD,), "bad")]

    def test_a_cancel_does_not_reach_a_remake(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        assert desk(Cancel(PARENT, CAT)) == DONE
        assert desk.state(PARENT) == REMAKING

    def test_a_remake_that_cannot_get_its_own_inputs_fails_those_who_wait_for_it(self, desk: Desk):
        """FAR made an input of PARENT, whose object CHILD reads. Both objects are lost, and FAR cannot run again."""
        desk.create(FAR, children=[PARENT], outputs=[6])
        desk.create(PARENT, parents=[FAR], children=[CHILD], inputs=[6], outputs=[7])
        desk.create(CHILD, parents=[PARENT], inputs=[7])
        desk.done(FAR, ANN, 0, made(6, FAR, ANN))
        desk(Satisfy(PARENT, FAR, ANN, (made(6, FAR, ANN),)))
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        ready = desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        assert isinstance(ready, Ready)
        desk.bury(ANN, CAT)
        desk(Unready(CHILD, BOB, ready.move, (PARENT,)))
        remake = desk.remake(PARENT, CHILD, BOB, desk.mark)
        assert isinstance(desk(Unready(PARENT, BOB, remake.move, (FAR,))), Noted)
        assert desk.state(PARENT) == WAITING, "whoever audits must not take it for one that reads nothing any more"
        desk.remake(FAR, PARENT, BOB, desk.mark)
        assert desk.finish(FAR, BOB, 1, error="bad") == Stopped(outbox_key(FAR, STOP), (PARENT,), (), "bad")
        answer = desk(Cancel(PARENT, BOB, "bad", FAR))
        assert answer == Stopped(outbox_key(PARENT, STOP), (CHILD,), (), "bad")
        assert isinstance(desk(Cancel(CHILD, BOB, "bad", PARENT)), Stopped)
        assert [desk.state(task) for task in (FAR, PARENT, CHILD)] == [STATE_DONE, STATE_DONE, STATE_FAILED]
        again = desk(Remake(PARENT, OTHER, CAT))
        assert isinstance(again, Ready)
        assert again.inputs == (made(6, FAR),), "it does not run without what it reads"

    def test_a_remake_that_is_taken_over_goes_on_as_one(self, desk: Desk):
        desk.remake(PARENT, CHILD, BOB, desk.lose())
        ready, _ = desk.bury(BOB, CAT)
        assert [(one.spec.id, one.mode, one.attempt) for one in ready] == [(PARENT, REMAKE | SUSPECT, 2)]
        answer = desk.done(PARENT, CAT, 2, made(7, PARENT, CAT))
        assert answer is not None and CHILD in answer.children
