"""Rule 6, references: who holds what, where it is, and when a record is forgotten."""

from daws.model.states import READY
from daws.model.task import Ready, TaskSpec
from daws.wire.store import (
    CLIENT_HOLDER,
    DONE,
    OK,
    REFUSED,
    REMAKE_FOR,
    RETRY,
    SATISFY,
    UNDERWAY,
    AddPlace,
    Available,
    Cancel,
    Claim,
    Clear,
    Create,
    DropPlace,
    Finish,
    Inspect,
    Locate,
    Register,
    Release,
    Retain,
    Satisfy,
    Story,
    Unheld,
    Unready,
    outbox_key,
)
from tests.contract.store.desk import ANN, BOB, CAT, CHILD, OTHER, PARENT, Contract, Desk, made


class ReferencesContract(Contract):
    def test_places_come_and_go(self, desk: Desk):
        desk.create(PARENT, outputs=[7], children=[CHILD])
        assert desk(Locate(PARENT)) == UNDERWAY
        assert desk(AddPlace(PARENT, 7, BOB)) == REFUSED
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        assert desk(AddPlace(PARENT, 7, BOB)) == OK
        assert desk(Locate(PARENT)) == Available((made(7, PARENT, ANN, BOB),))
        assert desk(DropPlace(PARENT, 7, ANN)) == OK
        assert desk(Locate(PARENT)) == Available((made(7, PARENT, BOB),))
        desk.bury(CAT, BOB)
        assert desk(AddPlace(PARENT, 7, CAT)) == REFUSED

    def test_a_record_is_forgotten_once_freed(self, desk: Desk):
        desk.create(PARENT, outputs=[7])
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        assert desk(Release(PARENT)) == OK
        for row in (Inspect(PARENT), Finish(PARENT, 0, ANN), Satisfy(PARENT, 9, BOB), Cancel(PARENT, BOB)):
            assert desk(row) == DONE
        assert desk(Claim(PARENT, ANN, 0, BOB)) == DONE
        assert desk(Unready(PARENT, ANN, 0, (9,))) == DONE
        assert desk(Create(TaskSpec(PARENT, outputs=(7,)), owner=ANN)) == DONE
        for other in (Locate(PARENT), Register(PARENT, CHILD), Retain(PARENT, 5), AddPlace(PARENT, 7, BOB)):
            assert desk(other) == REFUSED
        assert desk.log() == [PARENT]

    def test_a_record_waits_for_its_children_to_be_forgotten(self, desk: Desk):
        desk.create(PARENT, children=[CHILD], outputs=[7])
        desk.create(CHILD, parents=[PARENT], children=[OTHER], inputs=[7], outputs=[8])
        desk.create(OTHER, parents=[CHILD], inputs=[8])
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        desk.done(CHILD, BOB, 0, made(8, CHILD, BOB))
        assert desk(Release(PARENT)) == OK
        assert isinstance(desk(Inspect(PARENT)), Story)
        desk(Satisfy(OTHER, CHILD, BOB, (made(8, CHILD, BOB),)))
        desk(Clear(BOB, (outbox_key(CHILD, SATISFY),)))
        desk.done(OTHER, BOB)
        assert desk(Release(OTHER)) == OK
        assert isinstance(desk(Inspect(PARENT)), Story)
        assert desk(Release(CHILD)) == OK
        assert [desk(Inspect(task)) for task in (PARENT, CHILD, OTHER)] == [DONE] * 3

    def test_a_sink_that_somebody_holds_is_kept_and_its_parent_too(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        desk(Retain(CHILD, 5))
        desk.done(CHILD, BOB)
        assert desk(Release(PARENT)) == OK
        assert all(isinstance(desk(Inspect(task)), Story) for task in (PARENT, CHILD))

    def test_a_freed_record_is_forgotten_when_its_last_intent_is_cleared(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, ANN),)))
        desk.done(CHILD, BOB)
        desk(Release(CHILD))
        assert desk(Release(PARENT)) == OK
        assert isinstance(desk(Inspect(PARENT)), Story)
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        assert desk(Inspect(PARENT)) == DONE

    def test_a_record_with_any_intent_left_is_kept(self, desk: Desk):
        """CHILD was remade for and has ended, but the intent that remade its parent is not yet cleared."""
        need = desk.lose()
        desk.remake(PARENT, CHILD, BOB, need)
        desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert isinstance(desk(Satisfy(CHILD, PARENT, BOB, (made(7, PARENT, BOB),), 0, need)), Ready)
        desk.done(CHILD, BOB)
        desk(Release(CHILD))
        _, outbox = desk.bury(BOB, CAT)
        assert (REMAKE_FOR, CHILD) in [(entry.verb, entry.task) for entry in outbox]

    def test_holders_keep_a_record(self, desk: Desk):
        desk.create(PARENT, outputs=[7], held=True)
        desk(Retain(PARENT, 5))
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        assert desk(Release(PARENT)) == REFUSED
        assert desk(Release(PARENT, CLIENT_HOLDER)) == OK, "somebody else holds it"
        assert desk(Release(PARENT)) == REFUSED
        assert desk(Release(PARENT, 5)) == OK
        assert desk(Locate(PARENT)) == Available((made(7, PARENT, ANN),))
        assert desk(Release(PARENT)) == OK
        assert desk(Inspect(PARENT)) == DONE

    def test_a_late_release_does_not_free_what_was_remade_since(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        assert desk(Release(PARENT)) == OK
        desk.remake(PARENT, CHILD, BOB)
        desk.done(PARENT, BOB, 1, made(7, PARENT, BOB))
        assert desk(Release(PARENT)) == REFUSED, "doubled on its way"
        assert desk(Locate(PARENT)) == Available((made(7, PARENT, BOB),))
        assert desk(Release(PARENT, -1, 1)) == OK
        assert desk(Locate(PARENT)) == Available((made(7, PARENT),))

    def test_a_held_sink_is_kept_until_it_is_released(self, desk: Desk):
        """Whether its run was the only one or not."""
        for task in (PARENT, OTHER):
            desk.create(task, outputs=[7], held=True)
        desk(Claim(OTHER, ANN, 0, ANN, RETRY))
        for task, attempt in ((PARENT, 0), (OTHER, 1)):
            desk.done(task, ANN, attempt, made(7, task, ANN))
            assert desk(Release(task, -1, attempt)) == REFUSED
            assert desk(Release(task, CLIENT_HOLDER)) == Unheld((ANN,), (), attempt)
            assert desk(Locate(task)) == Available((made(7, task, ANN),))
            assert desk(Release(task, -1, attempt)) == OK
            assert desk(Inspect(task)) == DONE

    def test_who_lets_go_hears_where_the_objects_are_and_who_has_yet_to_read_them(self, desk: Desk):
        desk.create(PARENT, children=[CHILD, OTHER], outputs=[7], held=True)
        for task in (CHILD, OTHER):
            desk.create(task, parents=[PARENT], inputs=[7])
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        for task in (CHILD, OTHER):
            desk(Satisfy(task, PARENT, BOB, (made(7, PARENT, ANN),)))
        desk.done(OTHER, desk.story(OTHER).owner)
        for _ in range(2):  # also when it is said again
            assert desk(Release(PARENT, CLIENT_HOLDER)) == Unheld((ANN,), (CHILD,))

    def test_a_client_holds_what_it_retains(self, desk: Desk):
        desk.create(PARENT, outputs=[7])
        assert desk(Retain(PARENT, CLIENT_HOLDER)) == OK
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        assert desk(Release(PARENT)) == REFUSED

    def test_release_of_a_task_that_is_not_done_frees_nothing(self, desk: Desk):
        desk.create(PARENT, outputs=[7])
        assert desk(Release(PARENT)) == OK
        assert desk.state(PARENT) == READY
