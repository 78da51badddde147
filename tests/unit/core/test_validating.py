"""Copies of which the task has ended elsewhere."""

import pytest

from daws.core.effects import VALIDATE, CallStore, DropObject, StartRun, StopRun
from daws.core.node import SECOND_NS, NodeConfig
from daws.core.places import places
from daws.model.states import DONE as DONE_STATE
from daws.model.states import READY
from daws.model.task import REPLICA
from daws.testing import Driver, ready
from daws.wire.messages import COPY, Offer
from daws.wire.store import DONE, AnswerType, Granted, Inspect, Story

OTHER = 1


def with_copies(*tasks: int, strategy: str = "adage:validate-s=10") -> Driver:
    """A node of one core that has been given copies: it runs the first."""
    node = Driver(strategy, members=3, config=NodeConfig(lease_ns=1000 * SECOND_NS))
    node.give(Offer(OTHER, 1, COPY, tuple([ready(task) for task in tasks])))
    node.answer(node.expect(CallStore), *[Granted(0, 0, REPLICA) for _ in tasks])
    node.expect(StartRun, task=tasks[0])
    return node


def asked(node: Driver) -> tuple[CallStore, list[int]]:
    """The call that follows when the timer has fired, and the tasks that it asks about."""
    node.fire(VALIDATE)
    call = node.expect(CallStore)
    return call, [row.task for row in call.rows if isinstance(row, Inspect)]


def answer(node: Driver, call: CallStore, *stories: AnswerType) -> None:
    node.answer(call, *stories)


def left(node: Driver) -> list[int]:
    return sorted(
        one.spec.id
        for _, one in places(node.core)
        if not node.core.queues.doomed or one.spec.id not in node.core.queues.doomed
    )


def test_copies_of_what_has_ended_are_dropped_queued_or_running():
    node = with_copies(1, 2, 3, 4)
    call, tasks = asked(node)
    assert sorted(tasks) == [1, 2, 3, 4]
    stories: dict[int, AnswerType] = {
        1: Story(DONE_STATE, OTHER, 1, 0),
        2: DONE,
        3: Story(READY, OTHER, 1, 0),
        4: Story(READY, OTHER, 1, 0),
    }
    answer(node, call, *[stories[task] for task in tasks])
    node.expect(StopRun, task=1)
    node.expect(StartRun, task=3)
    assert left(node) == [3, 4]


def test_it_is_asked_again_as_long_as_there_are_copies():
    node = with_copies(1, 2)
    assert node.timers[VALIDATE] == node.now_ns + 10 * SECOND_NS
    call, tasks = asked(node)
    assert node.timers[VALIDATE] == node.now_ns + 10 * SECOND_NS
    answer(node, call, *[Story(DONE_STATE, OTHER, 1, 0) for _ in tasks])
    node.expect(StopRun, task=1)
    node.fire(VALIDATE)
    assert VALIDATE not in node.timers, "a node without copies sets no timer"
    node.drop(DropObject)


@pytest.mark.parametrize("strategy", ["adage:validate-s=0", "constellation:replicate=stragglers"])
def test_without_a_validator_nobody_asks(strategy: str):
    assert VALIDATE not in with_copies(1, 2, strategy=strategy).timers


def test_what_the_node_owns_itself_by_now_is_not_dropped():
    """The copy has become the task itself before the answer comes, which speaks of what was."""
    node = with_copies(1)
    call, tasks = asked(node)
    assert tasks == [1]
    run = node.core.executors.running[1]
    run.ready = ready(1, attempt=1, move=2)
    answer(node, call, Story(DONE_STATE, OTHER, 1, 0))
    assert left(node) == [1]
    assert not any(isinstance(effect, StopRun | DropObject) for effect in node.effects)
