"""Runs that have outlived all that they created end at once, though nothing is safe; the others wait for that."""

import pytest

from daws.core.effects import CallStore, DropObject, ResumeRun, StartRun
from daws.core.events import CallsSafe, RunEnded, RunSpawned, RunWaits
from daws.core.node import SECOND_NS, NodeConfig
from daws.model.task import CLIENT, spawned_id
from daws.store.memory import MemoryStore
from daws.testing import Driver, created, members_of, ready, task
from daws.wire.messages import Submission, SubmissionTaken
from daws.wire.store import REFUSED, Inspect, RowType, Spawn, logged_task

CHILD, OTHER = spawned_id(1, 0, 0), spawned_id(1, 0, 1)
SHARDS = 3


class World:
    """Task 1 runs on a node with two executors; the store has three shards, and nothing in them becomes safe by
    itself."""

    def __init__(self, shards: int = SHARDS, replicated: bool = True, retired_max: int = 0) -> None:
        self.store = MemoryStore(shards, retired_max=retired_max)
        self.store.join(members_of(1).infos)
        self.store.apply(0, created({1: []}, 0), 0)
        config = NodeConfig(shard_count=shards, lease_ns=8 * SECOND_NS, replicated=replicated)
        self.node = Driver("mlb", members=1, cores=2, config=config)
        self.node.give(Submission(CLIENT, 0, (ready(1, makes=[1]),)))
        self.node.expect(SubmissionTaken)
        self.run = self.node.expect(StartRun, task=1)
        self.calls: list[CallStore] = []

    def serve(self) -> None:
        while any(isinstance(effect, CallStore) for effect in self.node.effects):
            call = self.node.expect(CallStore)
            self.calls.append(call)
            self.node.answer(call, *self.store.apply(call.shard, call.rows, 0))

    def spawn(self, held: bool = True) -> None:
        """Two tasks, the second of which reads what the first makes."""
        self.node.give(RunSpawned(1, self.run.run, ((task(-1), ()), (task(-1), (CHILD,))), held))

    def end(self, name: int, error: str = "") -> None:
        run = self.run if name == 1 else self.node.expect(StartRun, task=name)
        self.node.give(RunEnded(name, run.run, 5, (10,) if name == 1 else (), error))
        self.serve()

    def become_safe(self) -> None:
        calls, self.calls = self.calls, []
        self.node.give(*[CallsSafe(call.shard, (call.token,)) for call in calls])
        self.serve()

    @property
    def asked(self) -> list[RowType]:
        return [row for call in self.calls for row in call.rows if isinstance(row, Inspect)]

    def is_done(self) -> bool:
        """Task 1 is committed."""
        rows = [logged_task(row) for shard in self.store.shards for row in shard.log]
        return 1 in rows


def test_a_run_ends_at_once_when_all_that_it_created_has_ended():
    world = World()
    world.spawn()
    world.node.give(RunWaits(1, world.run.run, (OTHER,)))
    world.serve()
    world.end(CHILD)
    world.end(OTHER)
    world.node.expect(ResumeRun, task=1)
    assert not world.asked
    world.end(1)
    assert world.is_done() and not world.node.core.executors.running
    assert world.asked == [Inspect(CHILD, True), Inspect(OTHER, True)]
    assert not world.node.core.spawning.outliving, "nothing is remembered of it"
    world.become_safe()
    world.node.nothing_left()


def test_how_they_have_ended_does_not_matter():
    world = World()
    world.spawn()
    world.serve()
    world.end(CHILD, "bad")
    world.end(1)
    assert world.is_done()


@pytest.mark.parametrize("ended", [0, 1])
def test_a_run_that_leaves_a_task_behind_ends_when_all_are_safe(ended: int):
    """Who has ended may be needed by who has not."""
    world = World()
    world.spawn()
    world.serve()
    if ended:
        world.end(CHILD)
    world.end(1)
    assert len(world.asked) == 2 and not world.is_done()
    if not ended:
        world.end(CHILD)
    world.end(OTHER)
    assert not world.is_done(), "nobody has asked since"
    world.become_safe()
    assert world.is_done() and not world.node.core.spawning.outliving
    world.node.nothing_left()


def test_a_task_that_is_not_there_yet_has_not_ended():
    """A store that forgets what has retired takes it for such a task."""
    world = World(retired_max=100)
    world.spawn()
    world.serve()
    world.end(CHILD)
    world.end(OTHER)
    world.node.give(RunSpawned(1, world.run.run, ((task(-1), ()),), True))
    late = world.node.expect(CallStore)
    world.end(1)
    assert len(world.asked) == 3 and not world.is_done()
    world.node.answer(late, *world.store.apply(late.shard, late.rows, 0))
    world.serve()
    world.end(spawned_id(1, 0, 2))
    assert not world.is_done()


@pytest.mark.parametrize(("shards", "replicated", "held"), [(1, True, True), (3, False, True), (3, True, False)])
def test_nobody_asks_where_that_helps_nobody_or_others_may_need_them(shards: int, replicated: bool, held: bool):
    world = World(shards, replicated)
    world.spawn(held)
    world.serve()
    world.end(CHILD)
    world.end(OTHER)
    world.end(1)
    assert not world.asked
    assert world.is_done() == (not replicated or shards == 1)


def test_an_answer_that_comes_when_the_run_is_over_is_for_nobody():
    world = World()
    world.spawn()
    world.serve()
    world.end(CHILD)
    world.end(OTHER)
    world.node.give(RunSpawned(1, world.run.run, ((task(-1), ()),), True))
    refused = world.node.expect_rows(Spawn(1, 0, 0, (spawned_id(1, 0, 2),)))
    world.node.give(RunEnded(1, world.run.run, 5, (10,)))
    world.node.answer(refused, REFUSED)  # another node has the task
    world.node.expect(DropObject, object=1)
    assert not world.node.core.executors.running and not world.node.core.spawning.outliving
    world.serve()
    assert world.asked and not world.is_done()
    world.node.nothing_left()
