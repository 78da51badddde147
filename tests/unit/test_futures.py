"""A cluster behind the interface of concurrent.futures."""

import asyncio
import concurrent.futures
import concurrent.futures.process
import itertools
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daws.client.cluster import Cluster
from daws.futures import Executor
from daws.model.errors import TaskKilledError, UnpicklableError, UsageError


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with Executor(2) as one:
        yield one


def add(*numbers: int) -> int:
    return sum(numbers)


def test_no_thread_is_kept_after_the_end():
    before = set(threading._dangling)  # type: ignore[attr-defined]  # those that anybody still knows, dead or alive
    one = Executor(1)
    assert one.submit(add, 1).result() == 1
    one.shutdown()
    assert [thread for thread in threading._dangling if thread not in before] == []  # type: ignore[attr-defined]


def test_its_futures_are_those_of_the_standard_library(executor: Executor):
    future = executor.submit(add, 1, 2)
    assert isinstance(future, concurrent.futures.Future)
    assert future.result() == 3
    futures = [executor.submit(add, number) for number in range(10)]
    done, not_done = concurrent.futures.wait(futures, timeout=60)
    assert done == set(futures) and not not_done
    assert sorted(one.result() for one in concurrent.futures.as_completed(futures)) == list(range(10))

    async def waits() -> int:
        return await asyncio.wrap_future(executor.submit(add, 4))

    assert asyncio.run(waits()) == 4


def test_map_takes_chunks_and_a_time_limit(executor: Executor):
    assert list(executor.map(add, range(10), range(10), chunksize=3)) == list(range(0, 20, 2))
    with pytest.raises(concurrent.futures.TimeoutError):
        list(executor.map(time.sleep, [1000], timeout=0.01))


def test_what_runs_can_be_cancelled(executor: Executor):
    sleeper = executor.submit(time.sleep, 1000)
    assert sleeper.cancel() and sleeper.cancelled()
    with pytest.raises(concurrent.futures.CancelledError):
        sleeper.result(60)
    concurrent.futures.wait([sleeper], timeout=60)
    assert executor.submit(add, 1).result(60) == 1


def test_arguments_that_cannot_travel_are_an_error_of_their_future(executor: Executor):
    future: Any = executor.submit(list, (one for one in range(3)))
    with pytest.raises(UnpicklableError, match="argument 1"):
        future.result(60)


def test_a_worker_that_dies_breaks_nothing_else(executor: Executor):
    assert isinstance(executor.submit(os._exit, 3).exception(60), TaskKilledError)
    assert executor.submit(add, 1).result(60) == 1


def test_results_outlive_the_workers():
    with Executor(1) as one:
        big, bad = one.submit(np.arange, 100_000), one.submit(divmod, 1, 0)
    assert big.result().sum() == 4999950000
    assert isinstance(bad.exception(), ZeroDivisionError)
    with pytest.raises(RuntimeError, match="after shutdown"):
        one.submit(add)
    assert "shut down" in repr(one)


def test_an_executor_that_nobody_has_any_more_finishes_its_work():
    one = Executor(1)
    future = one.submit(add, 1, 2)
    ender = one.shutdown
    del one, ender
    assert future.result(60) == 3


def test_waiting_can_be_asked_for_later():
    one = Executor(1)
    future = one.submit(time.sleep, 0.05)
    one.shutdown(wait=False)
    one.shutdown(wait=True)
    assert future.done()


def test_a_cluster_that_is_there_already_stays_open():
    with Cluster(1) as cluster:
        with Executor(cluster=cluster) as one:
            assert one.submit(add, 1).result() == 1
        assert cluster.submit(add, 2).result() == 2
        with pytest.raises(UsageError, match="has its workers already"):
            Executor(2, cluster=cluster)


def test_an_executor_whose_cluster_was_closed_is_broken():
    with Cluster(1) as cluster:
        one = Executor(cluster=cluster)
        sleeper = one.submit(time.sleep, 1000)
        cluster.close(cancel=True)
    with pytest.raises(concurrent.futures.CancelledError):
        sleeper.result(60)
    with pytest.raises(concurrent.futures.BrokenExecutor, match="closed"):
        one.submit(add)
    one.shutdown(cancel_futures=True)


HEAD = """
import atexit, time

@atexit.register
def last():
    if "late" in globals():
        try:
            late.submit(int)
        except RuntimeError as error:
            print(error)

from daws.futures import Executor

def slow_print(text):
    time.sleep(0.2)
    print(text)

"""
ENDS = {
    "Executor(2).submit(slow_print, 'apple')": "apple\n",
    "one = Executor(2); one.submit(slow_print, 'apple'); one.shutdown(wait=False)": "apple\n",
    "late = Executor(1); late.submit(int).result()": "cannot schedule new futures after shutdown\n",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_ends_waits_for_its_tasks(end: str, tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(HEAD + end)
    out = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert (out.stdout, out.stderr) == (ENDS[end], "")


def test_programs_change_one_import():
    from daws.futures import FIRST_COMPLETED, ProcessPoolExecutor, as_completed, wait

    with ProcessPoolExecutor(1) as one:
        futures = [one.submit(add, number) for number in range(3)]
        assert sorted(future.result() for future in as_completed(futures)) == [0, 1, 2]
        assert wait(futures, return_when=FIRST_COMPLETED).done


def test_what_else_programs_import_is_that_of_python():
    from daws import futures

    assert futures.Future is concurrent.futures.Future and futures.TimeoutError is TimeoutError
    assert futures.ThreadPoolExecutor is concurrent.futures.ThreadPoolExecutor
    assert futures.BrokenProcessPool is concurrent.futures.process.BrokenProcessPool
    with pytest.raises(ImportError, match=r"did you mean daws\.futures\.as_completed\?"):
        from daws.futures import as_complete  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(AttributeError, match=r"daws\.futures\.Executor\(\)"):
        _ = futures.InterpreterPoolExecutor  # type: ignore[attr-defined]
    assert not hasattr(futures, "colour")


def test_a_worker_that_dies_is_a_broken_pool_to_programs_that_know_one(executor: Executor):
    with pytest.raises(concurrent.futures.process.BrokenProcessPool, match="exited with code 3"):
        executor.submit(os._exit, 3).result(60)


def test_workers_that_cannot_begin_are_an_error_of_the_first_future():
    with Executor(1, initializer=divmod, initargs=(1, 0)) as one:
        first = one.submit(add, 1)
        with pytest.raises(concurrent.futures.process.BrokenProcessPool, match="ZeroDivisionError"):
            first.result(60)
        with pytest.raises(concurrent.futures.process.BrokenProcessPool, match="ZeroDivisionError"):
            one.submit(add, 1)


def test_futures_run_are_arguments_and_do_not_tell_of_values_they_do_not_have(executor: Executor):
    sleeper = executor.submit(time.sleep, 1000)
    until = time.monotonic() + 60
    while not sleeper.running() and time.monotonic() < until:
        time.sleep(0.01)
    assert sleeper.running() and sleeper.cancel() and not sleeper.running()
    one = executor.submit(add, 1)
    assert executor.submit(add, one, 2).result(60) == 3
    assert "state=finished>" in repr(one)
    with pytest.raises(UnpicklableError, match=r"daws\.current\(\)"):
        executor.submit(repr, executor).result(60)


def test_terminating_workers_cancels_what_runs():
    one = Executor(1)
    futures = [one.submit(time.sleep, 1000) for _ in range(3)]
    one.terminate_workers()
    assert all(future.cancelled() for future in futures)


def test_options_of_other_executors():
    with Executor(max_workers=1, mp_context=multiprocessing.get_context("spawn"), thread_name_prefix="x") as one:
        assert one.submit(add, 1).result() == 1
    for name, cure in (
        ("max_tasks_per_child", "cluster.run"),
        ("n_jobs", "max_workers="),
        ("max_worker", "max_workers="),
    ):
        with pytest.raises(UsageError, match=cure):
            Executor(**{name: 2})  # type: ignore[arg-type]


@pytest.mark.parametrize("chunksize", [1, 3])
def test_a_map_with_a_buffer_reads_on_as_results_are_taken(chunksize: int):
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for number in itertools.count():
            read.append(number)
            yield number

    with Executor(1) as one:
        results = one.map(abs, numbers(), buffersize=4, chunksize=chunksize)
        assert len(read) == 4 * chunksize
        assert [next(results) for _ in range(10)] == [*range(10)]
        assert len(read) <= 14 + 4 * chunksize
        assert list(one.map(abs, [-1, -2], buffersize=5, chunksize=chunksize)) == [1, 2]
        with pytest.raises(ValueError):
            one.map(abs, [1], buffersize=0)
        with pytest.raises(TypeError):
            one.map(abs, [1], buffersize=1.5)  # type: ignore[arg-type]
