"""Intents outlive the node that had them, until it says that they were carried out (rule 1)."""

from daws.wire.store import OK, SATISFY, Clear, Committed, DropPlace, Finish, outbox_key
from tests.contract.store.desk import ANN, BOB, CAT, CHILD, DAN, PARENT, Contract, Desk, made


class OutboxContract(Contract):
    def test_an_intent_stays_until_its_holder_clears_it(self, desk: Desk):
        desk.pair()
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        key = outbox_key(PARENT, SATISFY)
        assert desk(Clear(BOB, (key,))) == OK
        _, outbox = desk.bury(ANN, BOB)
        assert [(one.key, one.others, one.inputs) for one in outbox] == [(key, (CHILD,), (made(7, PARENT, ANN),))]
        assert desk(Clear(ANN, (key,))) == OK
        assert desk.bury(BOB, CAT)[1] == outbox, "Ann is not its holder any more"
        assert desk(Clear(CAT, (key,))) == OK
        assert desk.bury(CAT, 4)[1] == []

    def test_a_late_clear_spares_a_newer_intent_under_the_same_key(self, desk: Desk):
        desk.pair(owner=BOB)
        first = desk.once(Finish(PARENT, 0, BOB, (made(7, PARENT, BOB),)))
        assert isinstance(first, Committed)
        key = outbox_key(PARENT, SATISFY)
        desk(Clear(BOB, (key,), (first.mark,)))
        desk(DropPlace(PARENT, 7, BOB))
        desk.remake(PARENT, CHILD, BOB)
        second = desk.once(Finish(PARENT, 1, BOB, (made(7, PARENT, BOB),)))
        assert isinstance(second, Committed) and second.key == key and second.mark != first.mark
        desk(Clear(BOB, (key,), (first.mark,)))
        assert [entry.others for entry in desk.bury(BOB, CAT)[1]] == [(CHILD,)]
        desk(Clear(CAT, (key,), (second.mark,)))
        assert desk.bury(CAT, DAN)[1] == []

    def test_finish_repeated_after_its_intent_was_cleared_tells_nobody(self, desk: Desk):
        desk.pair()
        desk.done(PARENT)
        desk(Clear(ANN, (outbox_key(PARENT, SATISFY),)))
        assert desk.finish(PARENT) == Committed(-1, readers=(CHILD,)), "its objects may still be read"
        assert desk.log() == [PARENT]
