"""Between the numbers of workers and the ids of the node."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from daws.core.effects import ResumeRun
from daws.core.events import ObjectsFetched
from daws.data.files import ObjectFiles
from daws.model.states import FAILED
from daws.model.task import Input, Needs, ObjectTransfer, TaskSpec, spawned_id
from daws.runtime.nesting import Nesting
from daws.testing import Driver
from daws.wire.ends import Outcome
from daws.wire.worker import ChildEnd, ObjectFile, Seed, Spawned, WaitReport

RUN, SLOT = 5, 1
PARENT = TaskSpec(1, priority=3)
FIRST, SECOND = spawned_id(1, 2, 0), spawned_id(1, 2, 1)
BIG = 100_000


class Node:
    """What is made of the things that a run says, and what it is told."""

    def __init__(self, folder: Path) -> None:
        self.resumed: list[tuple[int, int, tuple[ChildEnd, ...]]] = []
        self.wanted: list[ObjectTransfer] = []
        self.asked: list[int] = []
        self.given_up: list[tuple[int, int]] = []
        self.asked_for_members: list[None] = []
        self.files = ObjectFiles(None, folder)
        core = Driver("mlb", members=3, cores=2).core
        self.nesting = Nesting(
            core,
            self.files,
            self._bring,
            lambda *what: self.resumed.append(what),
            lambda *what: self.given_up.append(what),
            lambda: self.asked_for_members.append(None),
        )
        self.nesting.ask = self.asked.extend

    def _bring(self, wanted: Sequence[ObjectTransfer]) -> None:
        self.wanted += wanted

    def spawn(self, *seeds: Seed) -> list[tuple[TaskSpec, tuple[int, ...]]]:
        event = self.nesting.spawned(Spawned(RUN, seeds), SLOT, PARENT, 2)
        assert (event.task, event.run, event.held) == (1, RUN, True)
        return list(event.tasks)

    def wait(self, *numbers: int) -> None:
        self.nesting.waits(WaitReport(RUN, 0, numbers), 1)
        self.nesting.on_resume(ResumeRun(1, RUN, 0))

    def end(self, task: int, value: bytes = b"", places: tuple[int, ...] = (0,)) -> None:
        self.nesting.on_ended([Outcome(task, (Input(task, len(value) or BIG, task, places, value),))])


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def file_of(node: Node, object_: int) -> ObjectFile:
    return ObjectFile(node.files.path(object_), object_, node.files.size_bytes(object_))


def test_tasks_read_what_others_of_the_same_run_make(node: Node):
    (one, above) = node.spawn(Seed(7, b"args", outputs=2, retries=4))[0]
    assert (one.kind, one.payload, one.retries, one.priority, above) == (7, b"args", 4, 4, ())
    assert one.outputs[0] == FIRST and len(set(one.outputs)) == 2
    (other, above) = node.spawn(Seed(7, b"", inputs=((0, 1), (0, 0)), priority=5))[0]
    assert other.inputs == (one.outputs[1], FIRST)
    assert (above, other.priority) == ((FIRST,), 9)


def test_a_run_goes_on_when_it_was_told_to_and_all_was_heard_of(node: Node):
    node.spawn(Seed(7, b""), Seed(7, b""))
    assert node.nesting.waits(WaitReport(RUN, 0, (1,)), 1).on == (SECOND,)
    node.end(FIRST, b"one")
    assert not node.resumed
    node.nesting.on_resume(ResumeRun(1, RUN, 0))
    assert not node.resumed, "the news may be slower than the order"
    assert node.asked == [SECOND], "and is asked for, in case that it never comes"
    node.files.put(SECOND, "two")
    node.end(SECOND)
    results = ChildEnd(0, (b"one",)), ChildEnd(1, (file_of(node, SECOND),))
    assert node.resumed == [(SLOT, RUN, results)], "in the process that it lives in"
    assert node.nesting.news(RUN) == ()
    assert node.asked == [SECOND], "once"


def test_what_nobody_can_run_fails_at_once_with_all_that_needs_it(node: Node):
    created = node.spawn(Seed(7, b"", needs=Needs(3)), Seed(7, b"", inputs=((0, 0),)), Seed(7, b""))
    assert len(created) == 1 and created[0][0].outputs == (FIRST,)
    refused, after = node.nesting.news(RUN)
    assert (refused.number, refused.state, after.number, after.state) == (0, FAILED, 1, FAILED)
    assert "3 cores" in refused.error
    assert node.nesting.waits(WaitReport(RUN, 0, (0, 1, 2)), 1).on == (FIRST,)


def test_results_of_other_nodes_are_brought_here_when_they_are_waited_for(node: Node):
    node.spawn(Seed(7, b""), Seed(7, b""))
    node.end(FIRST, places=(1, 2))
    node.end(SECOND, places=(1,))
    assert not node.wanted and not node.nesting.news(RUN)
    node.wait(0)
    assert node.wanted == [ObjectTransfer(FIRST, BIG, 1)]
    node.nesting.on_fetched(ObjectsFetched((), (ObjectTransfer(FIRST, BIG, 1),)))
    assert node.wanted[1:] == [ObjectTransfer(FIRST, BIG, 2)], "there was another place"
    node.files.put(FIRST, "one")
    node.nesting.on_fetched(ObjectsFetched((ObjectTransfer(FIRST, BIG, 2),)))
    assert node.resumed == [(SLOT, RUN, (ChildEnd(0, (file_of(node, FIRST),)),))]
    node.files.drop(FIRST)
    assert FIRST in node.files, "the run may still read it"
    node.nesting.forget(RUN)
    assert FIRST not in node.files


def test_a_result_that_is_not_where_it_was_made_is_asked_for_once_more(node: Node):
    node.spawn(Seed(7, b""))
    node.wait(0)
    node.end(FIRST, places=(1,))
    node.asked.clear()
    node.nesting.on_fetched(ObjectsFetched((), (ObjectTransfer(FIRST, BIG, 1),)))
    assert node.asked == [FIRST] and not node.given_up
    node.end(FIRST, places=(1, 2))
    assert node.wanted == [ObjectTransfer(FIRST, BIG, 1), ObjectTransfer(FIRST, BIG, 2)], "it was moved"
    node.nesting.on_fetched(ObjectsFetched((), (ObjectTransfer(FIRST, BIG, 2),)))
    assert node.asked == [FIRST, FIRST] and not node.given_up
    node.end(FIRST, places=(1, 2))
    assert node.given_up == [(RUN, FIRST)] and not node.resumed, "nobody has it any more"


def test_a_result_on_a_node_that_is_not_known_yet_waits_until_the_members_are_known(node: Node):
    """Such a run began anew again and again, until the node was known."""
    new = 3
    node.spawn(Seed(7, b""))
    node.wait(0)
    node.asked.clear()
    node.end(FIRST, places=(new,))
    assert len(node.asked_for_members) == 1 and not node.wanted and not node.given_up and not node.asked
    node.nesting.on_members()
    assert node.wanted == [ObjectTransfer(FIRST, BIG, new)]
    node.files.put(FIRST, "one")
    node.nesting.on_fetched(ObjectsFetched((ObjectTransfer(FIRST, BIG, new),)))
    assert node.resumed == [(SLOT, RUN, (ChildEnd(0, (file_of(node, FIRST),)),))]


def test_a_result_on_a_node_that_is_dead_is_asked_for_once_more(node: Node):
    dead = 3
    node.spawn(Seed(7, b""))
    node.wait(0)
    node.asked.clear()
    node.end(FIRST, places=(1, dead))
    assert node.wanted == [ObjectTransfer(FIRST, BIG, 1)] and not node.asked_for_members, "one place is known"
    node.nesting.on_fetched(ObjectsFetched((), (ObjectTransfer(FIRST, BIG, 1),)))
    node.end(FIRST, places=(1, dead))
    assert len(node.asked_for_members) == 1
    node.nesting.on_members()
    node.nesting.on_fetched(ObjectsFetched((), (ObjectTransfer(FIRST, BIG, dead),)))
    assert node.asked == [FIRST, FIRST] and not node.given_up
    node.end(FIRST, places=(dead,))
    assert node.given_up == [(RUN, FIRST)] and len(node.asked_for_members) == 1


def test_a_run_that_is_over_while_the_members_are_asked_for_wants_nothing(node: Node):
    node.spawn(Seed(7, b""))
    node.wait(0)
    node.end(FIRST, places=(3,))
    node.nesting.forget(RUN)
    node.nesting.on_members()
    assert not node.wanted and not node.given_up


def test_a_run_begins_anew_if_nobody_knows_how_its_tasks_have_ended(node: Node):
    node.spawn(Seed(7, b""), Seed(7, b""))
    node.end(FIRST, b"one")
    node.wait(0, 1)
    node.nesting.on_forgotten([FIRST, SECOND, 77])
    assert node.given_up == [(RUN, SECOND)], "the other one was heard of before"


def test_where_nobody_can_be_asked_a_lost_result_is_given_up_at_once(node: Node):
    node.nesting.ask = None
    node.spawn(Seed(7, b""))
    node.wait(0)
    node.end(FIRST, places=(1,))
    node.nesting.on_fetched(ObjectsFetched((), (ObjectTransfer(FIRST, BIG, 1),)))
    assert node.given_up == [(RUN, FIRST)]


def test_nothing_is_kept_of_a_run_that_is_over(node: Node):
    node.spawn(Seed(7, b""), Seed(7, b""))
    node.wait(0, 1)
    node.end(SECOND, places=(1,))
    node.nesting.forget(RUN)
    node.end(FIRST, b"one")
    node.nesting.on_fetched(ObjectsFetched((ObjectTransfer(SECOND, BIG, 1),)))
    node.nesting.on_resume(ResumeRun(1, RUN, 0))
    assert not node.resumed and not node.nesting.nests and node.nesting.news(RUN) == ()
