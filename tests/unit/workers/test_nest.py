"""Runs that create tasks and wait for them, as the pool sees it. The node is played by the test."""

import os
import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import monotonic_ns
from typing import Any

import pytest

from daws.data.tags import pickle_in, root_of, split
from daws.model.session import FIRST_BROUGHT_ID
from daws.wire.worker import (
    STOPPED,
    TIMEOUT,
    Asks,
    ChildEnd,
    Died,
    Ended,
    Raised,
    Recalled,
    RunOptions,
    Spawned,
    Taught,
    WaitReport,
)
from daws.workers.failures import exception_of
from daws.workers.threads import ThreadPool
from tests.unit.workers import jobs
from tests.unit.workers.crew import Crew

HOUR_NS = 3_600_000_000_000
NAP_NS = 20_000_000


@pytest.fixture(params=("processes", "threads"))
def crew(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Crew]:
    with Crew(tmp_path, kind=request.param, slots=1) as made:
        yield made


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Crew]:
    with Crew(tmp_path, slots=1) as made:
        yield made


def result(crew: Crew, run: int) -> Any:
    (report,) = crew.wait(run)
    assert isinstance(report, Ended), exception_of(report.error)
    assert isinstance(report.results[0], bytes)
    return pickle.loads(report.results[0])


def until_it_waits(crew: Crew, run: int, times: int = 1) -> WaitReport:
    def waits() -> list[WaitReport]:
        return [one for one in crew.nested if isinstance(one, WaitReport) and one.run == run]

    crew.until(lambda: len(waits()) >= times)
    return waits()[-1]


def end(crew: Crew, run: int, *numbers: int) -> None:
    crew.pool.resume(0, run, tuple([ChildEnd(number, (pickle.dumps(number * 10),)) for number in numbers]))


def test_a_run_that_waits_leaves_its_slot_to_others(crew: Crew):
    parent = crew.give(jobs.wait_for, 2)
    behind = crew.give(jobs.add, 1, 2)
    assert until_it_waits(crew, parent).on == (0,)
    assert result(crew, behind) == 3
    crew.pool.resume(0, parent, (ChildEnd(0, (pickle.dumps(5),)),))
    assert until_it_waits(crew, parent, 2).on == (1,)
    end(crew, parent, 1)
    assert result(crew, parent) == [5, 10]
    assert crew.call(jobs.add, 1) == 1


def test_what_was_told_before_needs_no_waiting(crew: Crew):
    parent = crew.give(jobs.wait_for, 3)
    until_it_waits(crew, parent)
    end(crew, parent, 0, 1, 2)
    assert result(crew, parent) == [0, 10, 20]


def test_a_run_that_goes_on_does_so_beside_others(crew: Crew):
    begun, may_end = crew.fifo("begun"), crew.fifo("may_end")
    parent = crew.give(jobs.wait_for, 1)
    until_it_waits(crew, parent)
    other = crew.give(jobs.await_word, begun, may_end)
    crew.hear(begun)
    end(crew, parent, 0)
    assert result(crew, parent) == [0], "though its slot is taken"
    Path(may_end).write_text("go on")  # returns when somebody reads
    assert result(crew, other) == "go on"


def test_asking_keeps_the_slot(crew: Crew):
    run = crew.give(jobs.ask)
    crew.until(lambda: Asks(run) in crew.nested)
    crew.pool.tell(0, run, ())
    crew.pool.flush()
    crew.until(lambda: crew.nested.count(Asks(run)) == 2)
    crew.pool.tell(0, run, (ChildEnd(0, (pickle.dumps(7),)),))
    assert result(crew, run) == [False, True, 7]


def test_functions_are_brought_in_once_and_by_content(crew: Crew):
    one, other = crew.give(jobs.wait_for, 1), crew.give(jobs.wait_for, 1)
    until_it_waits(crew, one)
    until_it_waits(crew, other)
    (taught,) = [report for report in crew.nested if isinstance(report, Taught)]
    assert taught.function >= FIRST_BROUGHT_ID and pickle.loads(pickle_in(split(taught.pickled)[1])) is jobs.add
    spawned = [report for report in crew.nested if isinstance(report, Spawned)]
    assert {seed.function for report in spawned for seed in report.tasks} == {taught.function}
    known = crew.give(jobs.submit_itself)
    crew.wait(known)
    (last,) = [report for report in crew.nested if isinstance(report, Spawned) and report.run == known]
    assert last.tasks[0].function == crew.orders[known][1].function, "it need not be pickled again"


def test_the_time_of_waiting_does_not_count(crew: Crew):
    began_ns = monotonic_ns()
    parent = crew.give(jobs.wait_for, 1, options=RunOptions(timeout_ns=HOUR_NS))
    waits = until_it_waits(crew, parent)
    assert not limited(crew, parent), "whatever its limit is"
    crew.call(jobs.nap_ns, NAP_NS)
    end(crew, parent, 0)
    (report,) = crew.wait(parent)
    assert isinstance(report, Ended)
    assert 0 < waits.used_ns <= report.duration_ns <= monotonic_ns() - began_ns - NAP_NS


def test_a_run_that_has_waited_still_has_a_time_limit(crew: Crew):
    begun, never = crew.fifo("begun"), crew.fifo("never")
    parent = crew.give(jobs.wait_then_await_word, begun, never, options=RunOptions(timeout_ns=HOUR_NS))
    until_it_waits(crew, parent)
    end(crew, parent, 0)
    crew.hear(begun)
    assert limited(crew, parent)
    (report,) = crew.wait(parent)
    assert isinstance(report, Died) and report.why == TIMEOUT
    crew.let_through(never)
    assert crew.call(jobs.add, 1) == 1


def limited(crew: Crew, run: int) -> bool:
    """Set the time limit of a run to nothing. Is it one whose time passes?"""
    if isinstance(crew.pool, ThreadPool):
        hand = crew.pool._strayed[run]
        hand.outstanding[run] = 1
        return not hand.waits_since_ns
    link = crew.pool._links[0]
    link.outstanding[run] = RunOptions(timeout_ns=1)
    return run in link.active


def test_a_run_that_waits_is_stopped_without_its_worker(crew: Crew, tmp_path: Path):
    pids = getattr(crew.pool, "pids", None)
    cleaned = tmp_path / "cleaned"
    one, other = crew.give(jobs.wait_and_clean, str(cleaned)), crew.give(jobs.wait_for, 1)
    until_it_waits(crew, one)
    until_it_waits(crew, other)
    crew.pool.kill(0, one)
    crew.wait(one)
    assert cleaned.exists() and isinstance(crew.reports[one], Raised)
    end(crew, other, 0)
    assert result(crew, other) == [0]
    assert getattr(crew.pool, "pids", None) == pids


def test_a_run_that_goes_on_is_stopped_with_its_worker(crew: Crew):
    begun, never = crew.fifo("begun"), crew.fifo("never")
    one = crew.give(jobs.wait_then_await_word, begun, never)
    until_it_waits(crew, one)
    end(crew, one, 0)
    crew.hear(begun)
    crew.pool.kill(0, one)
    (report,) = crew.wait(one)
    crew.let_through(never)
    assert isinstance(report, Died) and report.why == STOPPED
    assert crew.call(jobs.add, 1) == 1


def test_a_worker_dies_with_all_that_wait_in_it(processes: Crew):
    crew = processes
    waiting = [crew.give(jobs.wait_for, 1) for _ in range(3)]
    for run in waiting:
        until_it_waits(crew, run)
    killer, behind = crew.give(os._exit, 9), crew.give(jobs.add, 1)
    for report in crew.wait(*waiting, killer):
        assert isinstance(report, Died)
        assert (report.code, report.why, report.waited) == (9, "", report.run != killer)
    assert isinstance(crew.wait(behind)[0], Recalled), "it never began"
    end(crew, waiting[0], 0)  # too late, and nobody minds
    assert crew.call(jobs.add, 1) == 1


def test_who_is_ended_for_another_reason_may_try_again(processes: Crew):
    crew = processes
    waiting = crew.give(jobs.wait_for, 1)
    until_it_waits(crew, waiting)
    begun = crew.fifo()
    long = crew.give(jobs.hang, begun)
    crew.hear(begun)
    crew.pool.kill(0, long)
    died, stopped = crew.wait(waiting, long)
    assert (died.why, stopped.why) == ("", STOPPED)


def test_a_run_is_not_to_blame_for_the_end_of_another_that_came_late(processes: Crew, monkeypatch: pytest.MonkeyPatch):
    """A worker is killed by another process, which may take a while: it ends the run to be stopped, and begins one."""
    crew, ends = processes, list[Any]()
    begun, may_end, never = crew.fifo("begun"), crew.fifo("may_end"), crew.fifo("never")
    with monkeypatch.context() as patch:
        patch.setattr(crew.pool, "_kill", ends.append)
        stopped = crew.give(jobs.await_word, begun, may_end)
        crew.hear(begun)
        crew.pool.kill(0, stopped)
        crew.let_through(may_end)
        crew.wait(stopped)
        parent = crew.give(jobs.wait_then_await_word, begun, never)
        until_it_waits(crew, parent)
        end(crew, parent, 0)
        crew.hear(begun)
    crew.pool._kill(*ends)
    (report,) = crew.wait(parent)
    assert isinstance(report, Died) and (report.why, report.waited, report.under) == ("", True, stopped)


def test_hundreds_wait_in_one_worker(crew: Crew):
    runs = [crew.give(jobs.wait_for, 1) for _ in range(300)]
    for run in runs:
        until_it_waits(crew, run)
    for run in runs:
        end(crew, run, 0)
    assert [result(crew, run) for run in runs] == [[0]] * 300


def test_the_main_thread_is_taken_first(processes: Crew):
    crew = processes
    parent = crew.give(jobs.wait_for, 1)
    until_it_waits(crew, parent)
    assert not crew.call(jobs.is_main_thread)
    end(crew, parent, 0)
    crew.wait(parent)
    again = crew.give(jobs.wait_for, 1)
    until_it_waits(crew, again)
    assert crew.call(jobs.is_main_thread)


def test_a_worker_exits_in_good_order_from_whichever_thread(tmp_path: Path):
    left = tmp_path / "left"
    hook = pickle.dumps(partial(jobs.mark, str(left)))
    with Crew(tmp_path, slots=1, teardown=hook) as crew:
        parent = crew.give(jobs.wait_for, 1)
        until_it_waits(crew, parent)
        end(crew, parent, 0)
        crew.wait(parent)
    assert left.exists()


def test_a_forked_copy_cannot_submit(processes: Crew):
    assert "has forked" in processes.call(jobs.submit_in_a_fork)


def test_a_pool_closes_with_runs_that_wait(tmp_path: Path):
    for kind in ("processes", "threads"):
        with Crew(tmp_path / kind, slots=1, kind=kind) as crew:
            until_it_waits(crew, crew.give(jobs.wait_for, 1))
            crew.give(jobs.wait_for, 1)
        assert not crew.folder.exists()


def test_what_was_forgotten_is_brought_in_again(crew: Crew):
    def taught_by(run: int) -> list[Taught]:
        until_it_waits(crew, run)
        return [report for report in crew.nested if isinstance(report, Taught)]

    run = crew.give(jobs.wait_for, 1)
    (first,) = taught_by(run)
    assert root_of(first.function, first.pickled) == crew.orders[run][1].function
    crew.pool.forget((first.function,))
    assert [one.function for one in taught_by(crew.give(jobs.wait_for, 1))] == [first.function] * 2
