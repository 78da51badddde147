"""Between the numbers of workers and the ids of the node."""

from daws.core.effects import ResumeRun
from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.states import FAILED
from daws.model.task import Input, Needs, TaskSpec, spawned_id
from daws.runtime.engine import Outcome
from daws.runtime.nesting import Nesting
from daws.wire.worker import ChildEnd, ObjectFile, Seed, Spawned, Waits

RUN, SLOT = 5, 1
PARENT = TaskSpec(1, priority=3)
FIRST, SECOND = spawned_id(1, 2, 0), spawned_id(1, 2, 1)


class Node:
    """What is made of the things that a run says, and what it is told."""

    def __init__(self) -> None:
        self.resumed: list[tuple[int, int, tuple[ChildEnd, ...]]] = []
        info = NodeInfo(0, (ExecutorClass(2),))
        self.nesting = Nesting(info, self._input, lambda *what: self.resumed.append(what))

    def _input(self, one: Input) -> bytes | ObjectFile:
        return one[4] or ObjectFile(f"/objects/{one[0]}")

    def spawn(self, *seeds: Seed) -> list[tuple[TaskSpec, tuple[int, ...]]]:
        event = self.nesting.spawned(Spawned(RUN, seeds), SLOT, PARENT, 2)
        assert (event.task, event.run, event.held) == (1, RUN, True)
        return list(event.tasks)

    def end(self, task: int, value: bytes = b"") -> None:
        self.nesting.on_ended([Outcome(task, ((task, 10, task, (0,), value),))])


def test_tasks_read_what_others_of_the_same_run_make():
    node = Node()
    (one, above) = node.spawn(Seed(7, b"args", outputs=2, retries=4))[0]
    assert (one.kind, one.payload, one.retries, one.priority, above) == (7, b"args", 4, 4, ())
    assert one.outputs[0] == FIRST and len(set(one.outputs)) == 2
    (other, above) = node.spawn(Seed(7, b"", inputs=((0, 1), (0, 0)), priority=5))[0]
    assert other.inputs == (one.outputs[1], FIRST)
    assert (above, other.priority) == ((FIRST,), 9)


def test_a_run_goes_on_when_it_was_told_to_and_all_was_heard_of():
    node = Node()
    node.spawn(Seed(7, b""), Seed(7, b""))
    assert node.nesting.waits(Waits(RUN, 0, (1,)), 1).on == (SECOND,)
    node.end(FIRST, b"one")
    assert not node.resumed
    node.nesting.on_resume(ResumeRun(1, RUN, 0))
    assert not node.resumed, "the news may be slower than the order"
    node.end(SECOND)
    results = ChildEnd(0, (b"one",)), ChildEnd(1, (ObjectFile(f"/objects/{SECOND}"),))
    assert node.resumed == [(SLOT, RUN, results)], "in the process that it lives in"
    assert node.nesting.news(RUN) == ()


def test_what_nobody_can_run_fails_at_once_with_all_that_needs_it():
    node = Node()
    created = node.spawn(Seed(7, b"", needs=Needs(3)), Seed(7, b"", inputs=((0, 0),)), Seed(7, b""))
    assert len(created) == 1 and created[0][0].outputs == (FIRST,)
    refused, after = node.nesting.news(RUN)
    assert (refused.number, refused.state, after.number, after.state) == (0, FAILED, 1, FAILED)
    assert "3 cores" in refused.error
    assert node.nesting.waits(Waits(RUN, 0, (0, 1, 2)), 1).on == (FIRST,)


def test_nothing_is_kept_of_a_run_that_is_over():
    node = Node()
    node.spawn(Seed(7, b""))
    node.nesting.waits(Waits(RUN, 0, (0,)), 1)
    node.nesting.on_resume(ResumeRun(1, RUN, 0))
    node.nesting.forget(RUN)
    node.end(FIRST)
    node.nesting.on_resume(ResumeRun(1, RUN, 0))
    assert not node.resumed and not node.nesting.nests and node.nesting.news(RUN) == ()
