"""Memory: what runs together, who waits, and who may go on meanwhile."""

import pytest

from daws.core import invariants
from daws.core.effects import CallStore, ResumeRun, StartRun, StopRun
from daws.core.events import RunEnded, RunWaits
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.context import parse_context
from daws.model.errors import InternalError
from daws.model.task import CLIENT, Needs, Ready
from daws.testing import Driver, ready
from daws.wire.messages import Offer, StopDone, StopOrder, Submission, SubmissionTaken
from daws.wire.store import OK, Open, Resume, Suspend


def node_of(memory_bytes: int, cores: int = 4, strategy: str = "mlb") -> Driver:
    return Driver(strategy, Members(1, (NodeInfo(0, (ExecutorClass(cores),), memory_bytes=memory_bytes),)))


def submit(node: Driver, *tasks: Ready) -> None:
    node.give(Submission(CLIENT, node.core.executors.token, tasks))
    node.expect(SubmissionTaken, to=CLIENT)


def started(node: Driver) -> list[int]:
    """Which tasks have been started since the last time."""
    found = []
    while any(isinstance(effect, StartRun) for effect in node.effects):
        found.append(node.expect(StartRun).ready.spec.id)
    return found


def end(node: Driver, task: int) -> list[int]:
    run = node.core.executors.running[task]
    node.give(RunEnded(task, run.number, 50_000_000))
    node.drop(CallStore)
    return started(node)


def big(task: int, memory_bytes: int, cores: int = 1, context: str = "") -> Ready:
    return ready(task, memory_bytes=memory_bytes, cores=cores, context=context)


def test_tasks_that_fit_run_together():
    with node_of(10) as node:
        submit(node, big(1, 4), big(2, 6), ready(3))
        assert started(node) == [1, 2, 3]


def test_without_a_limit_all_run():
    with node_of(0) as node:
        submit(node, big(1, 1 << 60), big(2, 1 << 60))
        assert started(node) == [1, 2]


def test_who_does_not_fit_waits_until_enough_is_free():
    with node_of(10) as node:
        submit(node, big(1, 4), big(2, 5), big(3, 7))
        assert started(node) == [1, 2]
        assert end(node, 1) == []
        assert end(node, 2) == [3]


def test_what_falls_free_is_kept_for_who_waits():
    """Else small tasks would take it again and again."""
    with node_of(10) as node:
        submit(node, big(1, 6), big(2, 8), big(3, 1), big(4, 1))
        assert started(node) == [1], "3 and 4 would fit, but they come after 2"
        assert end(node, 1) == [2, 3, 4]


def test_who_declares_nothing_goes_on_beside_but_leaves_an_executor():
    with node_of(10) as node:
        submit(node, big(1, 6), big(2, 8), *map(ready, range(3, 9)))
        assert started(node) == [1, 3, 4], "one executor of four is kept"
        assert end(node, 3) == [5]
        assert end(node, 1) == [2, 6]


def test_a_wide_task_that_waits_keeps_as_many_executors_as_it_needs():
    with node_of(10) as node:
        submit(node, big(1, 6), big(2, 8, cores=3), *map(ready, range(3, 9)))
        assert started(node) == [1]
        assert end(node, 1) == [2, 3]


def test_who_asks_for_something_else_does_not_go_on():
    with node_of(10) as node:
        submit(node, big(1, 6), big(2, 8), ready(3, cores=2), ready(4))
        assert started(node) == [1]
        assert end(node, 1) == [2, 3, 4]


def test_memory_belongs_to_the_node_and_not_to_a_sort_of_executors():
    info = NodeInfo(0, (ExecutorClass(2), ExecutorClass(2, parse_context("gpu"))), memory_bytes=10)
    with Driver("constellation", Members(1, (info,))) as node:
        submit(node, big(1, 6), big(2, 8, context="gpu"))
        assert started(node) == [1]
        submit(node, big(3, 1), big(4, 2))
        assert started(node) == [], "they would fit, on executors that 2 may not use, but they come after it"
        assert end(node, 1) == [2, 3], "first the one that waited"
        assert end(node, 3) == [4]


def test_who_waits_and_is_called_off_keeps_nothing():
    with node_of(10) as node:
        submit(node, big(1, 6), big(2, 8), big(3, 4))
        assert started(node) == [1]
        node.give(StopOrder(0, 2, 5, 0))
        node.expect(StopDone)
        assert started(node) == [3]


def test_who_is_stopped_gives_its_memory_back():
    with node_of(10) as node:
        submit(node, big(1, 6), big(2, 8))
        assert started(node) == [1]
        node.give(StopOrder(0, 1, 5, 0))
        node.expect(StopDone)
        node.expect(StopRun)
        assert started(node) == [2]


def test_who_is_suspended_gives_its_memory_back_and_gets_it_before_others():
    with node_of(10) as node:
        submit(node, big(1, 6), big(2, 8), big(3, 2), big(4, 2))
        assert started(node) == [1]
        run = node.core.executors.running[1]
        node.give(RunWaits(1, run.number, ()))
        assert started(node) == [2, 3], "what it had declared is free for those that it waits for"
        node.answer(node.expect_rows(Suspend(1, 0, 0)), OK)
        node.answer(node.expect_rows(Open(1, 0, True)), Resume(0))
        assert run.suspended and end(node, 3) == [], "4 would fit, but first comes who has begun already"
        assert end(node, 2) == [4]
        node.expect(ResumeRun, task=1)


def test_a_node_does_not_take_what_it_cannot_hold():
    infos = tuple(NodeInfo(i, (ExecutorClass(2),), memory_bytes=room) for i, room in enumerate((10, 20)))
    with Driver("mlb", Members(1, infos)) as node:
        submit(node, big(1, 11), big(2, 10))
        assert started(node) == [2]
        assert [one.spec.id for one in node.expect(Offer, to=1).tasks] == [1]


def test_nobody_can_hold_it_yet():
    with node_of(10) as node:
        submit(node, big(1, 11))
        assert [one.spec.id for one in node.core.queues.stranded or ()] == [1]


def test_it_is_an_invariant():
    with node_of(10) as node:
        submit(node, big(1, 4), big(2, 6))
        started(node)
        run = node.core.executors.running[1]
        run.ready = Ready(run.ready.spec, 0, 0)
        node.core.info = NodeInfo(0, node.core.info.executors, memory_bytes=9)
        with pytest.raises(InternalError, match="tasks that need 10 bytes of memory run together, there are 9"):
            invariants.check(node.core)


@pytest.mark.parametrize(
    ("needs", "room", "fits"),
    [
        (None, 1, True),
        (Needs(1), 1, True),
        (Needs(1, None, 2), 1, False),
        (Needs(1, None, 2), 2, True),
        (Needs(1, None, 2), 0, True),
    ],
)
def test_who_can_run_what(needs: Needs | None, room: int, fits: bool):
    assert NodeInfo(0, (ExecutorClass(2),), memory_bytes=room).can_run(needs) is fits


def test_few_sorts_of_nodes_are_few_steps():
    infos = tuple(NodeInfo(i, (ExecutorClass(1),), memory_bytes=room) for i, room in enumerate((10, 20, 0, 10)))
    members = Members(1, infos)
    assert members.memory_limits == (10, 20)
    assert [members.memory_step(need) for need in (0, 1, 10, 11, 20, 21, 99)] == [0, 10, 10, 20, 20, 21, 21]
    for need, able in ((0, (0, 1, 2, 3)), (10, (0, 1, 2, 3)), (11, (1, 2)), (21, (2,))):
        assert members.capable(Needs(1, None, need)) == able
    for need in range(1000):
        members.capable(Needs(1, None, need))
    assert len(members._capable) <= 4
