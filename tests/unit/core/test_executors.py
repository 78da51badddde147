"""Tasks that need not stand in a queue: an idle executor, empty queues, and everything they read is here."""

import pytest

from daws.core.effects import CallStore, StartRun
from daws.core.events import RunEnded
from daws.core.node import SECOND_NS
from daws.model.task import CLIENT, Ready
from daws.testing import Driver, ready
from daws.testing.build import object_at
from daws.wire.messages import LoadQuery, Submission, SubmissionTaken
from daws.wire.store import Committed


def committed(node: Driver, *children: Ready, busy: int = 0) -> None:
    """Task 1 makes object 1 and ends; its commit makes these tasks ready. So many others run beside it."""
    others = tuple(ready(100 + number) for number in range(busy))
    node.give(Submission(CLIENT, 0, (ready(1, makes=[1], priority=9), *others)))
    node.expect(SubmissionTaken)
    run = node.expect(StartRun, task=1).run
    for number in range(busy):
        node.expect(StartRun, task=100 + number)
    node.give(RunEnded(1, run, SECOND_NS, (1_000_000,)))
    readers = tuple(child.spec.id for child in children)
    node.answer(node.expect(CallStore), Committed(-1, readers=readers, ready=children))


def test_a_single_child_starts_at_once_beside_the_object_it_reads():
    with Driver("flds", members=1, cores=2) as node:
        committed(node, ready(2, object_at(1, 0)), busy=1)
        node.expect(StartRun, task=2)
        assert node.core.objects.moved_bytes == 0


def test_of_several_children_the_first_in_order_starts():
    with Driver("mlb:order=submission", members=1, cores=1) as node:
        committed(node, ready(2, object_at(1, 0)), ready(3, object_at(1, 0), priority=5))
        node.expect(StartRun, task=3)
        assert node.core.queues.shared.count == 1


def test_a_child_whose_needs_are_not_met_waits():
    with Driver("mlb", members=1, cores=2) as node:
        committed(node, ready(2, object_at(1, 0), cores=2), busy=1)
        node.nothing_left()


@pytest.mark.parametrize("strategy", ["mlb", "mdl"])
def test_nothing_starts_when_the_lease_is_about_to_end(strategy: str):
    with Driver(strategy, members=1, cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1, makes=[1]),)))
        node.expect(SubmissionTaken)
        run = node.expect(StartRun, task=1).run
        node.give(RunEnded(1, run, SECOND_NS, (1_000_000,)), later_ns=60 * SECOND_NS)
        node.answer(node.expect(CallStore), Committed(-1, readers=(2,), ready=(ready(2, object_at(1, 0)),)))
        node.drop(LoadQuery)
        node.nothing_left()
