"""Objects that somebody still needs are with others before a node leaves."""

from daws.core.effects import CallStore, DropObject, FetchObjects, StartRun
from daws.core.events import Leave, ObjectsFetched, RunEnded
from daws.core.handover import PATIENCE_TICKS
from daws.core.leaving import hindrance
from daws.core.node import SECOND_NS
from daws.model.task import CLIENT, ObjectTransfer
from daws.testing import Driver, ready
from daws.testing.build import BIG, fetched, not_fetched, object_at
from daws.wire.messages import HandOver, Kept, Releases, Submission, SubmissionTaken
from daws.wire.store import HELD, OK, REFUSED, AddPlace, Committed

TICK = 0
NAMED = ((8, 0, (HELD, 9), ((8, BIG),)),)
"""What task 8 made, which task 9 and a client need."""


def leaver(node: Driver) -> HandOver:
    """It has made something, and is told to leave."""
    node.give(Submission(CLIENT, 0, (ready(8, makes=[8]),)))
    node.expect(SubmissionTaken)
    run = node.expect(StartRun, task=8)
    node.give(Leave())
    node.give(RunEnded(8, run.run, SECOND_NS, (BIG,)))
    node.answer(node.expect(CallStore), Committed(-1, (), (), (9,), held=True))
    return node.expect(HandOver)


def test_who_leaves_names_what_is_needed_and_lets_go_when_another_has_it():
    with Driver(cores=1) as node:
        said = leaver(node)
        assert said.entries == NAMED
        node.give(Kept(2, (8,)))
        node.expect(DropObject, object=8)
        assert not node.core.objects.made and "read" not in hindrance(node.core)
        node.give(Kept(1, (8,)))  # another was asked as well
        node.drop(object)


def test_another_is_asked_where_nobody_answers():
    with Driver(cores=1) as node:
        leaver(node)
        for _ in range(PATIENCE_TICKS):
            assert not [one for one in node.effects if isinstance(getattr(one, "message", None), HandOver)]
            node.fire(TICK)
        node.fire(TICK)  # the first came early
        node.expect(HandOver)
        node.drop(object)


def adopts(node: Driver) -> None:
    node.give(HandOver(1, NAMED))
    node.expect_fetch(8, source=1)
    node.give(fetched(8, 1))


def test_what_was_handed_over_is_as_good_as_made_here():
    with Driver("mlb:cache=none") as node:
        adopts(node)
        call = node.expect_rows(AddPlace(8, 8, 0))
        node.give(HandOver(1, NAMED))
        node.nothing_left()
        node.answer(call, OK)
        assert node.expect(Kept, to=1).producers == (8,)
        node.give(HandOver(1, NAMED))
        node.answer(node.expect_rows(AddPlace(8, 8, 0)), OK)
        node.expect(Kept, to=1)  # the first word was lost
        node.give(Releases(2, ((8, 9),)))
        assert node.core.objects.sizes == {8: BIG}, "the client holds it"
        assert not (node.core.adoptions and node.core.adoptions.of) and not node.core.objects.copies


def test_what_nobody_needs_any_more_is_kept_by_nobody():
    with Driver() as node:
        adopts(node)
        node.answer(node.expect_rows(AddPlace(8, 8, 0)), REFUSED)
        node.expect(DropObject, object=8)
        node.expect(Kept, to=1)
        assert not node.core.objects.made and not node.core.objects.sizes


def test_what_cannot_be_fetched_is_forgotten():
    with Driver() as node:
        both = ((8, 2, (9,), ((8, BIG), (80, BIG))),)
        node.give(HandOver(1, both))
        node.drop(FetchObjects)
        node.give(ObjectsFetched((ObjectTransfer(8, BIG, 1),), (ObjectTransfer(80, BIG, 1),)))
        node.expect(DropObject, object=8)
        assert not (
            (node.core.adoptions and node.core.adoptions.of)
            or node.core.objects.made
            or node.core.objects.sizes
            or node.core.fetching.coming
        )
        node.give(HandOver(1, both))
        node.drop(FetchObjects)
        node.give(not_fetched(8, 1))
        node.give(fetched(80, 1))
        node.expect(DropObject, object=80)


def test_a_copy_that_is_here_already_is_taken_for_it():
    with Driver("mlb:cache=all") as node:
        node.give(Submission(CLIENT, 0, (ready(5, object_at(8, 1)),)))
        node.expect(SubmissionTaken)
        node.expect_fetch(8)
        node.give(fetched(8, 1))
        node.expect(StartRun, task=5)
        node.give(HandOver(1, ((8, 3, (5,), ((8, BIG),)),)))
        node.expect_rows(AddPlace(8, 8, 0))
        assert (
            node.core.objects.made[8].objects == (8,)
            and not node.core.objects.copies
            and not node.core.objects.copied_bytes
        )
        assert node.core.objects.attempts == {8: 3}


def test_who_leaves_itself_takes_nothing():
    with Driver() as node:
        node.give(Leave())
        node.drop(object)
        node.give(HandOver(1, NAMED))
        node.nothing_left()
