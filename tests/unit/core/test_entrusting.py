"""What a node that leaves has made, and others that take it in."""

from daws.core.effects import CallStore, DropObject, FetchObjects, Left, StartRun
from daws.core.events import Leave, ObjectsFetched, RunEnded
from daws.core.leaving import hindrance
from daws.core.node import SECOND_NS, NodeConfig
from daws.model.task import CLIENT
from daws.testing import Driver, ready
from daws.testing.build import BIG, object_at
from daws.wire.messages import Entrust, Entrusted, LetGo, Releases, Submission, SubmissionTaken
from daws.wire.store import HELD, OK, REFUSED, AddPlace, Committed, Estate, Lease, Leased, Owned

TICK = 0
CONFIG = NodeConfig(lease_ns=8 * SECOND_NS)


def leaver(held: bool = False) -> Driver:
    """It has made object 1 of task 1, which task 2 reads, or the client."""
    node = Driver(cores=1, members=2, config=CONFIG)
    node.give(Submission(CLIENT, 0, (ready(1, makes=[1]),)))
    node.expect(SubmissionTaken)
    run = node.expect(StartRun, task=1)
    node.give(RunEnded(1, run.run, SECOND_NS, (BIG,)))
    node.answer(node.expect(CallStore), Committed(-1, (), (), () if held else (2,), held=held))
    node.drop(object)
    return node


def test_objects_are_entrusted_and_then_not_waited_for():
    with leaver() as node:
        node.give(Leave())
        assert node.expect(Entrust).tasks == ((1, 0, ((1, BIG),), (2,)),)
        assert hindrance(node.core)
        node.give(Entrusted(1, (1,)))
        assert node.core.has(1), "somebody may be about to fetch it"
        call = node.expect(CallStore)
        assert isinstance(call.rows[0], Owned)
        node.answer(call, Estate())
        call = node.expect(CallStore)
        assert isinstance(call.rows[0], Lease) and call.rows[0].leaving
        node.answer(call, Leased())
        assert node.expect(Left).behind == ""


def test_what_the_client_holds_is_entrusted_too():
    with leaver(held=True) as node:
        node.give(Leave())
        assert node.expect(Entrust).tasks[0][3] == (HELD,)


def test_nothing_is_entrusted_while_runs_have_yet_to_end():
    with leaver() as node:
        node.give(Submission(CLIENT, 1, (ready(3),)))
        node.expect(SubmissionTaken)
        run = node.expect(StartRun, task=3)
        node.give(Leave())
        assert not node.effects
        node.give(RunEnded(3, run.run, SECOND_NS, ()))
        node.answer(node.expect(CallStore), OK)
        node.expect(Entrust)


def test_a_word_that_gets_lost_is_said_again():
    with leaver() as node:
        node.give(Leave())
        node.expect(Entrust)
        node.fire(TICK)
        node.drop(CallStore)
        node.fire(TICK)
        node.drop(CallStore)
        node.fire(TICK)
        node.drop(CallStore)
        node.expect(Entrust)


def test_what_was_read_meanwhile_need_not_be_taken():
    with leaver() as node:
        node.give(Leave())
        node.expect(Entrust)
        node.give(Releases(1, ((1, 2),)))
        node.expect(DropObject, object=1)
        node.give(Entrusted(1, (1,)))
        node.drop(CallStore)


def taker() -> Driver:
    node = Driver(cores=1, members=2, config=CONFIG)
    node.give(Entrust(1, ((5, 0, ((5, BIG), (6, BIG)), (9,)),)))
    return node


def test_who_is_entrusted_fetches_tells_the_store_and_keeps_until_it_was_read():
    with taker() as node:
        fetch = node.expect(FetchObjects)
        assert fetch.wanted == ((5, BIG, 1), (6, BIG, 1))
        node.give(ObjectsFetched(fetch.wanted[:1]))
        assert not node.effects
        node.give(ObjectsFetched(fetch.wanted[1:]))
        call = node.expect(CallStore)
        assert call.rows == [AddPlace(5, 5, 0), AddPlace(5, 6, 0)]
        node.answer(call, OK, OK)
        assert node.expect(Entrusted).tasks == (5,)
        assert node.core.has(5) and node.core.has(6)
        node.give(Entrust(1, ((5, 0, ((5, BIG), (6, BIG)), (9,)),)))
        assert node.expect(Entrusted).tasks == (5,), "it was not heard"
        node.give(Releases(1, ((5, 9),)))
        node.expect(DropObject, object=5)
        node.expect(DropObject, object=6)


def test_what_nobody_needs_any_more_is_not_kept():
    with taker() as node:
        fetch = node.expect(FetchObjects)
        node.give(ObjectsFetched(fetch.wanted))
        node.answer(node.expect(CallStore), REFUSED, REFUSED)
        assert {node.expect(DropObject).object, node.expect(DropObject).object} == {5, 6}
        node.expect(Entrusted)
        assert not node.core.has(5) and not node.core.wards and not node.core.coming


def test_who_is_gone_before_all_has_come_leaves_nothing():
    with taker() as node:
        fetch = node.expect(FetchObjects)
        node.give(ObjectsFetched(fetch.wanted[:1], fetch.wanted[1:]))
        node.expect(DropObject, object=5)
        assert not node.core.wards and not node.core.coming
        node.give(Entrust(1, ((5, 0, ((5, BIG), (6, BIG)), (9,)),)))
        node.expect(FetchObjects)


def test_a_copy_that_is_here_already_becomes_ours():
    with Driver(cores=1, members=3, config=CONFIG) as node:
        node.give(Submission(CLIENT, 0, (ready(7, object_at(5, 1)),)))
        node.expect(SubmissionTaken)
        fetch = node.expect(FetchObjects)
        node.give(ObjectsFetched(fetch.wanted))
        node.expect(StartRun, task=7)
        assert node.core.copies
        node.give(Entrust(1, ((5, 2, ((5, fetch.wanted[0][1]),), (9, HELD)),)))
        node.answer(node.expect(CallStore), OK)
        node.expect(Entrusted)
        assert not node.core.copies
        assert node.core.attempts == {5: 2}
        node.give(LetGo(CLIENT, (5,)))
        node.drop(CallStore)


def test_who_leaves_takes_nothing_in():
    with Driver(cores=1, members=3, config=CONFIG) as node:
        node.give(Leave())
        node.drop(CallStore)
        node.give(Entrust(1, ((5, 0, ((5, BIG),), (9,)),)))
        assert not node.effects
