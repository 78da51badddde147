"""Executors that are kept for a more critical task, and for how long."""

from typing import Any

from daws.core.effects import PATIENCE, CallStore, StartRun
from daws.core.events import ObjectsPut, RunEnded, TimerFired
from daws.core.node import SECOND_NS
from daws.core.reserve import COMMIT_NS
from daws.model.task import CLIENT, RAISED, Input, Ready
from daws.testing import Driver, ready
from daws.testing.build import BIG, fetched, object_at
from daws.wire.messages import Submission, SubmissionTaken
from daws.wire.store import Committed

LONG = 10 * SECOND_NS
PATIENT = "daws:balance=none,patience=0.02"


def submit(node: Driver, *tasks: Ready) -> None:
    node.give(Submission(CLIENT, tasks[0].spec.id, tasks))
    node.expect(SubmissionTaken)


def planned(task: int, *inputs: Input, rank: int = LONG, **more: Any) -> Ready:
    return ready(task, *inputs, rank=rank, home=0, planned=True, **more)


def test_a_long_task_does_not_start_while_a_more_critical_one_is_about_to_have_its_inputs():
    with Driver(PATIENT, cores=1) as node:
        submit(node, planned(1, object_at(8, 1), rank=2 * LONG), planned(2))
        node.expect_fetch(8)
        assert not node.effects, "task 2 waits"
        node.give(fetched(8, 1), later_ns=1000)
        node.expect(StartRun, task=1)


def test_without_patience_it_starts():
    with Driver("daws:balance=none,patience=0", cores=1) as node:
        submit(node, planned(1, object_at(8, 1), rank=2 * LONG), planned(2))
        node.expect_fetch(8)
        node.expect(StartRun, task=2)


def test_nobody_waits_for_a_task_that_was_only_raised():
    with Driver(PATIENT, cores=1) as node:
        submit(node, planned(1, object_at(8, 1), rank=2 * LONG + RAISED), planned(2))
        node.expect_fetch(8)
        node.expect(StartRun, task=2)


def test_a_raised_task_waits_for_a_more_critical_one():
    with Driver(PATIENT, cores=1) as node:
        submit(node, planned(1, object_at(8, 1), rank=2 * LONG), planned(2, rank=LONG + RAISED))
        node.expect_fetch(8)
        assert node.timers[PATIENCE] == LONG // 50


def test_nobody_waits_longer_than_a_part_of_what_the_task_takes():
    with Driver(PATIENT, cores=1) as node:
        submit(node, planned(1, object_at(8, 1), rank=2 * LONG), planned(2))
        node.expect_fetch(8)
        assert node.timers[PATIENCE] == LONG // 50
        node.fire(PATIENCE)
        node.expect(StartRun, task=2)


def test_what_comes_later_than_that_is_not_waited_for():
    with Driver(PATIENT, cores=1) as node:
        size = int(node.core.net_bytes_per_s * 0.02 * LONG / 1e9)
        submit(node, planned(1, object_at(8, 1, size_bytes=2 * size), rank=2 * LONG), planned(2))
        node.expect_fetch(8)
        node.expect(StartRun, task=2)


def test_nor_what_is_less_critical():
    with Driver(PATIENT, cores=2) as node:
        submit(node, planned(1, object_at(8, 1), rank=LONG // 2), planned(2), planned(3))
        node.expect(StartRun, task=2)
        node.expect(StartRun, task=3)


def test_other_executors_are_used():
    with Driver(PATIENT, cores=2) as node:
        submit(node, planned(1, object_at(8, 1), rank=2 * LONG), planned(2), planned(3))
        node.expect_fetch(8)
        node.expect(StartRun, task=2)
        assert not node.effects, "one of two is kept"
        node.give(fetched(8, 1), later_ns=1000)
        node.expect(StartRun, task=1)


def test_what_follows_a_task_that_has_just_ended_is_waited_for():
    with Driver(PATIENT, cores=1) as node:
        node.give(ObjectsPut(((8, BIG),)))
        first = planned(1, object_at(8, 0), rank=3 * LONG)
        submit(node, first, planned(2, kind=1))
        node.give(RunEnded(1, node.expect(StartRun, task=1).run, COMMIT_NS), later_ns=COMMIT_NS)
        call = node.expect(CallStore)
        assert not node.effects, "task 2 waits for what follows"
        node.answer(call, Committed(-1, ready=(planned(3, rank=2 * LONG),)))
        node.expect(StartRun, task=3)


def test_if_nothing_follows_here_nobody_waits_on():
    with Driver(PATIENT, cores=1) as node:
        node.give(ObjectsPut(((8, BIG),)))
        submit(node, planned(1, object_at(8, 0), rank=3 * LONG), planned(2, kind=1))
        node.give(RunEnded(1, node.expect(StartRun, task=1).run, COMMIT_NS), later_ns=COMMIT_NS)
        node.answer(node.expect(CallStore), Committed(-1))
        node.expect(StartRun, task=2)
        node.drop(CallStore)


def test_what_was_fetched_runs_in_the_order_of_all_others():
    with Driver(PATIENT, cores=1) as node:
        submit(node, planned(1, object_at(8, 1), rank=4 * LONG))
        node.expect_fetch(8)
        node.give(fetched(8, 1))
        run = node.expect(StartRun, task=1)
        submit(node, planned(2, object_at(12, 1)), planned(3, object_at(13, 1), rank=2 * LONG))
        node.expect_fetch(13)
        node.expect_fetch(12)
        for object_ in (12, 13):
            node.give(fetched(object_, 1))
        submit(node, planned(4, rank=3 * LONG, kind=1))
        assert [one.spec.id for one in node.core.fetching.staged or ()] == [2, 3]
        for task, after in ((1, 4), (4, 3), (3, 2)):
            node.give(RunEnded(task, run.run, LONG), later_ns=1000)
            for call in [one for one in node.effects if isinstance(one, CallStore)]:
                node.effects.remove(call)
                node.answer(call, *[Committed(-1) for _ in call.rows])
            run = node.expect(StartRun, task=after)


def test_a_timer_that_is_early_is_set_again():
    with Driver(PATIENT, cores=1) as node:
        submit(node, planned(1, object_at(8, 1), rank=2 * LONG), planned(2))
        node.expect_fetch(8)
        due_ns = node.timers.pop(PATIENCE)
        node.give(TimerFired(PATIENCE), later_ns=due_ns - 300_000)
        assert not node.effects and node.timers[PATIENCE] == due_ns
        node.fire(PATIENCE)
        node.expect(StartRun, task=2)


def test_who_has_waited_before_waits_again():
    with Driver(PATIENT, cores=1) as node:
        node.give(ObjectsPut(((8, BIG), (9, BIG))))
        submit(node, planned(1, object_at(8, 0), rank=4 * LONG), planned(2, kind=1))
        node.give(RunEnded(1, node.expect(StartRun, task=1).run, COMMIT_NS), later_ns=COMMIT_NS)
        call = node.expect(CallStore)
        node.answer(call, Committed(-1, ready=(planned(3, object_at(9, 0), rank=3 * LONG),)))
        run = node.expect(StartRun, task=3)
        node.give(RunEnded(3, run.run, LONG), later_ns=LONG)
        node.expect(CallStore)
        assert not node.effects, "task 2 waits for what follows this one as well"
