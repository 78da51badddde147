"""What a node tells decisions about tasks."""

from daws.core.effects import StartRun
from daws.core.events import RunEnded
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.task import CLIENT, GUESS_NS, TaskSpec
from daws.strategy.relax.above import RelaxAbove
from daws.testing import Driver, ready
from daws.wire.messages import Submission
from tests.unit.strategy.fakes import FakeView


def test_lengths_are_seen_or_said_or_guessed():
    node = Driver(cores=1)
    said = TaskSpec(9, kind=1, estimate_ns=7_000_000)
    assert node.core.estimate_ns(TaskSpec(8)) == GUESS_NS
    assert node.core.estimate_ns(said) == 7_000_000
    node.give(Submission(CLIENT, 0, (ready(1, kind=1),)))
    run = node.expect(StartRun)
    node.give(RunEnded(1, run.run, 3_000_000))
    assert node.core.estimate_ns(said) == 3_000_000, "what was seen of its kind here counts for more"
    assert node.core.estimate_ns(TaskSpec(8)) == GUESS_NS


def test_what_is_said_holds_for_a_node_of_speed_one():
    fast = Members(1, (NodeInfo(0, (ExecutorClass(1),), speed=4.0),))
    node = Driver(members=fast)
    assert node.core.estimate_ns(TaskSpec(8, estimate_ns=100)) == 25
    assert node.core.estimate_ns(TaskSpec(8, estimate_ns=1)) == 1
    assert node.core.estimate_ns(TaskSpec(8)) == GUESS_NS


def test_there_is_one_guess():
    assert RelaxAbove().explain(FakeView())["mean_run_ns"] == GUESS_NS
