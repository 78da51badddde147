"""A node with too little room for objects starts what makes room, and never nothing."""

from daws.core.effects import CallStore, DropObject, RecallRun, StartRun
from daws.core.events import Pressure, RunEnded, RunRecalled
from daws.model.task import CLIENT, Ready
from daws.testing import Driver, ready
from daws.testing.build import BIG, object_at
from daws.wire.messages import Submission, SubmissionTaken
from daws.wire.store import Committed

SECOND_NS = 1_000_000_000


def submit(node: Driver, *tasks: Ready) -> None:
    node.give(Submission(CLIENT, tasks[0].spec.id, tasks))
    node.expect(SubmissionTaken, to=CLIENT)


def end(node: Driver, run: StartRun) -> CallStore:
    """A run ends; answers its commit."""
    spec = run.ready.spec
    node.give(RunEnded(spec.id, run.run, SECOND_NS, tuple(BIG for _ in spec.outputs)))
    return node.expect(CallStore)


def make(node: Driver, task: int, *readers: int, held: bool = False) -> None:
    """The object of this task lies here, for these."""
    submit(node, ready(task, makes=[task]))
    call = end(node, node.expect(StartRun, task=task))
    node.answer(call, Committed(-1, readers=readers, held=held))


def test_what_only_makes_more_runs_alone():
    with Driver(cores=4, members=1) as node:
        node.give(Pressure(True))
        submit(node, ready(1, makes=[1]), ready(2, makes=[2]), ready(3, makes=[3]))
        run = node.expect(StartRun, task=1)
        node.nothing_left()
        call = end(node, run)
        node.expect(StartRun, task=2)
        node.answer(call, Committed(-1, held=True))
        node.nothing_left()


def test_when_there_is_room_again_all_executors_are_used():
    with Driver(cores=3, members=1) as node:
        node.give(Pressure(True))
        submit(node, *[ready(task, makes=[task]) for task in (1, 2, 3)])
        node.expect(StartRun, task=1)
        node.give(Pressure(False))
        node.expect(StartRun, task=2)
        node.expect(StartRun, task=3)


def test_who_makes_room_comes_before_those_that_came_earlier():
    with Driver(cores=2, members=1) as node:
        make(node, 1, 11)
        make(node, 2, 12)
        submit(node, ready(5, makes=[5]), ready(6, makes=[6]), ready(7, makes=[7]))
        five, _ = node.expect(StartRun, task=5), node.expect(StartRun, task=6)
        submit(node, ready(11, object_at(1, 0)))  # behind 7
        node.give(Pressure(True))
        submit(node, ready(12, object_at(2, 0)))
        call = end(node, five)
        run = node.expect(StartRun, task=11)
        node.answer(call, Committed(-1, held=True))
        call = end(node, run)
        node.expect(StartRun, task=12)
        node.answer(call, Committed(-1))
        node.expect(DropObject, object=1)
        node.nothing_left()  # 7 waits


def test_who_reads_what_a_client_holds_makes_no_room():
    with Driver(cores=2, members=1) as node:
        make(node, 1, 11, 12, held=True)
        node.give(Pressure(True))
        submit(node, ready(11, object_at(1, 0)), ready(12, object_at(1, 0)))
        node.expect(StartRun, task=11)
        node.nothing_left()


def test_tasks_that_were_sent_ahead_are_asked_for_and_none_follow():
    with Driver(cores=1, members=1) as node:
        submit(node, *[ready(task, makes=[task]) for task in range(20)])
        runs = [node.expect(StartRun, task=0)]
        for task in range(3):
            node.give(RunEnded(task, runs[task].run, 1_000, (10,)))
            while any(isinstance(effect, StartRun) for effect in node.effects):
                runs.append(node.expect(StartRun))
            node.answer(node.expect(CallStore), None)
        node.give(Pressure(True))
        assert len(runs) > 6
        for run in runs[4:]:
            node.expect(RecallRun, run=run.run)
        for run in runs[4:]:
            node.give(RunRecalled(run.ready.spec.id, run.run))
        node.nothing_left()
        node.give(RunEnded(3, runs[3].run, 1_000, (10,)))
        node.answer(node.expect(CallStore), None)
        node.expect(StartRun)
