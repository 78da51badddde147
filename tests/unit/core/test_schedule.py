"""Executors: what runs where, what is sent ahead, what is suspended, and what is called off."""

from random import Random

import pytest

from daws.core import schedule
from daws.core.effects import POLL, RECALL, CallStore, RecallRun, ResumeRun, StartRun, StopRun
from daws.core.events import ObjectsPut, RunEnded, RunRecalled, RunWaits, StoreAnswered
from daws.core.lengths import KINDS_MAX, learn_length
from daws.core.node import SECOND_NS, NodeConfig
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.context import parse_context
from daws.model.task import CLIENT, Input, Ready, TaskSpec
from daws.testing import Driver, ready
from daws.testing.build import BIG, object_at
from daws.wire.messages import StealRequest, StopDone, StopOrder, Submission, SubmissionTaken
from daws.wire.store import ANNOUNCE, OK, RETRY, Claim, Committed, Finish, Granted, Open, Resume, Suspend

SHORT_NS = 1_000


def submit(node: Driver, *tasks: Ready) -> None:
    node.give(Submission(CLIENT, node.core.executors.token, tasks))
    node.expect(SubmissionTaken, to=CLIENT)


def end(node: Driver, run: StartRun, duration_ns: int = 50_000_000, error: str = "", retry: bool = False) -> None:
    node.give(
        RunEnded(run.ready.spec.id, run.run, duration_ns, tuple(10 for _ in run.ready.spec.outputs), error, retry)
    )


def finished(node: Driver, task: int) -> None:
    call = node.expect(CallStore)
    assert [type(row) for row in call.rows] == [Finish] and call.rows[0].task == task  # type: ignore[union-attr]
    node.answer(call, None)


def run_short(node: Driver, *tasks: int) -> None:
    """Tasks that are over at once: so many may wait at an executor from now on."""
    for task in tasks:
        submit(node, ready(task))
        end(node, node.expect(StartRun, task=task), SHORT_NS)
        finished(node, task)


def test_tasks_start_in_order_on_free_executors():
    with Driver(cores=2) as node:
        submit(node, ready(1), ready(2), ready(3))
        first, second = node.expect(StartRun, task=1), node.expect(StartRun, task=2)
        assert {first.slot, second.slot} == {0, 1}
        end(node, second)
        assert node.expect(StartRun, task=3).slot == second.slot
        finished(node, 2)


def test_a_task_that_takes_any_executor_goes_by_its_priority():
    with Driver(cores=1) as node:
        submit(node, ready(1))
        first = node.expect(StartRun, task=1)
        submit(node, ready(2), ready(3, context="any|gpu", priority=1))
        end(node, first)
        node.expect(StartRun, task=3)
        finished(node, 1)


def test_what_was_seen_lately_starts_anew_with_each_look():
    with Driver("daws:adapt=matrix,period=2", cores=1) as node:
        submit(node, *[ready(task) for task in range(5)])
        for task, took_ns in enumerate((10, 20, 40, 60)):
            if task == 3:
                assert (node.core.lately.done_count, node.core.lately.run_ns) == (1, 40)
            end(node, node.expect(StartRun, task=task), took_ns)
        assert node.core.lately.done_count == 0
        node.drop(CallStore)
        node.expect(StartRun, task=4)


def test_kinds_of_sessions_that_were_long_ago_are_forgotten():
    node = Driver("mlb")
    for kind in range(3 * KINDS_MAX):
        learn_length(node.core, kind, 1_000_000)
    assert len(node.core.lengths.kinds) <= KINDS_MAX
    assert 3 * KINDS_MAX - 1 in node.core.lengths.kinds


def test_a_batch_is_taken_once_and_acknowledged_always():
    with Driver() as node:
        batch = Submission(CLIENT, 7, (ready(1),))
        node.give(batch)
        node.expect(StartRun, task=1)
        node.give(batch)
        node.expect(SubmissionTaken, batch=7)
        node.expect(SubmissionTaken, batch=7)


def test_a_finished_run_is_committed():
    with Driver() as node:
        submit(node, ready(1, makes=[5]))
        run = node.expect(StartRun)
        node.give(RunEnded(1, run.run, 10_000_000, (10,)))
        call = node.expect_rows(Finish(1, 0, 0, (Input(5, 10, 1, (0,), b""),)))
        node.answer(call, Committed(-1))


def test_the_end_of_an_unknown_run_changes_nothing():
    with Driver() as node:
        submit(node, ready(1))
        run = node.expect(StartRun)
        node.give(RunEnded(1, run.run + 1, 10))
        node.give(RunEnded(2, run.run, 10))
        assert 1 in node.core.executors.running


def test_answers_that_come_twice_or_late_are_dropped():
    with Driver() as node:
        submit(node, ready(1))
        end(node, node.expect(StartRun))
        call = node.expect(CallStore)
        node.answer(call, None)
        node.answer(call, Committed(-1, (9,)))
        node.give(StoreAnswered(12345, [OK]))


def test_a_failed_run_is_reported_for_good_or_tried_again():
    with Driver() as node:
        submit(node, ready(1), ready(2))
        end(node, node.expect(StartRun, task=1), error="bad")
        node.answer(node.expect_rows(Finish(1, 0, 0, (), "bad")), OK)
        end(node, node.expect(StartRun, task=2), error="worker died", retry=True)
        call = node.expect_rows(Claim(2, 0, 0, 0, RETRY))
        node.answer(call, Granted(1, 1))
        assert node.expect(StartRun, task=2).ready.attempt == 1


def test_what_a_run_raised_goes_with_its_failure_for_good():
    with Driver() as node:
        submit(node, Ready(TaskSpec(1, retries=1), 0, 0))
        run = node.expect(StartRun)
        node.give(RunEnded(1, run.run, 0, error="bad", failure=b"first"))
        node.answer(node.expect_rows(Claim(1, 0, 0, 0, RETRY)), Granted(1, 1))
        run = node.expect(StartRun)
        node.give(RunEnded(1, run.run, 0, error="bad", failure=b"second"))
        node.answer(node.expect_rows(Finish(1, 1, 0, (), "bad", b"second")), OK)


def test_past_half_of_the_lease_nothing_new_starts():
    with Driver() as node:
        node.now_ns = 4 * SECOND_NS
        submit(node, ready(1))


def test_a_wide_task_keeps_executors_until_there_are_enough():
    with Driver(cores=3) as node:
        submit(node, ready(1), ready(2), ready(3))
        runs = [node.expect(StartRun, task=task) for task in (1, 2, 3)]
        submit(node, ready(4, cores=2), ready(5))
        end(node, runs[0])
        finished(node, 1)
        end(node, runs[1])
        wide = node.expect(StartRun, task=4)
        finished(node, 2)
        assert node.core.idle_count == 0
        end(node, wide)
        node.expect(StartRun, task=5)
        finished(node, 4)
        assert node.core.idle_count == 1


def test_executors_of_several_contexts():
    info = NodeInfo(0, (ExecutorClass(1, parse_context("gpu")), ExecutorClass(1)))
    with Driver("constellation", members=Members(1, (info,))) as node:
        submit(node, ready(1, context="gpu"), ready(2, context="gpu"), ready(3))
        assert node.expect(StartRun, task=1).slot == 0
        run = node.expect(StartRun, task=3)
        assert run.slot == 1
        end(node, run)
        finished(node, 3)


def test_idle_executors_of_one_sort_look_for_work_behind_a_queue_for_another():
    info = NodeInfo(0, (ExecutorClass(1, parse_context("gpu")), ExecutorClass(1)))
    members = Members(1, (info, NodeInfo(1, info.executors)))
    with Driver("constellation", members=members) as node:
        submit(node, ready(1, context="gpu"), ready(2, context="gpu"))
        node.expect(StartRun, task=1)
        node.fire(POLL)
        assert node.expect(StealRequest, to=1).contexts == (None,), "the second task waits for the gpu"


def test_a_wide_queue_of_one_sort_is_no_reason_to_look_for_more():
    with Driver("constellation", cores=1) as node:
        submit(node, ready(1), ready(2))
        node.expect(StartRun, task=1)
        node.fire(POLL)  # and nothing is asked for: see the end of the block


def test_short_tasks_are_sent_ahead():
    with Driver(cores=1) as node:
        run_short(node, 11, 12, 13)
        submit(node, *(ready(task) for task in range(2, 6)))
        assert [node.expect(StartRun).slot for _ in range(4)] == [0] * 4
        assert node.core.executors.ahead == 3


@pytest.mark.parametrize("order", ["data-size", "submission"])
def test_one_task_that_was_short_by_chance_has_few_sent_ahead(order: str):
    with Driver(f"flds:order={order}", cores=2) as node:
        run_short(node, 1)
        submit(node, *(ready(task, priority=task) for task in range(100, 200)))
        runs = [node.expect(StartRun) for _ in range(4)]
        node.nothing_left()
        assert sorted(run.slot for run in runs) == [0, 0, 1, 1], "one behind each that runs, the others may be stolen"
        end(node, runs[0], 50_000_000)
        node.drop(CallStore)
        assert node.core.executors.ahead == 1, "now they are known to be long"


def test_nothing_is_sent_ahead_of_which_the_length_is_not_known():
    with Driver(cores=1) as node:
        submit(node, ready(1))
        end(node, node.expect(StartRun), SHORT_NS)
        finished(node, 1)
        submit(node, ready(2, kind=7), ready(3, kind=7))
        node.expect(StartRun, task=2)


def test_nothing_is_sent_ahead_behind_what_may_take_long():
    with Driver(cores=2) as node:
        run_short(node, 11, 12)
        submit(node, ready(2, kind=7))
        unknown = node.expect(StartRun, task=2)
        submit(node, *(ready(task) for task in range(3, 7)))
        assert all(node.expect(StartRun).slot != unknown.slot for _ in range(4))


def test_who_has_nothing_to_do_gets_what_waits_behind_others():
    with Driver(cores=2) as node:
        run_short(node, 11, 12, 13)
        submit(node, *(ready(task) for task in range(2, 10)))
        runs = [node.expect(StartRun) for _ in range(8)]
        slow = [run for run in runs if run.slot == 0]
        for run in runs:
            if run.slot == 1:
                end(node, run, SHORT_NS)
                finished(node, run.ready.spec.id)
        recalled = [node.expect(RecallRun), node.expect(RecallRun)]
        assert [one.run for one in recalled] == [run.run for run in slow[2:]], "half of them, the last ones"
        node.give(*(RunRecalled(one.task, one.run) for one in recalled))
        for _ in range(2):
            run = node.expect(StartRun)
            assert run.slot == 1
            end(node, run, SHORT_NS)
            finished(node, run.ready.spec.id)
        node.expect(RecallRun)  # and so on


@pytest.mark.parametrize("attempt, retries, again", [(0, 0, False), (0, 1, True), (4, 5, True), (5, 5, False)])
def test_tries_have_a_limit(attempt: int, retries: int, again: bool):
    with Driver() as node:
        submit(node, ready(1, attempt=attempt, retries=retries))
        end(node, node.expect(StartRun), error="bad")
        (row,) = node.expect(CallStore).rows
        assert isinstance(row, Claim) == again


@pytest.mark.parametrize("attempt, again", [(0, True), (2, True), (3, False)])
def test_crashes_are_forgiven_three_times(attempt: int, again: bool):
    with Driver() as node:
        submit(node, ready(1, attempt=attempt))
        end(node, node.expect(StartRun), error="its worker died", retry=True)
        (row,) = node.expect(CallStore).rows
        assert isinstance(row, Claim) == again


def test_long_tasks_are_sent_one_at_a_time():
    with Driver(cores=1) as node:
        submit(node, ready(1))
        end(node, node.expect(StartRun), 50_000_000)
        finished(node, 1)
        submit(node, ready(2), ready(3))
        node.expect(StartRun, task=2)


def suspended(node: Driver) -> StartRun:
    """Task 1 runs, tasks 2 and 3 were sent ahead behind it; then it waits for task 9."""
    run_short(node, 11, 12)
    submit(node, ready(1), ready(2), ready(3))
    run = node.expect(StartRun, task=1)
    others = [node.expect(StartRun, task=task) for task in (2, 3)]
    node.give(RunWaits(1, run.run, (9,)))
    for other in others:
        node.expect(RecallRun, task=other.ready.spec.id)
        node.give(RunRecalled(other.ready.spec.id, other.run))
    return run


def test_what_was_sent_ahead_behind_a_suspended_run_comes_back():
    with Driver(cores=1) as node:
        suspended(node)
        node.expect(CallStore)
        assert node.expect(StartRun).slot == 0
        assert node.core.executors.running[1].suspended


def test_a_recall_that_is_too_late_ends_in_an_end():
    with Driver(cores=1) as node:
        submit(node, ready(0))
        end(node, node.expect(StartRun), SHORT_NS)
        finished(node, 0)
        submit(node, ready(1), ready(2))
        run, ahead = node.expect(StartRun, task=1), node.expect(StartRun, task=2)
        node.give(RunWaits(1, run.run, ()))
        node.expect(RecallRun, task=2)
        node.expect(CallStore)
        end(node, ahead, SHORT_NS)
        node.give(RunRecalled(2, ahead.run))
        finished(node, 2)
        assert node.core.idle_count == 1


def test_a_suspended_run_goes_on_before_all_others():
    with Driver(cores=1) as node:
        submit(node, ready(1), ready(2), ready(3))
        run = node.expect(StartRun, task=1)
        node.give(RunWaits(1, run.run, ()))
        other = node.expect(StartRun, task=2)
        call = node.expect_rows(Suspend(1, 0, 0))
        node.answer(call, OK)
        node.answer(node.expect_rows(Open(1, 0, True)), Resume(0))
        end(node, other)
        assert node.expect(ResumeRun, task=1).slot == 0
        finished(node, 2)
        end(node, run)
        node.expect(StartRun, task=3)
        finished(node, 1)


@pytest.mark.parametrize("attempt, stopped", [(0, True), (1, True), (-1, False)])
def test_a_run_that_was_called_off_is_killed(attempt: int, stopped: bool):
    with Driver(cores=1) as node:
        submit(node, ready(1))
        run = node.expect(StartRun)
        node.give(StopOrder(2, 1, 77, attempt))
        node.expect(StopDone, to=2, key=77)
        if stopped:
            assert node.expect(StopRun, task=1).run == run.run
        assert node.core.idle_count == stopped


def test_a_task_that_was_called_off_in_a_queue_never_starts():
    with Driver(cores=1) as node:
        submit(node, ready(1), ready(2), ready(3))
        run = node.expect(StartRun, task=1)
        node.give(StopOrder(2, 2, -1, 0))
        end(node, run)
        node.expect(StartRun, task=3)
        finished(node, 1)


def test_a_newer_attempt_of_a_task_that_was_called_off_does_start():
    with Driver(cores=1) as node:
        submit(node, ready(1), ready(2, attempt=1))
        run = node.expect(StartRun, task=1)
        node.give(StopOrder(2, 2, -1, 0))
        end(node, run)
        node.expect(StartRun, task=2)
        finished(node, 1)


def test_a_suspect_is_announced_before_it_runs():
    with Driver(cores=1) as node:
        submit(node, ready(1, attempt=1, move=3, mode=4))
        call = node.expect_rows(Claim(1, 0, 3, 0, ANNOUNCE))
        node.answer(call, Granted(4, 1, 4))
        assert node.expect(StartRun, task=1).ready.move == 4


def test_nothing_is_sent_ahead_behind_a_suspect():
    with Driver(cores=1) as node:
        submit(node, ready(0))
        end(node, node.expect(StartRun), SHORT_NS)
        finished(node, 0)
        submit(node, ready(1, mode=4))
        node.answer(node.expect(CallStore), Granted(1, 0, 4))
        node.expect(StartRun, task=1)
        submit(node, ready(2), ready(3))


@pytest.mark.parametrize(("took_ns", "ahead"), [(10_000_000, 2), (30_000_000, 0), (600_000, 13), (60_000, 16)])
def test_each_executor_has_its_next_task_at_hand_unless_tasks_are_long(took_ns: int, ahead: int):
    config = NodeConfig(lease_ns=8 * SECOND_NS, ahead_ns=4_000_000, next_ns=25_000_000)
    with Driver(cores=2, config=config) as node:
        submit(node, *[ready(task) for task in range(60)])
        for task in range(8):
            end(node, node.expect(StartRun, task=task), took_ns)
        node.drop(CallStore)
        assert node.core.executors.ahead == ahead
        assert len(node.core.executors.running) == 2 + node.core.executors.ahead
        node.drop(StartRun)


@pytest.mark.parametrize(("size_bytes", "ahead"), [(0, 16), (100_000, 16), (400_000, 4), (2_000_000, 2)])
def test_of_tasks_that_make_large_objects_few_wait_at_executors(size_bytes: int, ahead: int):
    config = NodeConfig(lease_ns=8 * SECOND_NS, ahead_ns=4_000_000, ahead_bytes=1_000_000)
    with Driver(cores=2, config=config) as node:
        submit(node, *[ready(task, makes=(100 + task,)) for task in range(60)])
        for task in range(8):
            run = node.expect(StartRun, task=task)
            node.give(RunEnded(task, run.run, SHORT_NS // 10, (size_bytes,)))
        node.drop(CallStore)
        assert node.core.executors.ahead == ahead
        node.drop(StartRun)


def test_what_goes_on_comes_before_what_begins_also_where_it_may_be_stolen():
    with Driver("daws:balance=none", cores=1) as node:
        submit(node, ready(1, makes=(100,)), ready(2), ready(3))
        run = node.expect(StartRun, task=1)
        node.give(RunEnded(1, run.run, SECOND_NS, (BIG,)))
        second = node.expect(StartRun, task=2)
        child = ready(9, Input(100, BIG, 1, (0,), b""))
        node.answer(node.expect(CallStore), Committed(-1, readers=(9,), ready=(child,)))
        assert node.core.queues.shared.count == 2, "it is quick to move"
        node.give(RunEnded(2, second.run, SECOND_NS))
        node.expect(StartRun, task=9)
        node.drop(CallStore)


def started(node: Driver) -> list[StartRun]:
    found = [effect for effect in node.effects if isinstance(effect, StartRun)]
    node.drop(StartRun)
    return found


def starts_of(seed: int) -> list[tuple[int, int]]:
    """Which task began where, with tasks that end in any order: most take 10 ms, some read, some are choosy."""
    rng = Random(seed)
    config = NodeConfig(lease_ns=8 * SECOND_NS, ahead_ns=4_000_000, next_ns=25_000_000)
    with Driver(members=1, cores=3, config=config) as node:
        node.give(ObjectsPut(((100, BIG),)))
        odd = [ready(50, object_at(100, 0)), ready(51, context="any|gpu"), ready(52, kind=1)]
        submit(node, *map(ready, range(30)), *rng.sample(odd, rng.randrange(4)), *map(ready, range(60, 80)))
        runs = started(node)
        found = [(run.ready.spec.id, run.slot) for run in runs]
        while runs:
            at_hand = {run.slot: run for run in reversed(runs)}  # of each executor the first that was sent
            ended = at_hand[rng.choice(sorted(at_hand))]
            runs.remove(ended)
            end(node, ended, rng.choice((8_000_000, 12_000_000)))
            new = started(node)
            runs += new
            found += [(run.ready.spec.id, run.slot) for run in new]
            node.drop(CallStore)
            node.drop(RecallRun)
    assert len({task for task, _ in found}) == len(found) >= 50
    return found


@pytest.mark.parametrize("seed", range(8))
def test_a_task_that_takes_the_place_of_another_is_the_one_that_a_scheduling_pass_would_send(
    seed: int, monkeypatch: pytest.MonkeyPatch
):
    short_way = starts_of(seed)
    monkeypatch.setattr(schedule, "follow", lambda core, run: False)
    assert starts_of(seed) == short_way


def test_no_scheduling_pass_is_needed_where_each_executor_has_its_next_task_at_hand(monkeypatch: pytest.MonkeyPatch):
    config = NodeConfig(lease_ns=8 * SECOND_NS, ahead_ns=4_000_000, next_ns=25_000_000)
    with Driver(cores=2, config=config) as node:
        submit(node, *[ready(task) for task in range(60)])
        for task in range(8):
            end(node, node.expect(StartRun, task=task), 10_000_000)
        runs = started(node)
        node.drop(CallStore)
        monkeypatch.setattr("daws.core.node.schedule", lambda core: pytest.fail("a scheduling pass"))
        end(node, runs[0], 10_000_000)
        assert node.expect(StartRun).slot == runs[0].slot
        node.drop(CallStore)


def test_what_waits_at_others_is_asked_back_when_an_executor_has_been_idle_for_a_while():
    config = NodeConfig(lease_ns=8 * SECOND_NS, recall_ns=1_000_000)
    with Driver(cores=2, config=config) as node:
        submit(node, *[ready(task) for task in range(8)])
        for task in range(2):
            end(node, node.expect(StartRun, task=task), SHORT_NS)
        runs = [node.expect(StartRun, task=task) for task in range(2, 8)]
        idle = [run for run in runs if run.slot != runs[0].slot]
        for run in idle:
            end(node, run, SHORT_NS)
        assert len(node.core.executors.plain_free) == 1 and not node.drop(RecallRun)
        node.fire(RECALL)
        assert node.drop(RecallRun)
        assert not node.core.executors.recall_armed
        node.drop(CallStore)


@pytest.mark.parametrize(("strategy", "order"), [("daws", [4, 3, 2, 1]), ("mdl:order=critical-path", [3, 1, 4, 2])])
def test_what_is_dedicated_comes_first_unless_the_order_counts_across(strategy: str, order: list[int]):
    def read_by(task: int) -> tuple[Input, ...]:
        return (object_at(100 + task, 0),) if task % 2 else ()  # what reads data is dedicated, the others are shared

    with Driver(strategy, cores=1) as node:
        node.give(ObjectsPut(tuple((100 + task, BIG) for task in range(5))))
        submit(node, ready(9))
        submit(node, *[ready(task, *read_by(task), rank=task, home=0, planned=True) for task in range(1, 5)])
        run = node.expect(StartRun, task=9)
        for task in order:
            end(node, run)
            run = node.expect(StartRun, task=task)
        node.drop(CallStore)
