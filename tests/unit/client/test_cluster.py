"""A cluster on this machine with real worker processes, from the user's side."""

import asyncio
import itertools
import os
import pydoc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import daws
from daws.client.cancelled import TaskCancelledError
from daws.client.cluster import Cluster
from daws.client.future import Future
from daws.client.gathering import gather
from daws.client.lifetime import FORKED
from daws.client.waiting import as_completed, wait
from daws.model.errors import ClosedError, TaskKilledError, UnpicklableError, UsageError
from daws.strategy.presets import PRESETS
from daws.workers.errors import UnreadableError

FORMS: dict[str, dict[str, Any]] = {
    "thread": {},
    "process": {"node": "process"},
    "nodes": {"nodes": 4, "strategy": "daws:cache=none"},
}


@pytest.fixture(scope="module", params=FORMS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Wherever the nodes are, everything works alike."""
    with Cluster(2, **FORMS[request.param]) as one:  # without a cache nothing stays that nobody needs
        yield one


def add(*numbers: int) -> int:
    return sum(numbers)


def divide(one: int, other: int) -> float:
    return one / other


def test_a_function_runs_elsewhere(cluster: Cluster):
    assert cluster.submit(os.getpid).result() != os.getpid()
    assert cluster.submit(pow, 2, 10).result() == 1024
    assert cluster.submit(int, "ff", base=16).result() == 255


def test_lambdas_and_closures_travel(cluster: Cluster):
    base = 7
    assert cluster.submit(lambda x: x + base, 3).result() == 10


def test_functions_bring_the_arrays_that_they_use(cluster: Cluster):
    weights = np.arange(10_000)

    def weigh() -> tuple[int, bool]:
        return int(weights.sum()), weights.flags.writeable

    assert cluster.submit(weigh).result() == (49_995_000, True)
    assert list(cluster.map(lambda x: int(weights[x]), range(3))) == [0, 1, 2]


def test_a_new_function_is_known_before_its_first_task(cluster: Cluster):
    for number in range(200):  # in between, the engine wakes up at any moment
        cluster.submit(add)
        assert cluster.submit(eval(f"lambda: {number}")).done() in (True, False)
    assert cluster.submit(add, 1).result() == 1


def test_futures_as_arguments_build_the_graph(cluster: Cluster):
    one, two = cluster.submit(add, 1), cluster.submit(add, 2)
    three = cluster.submit(add, one, two)
    assert cluster.submit(add, three, one, three).result() == 7


@dataclass
class Pair:
    left: Any
    right: Any


def unpack(pair: Pair, more: dict[str, list[int]]) -> int:
    return int(pair.left + pair.right + sum(more["x"]))


def test_futures_are_found_anywhere_inside_arguments(cluster: Cluster):
    one = cluster.submit(add, 1)
    assert cluster.submit(unpack, Pair(one, 10), {"x": [one, one]}).result() == 13
    assert one.result() == 1
    assert cluster.submit(unpack, Pair(one, 10), {"x": [one, one]}).result() == 13, "also when it has ended"


def test_large_results_are_mapped_not_copied(cluster: Cluster):
    big = cluster.submit(np.arange, 1_000_000)
    total = cluster.submit(np.sum, big)
    assert int(total.result()) == 499999500000
    value = big.result()
    assert value.shape == (1_000_000,) and not value.flags.owndata
    assert big.result() is value


def objects_of(cluster: Cluster) -> list[Path]:
    folders = cluster._folders
    return [*(folders.memory or folders.scratch).glob("*/objects/*")]


def test_what_nobody_can_ask_for_any_more_is_gone(cluster: Cluster):
    futures = [cluster.submit(np.ones, 100_000) for _ in range(4)]
    assert gather(futures)[0].sum() == 100_000
    assert len(objects_of(cluster)) >= 4
    del futures
    assert files_left(cluster) == 0


def files_left(cluster: Cluster) -> int:
    """Object files that are there when everything that was let go of has gone."""
    deadline = time.monotonic() + 30
    while objects_of(cluster) and time.monotonic() < deadline:
        cluster.submit(add).result()  # what is let go of leaves with the next task
    return len(objects_of(cluster))


def test_an_object_is_put_in_once_and_read_by_many(cluster: Cluster):
    big, small = cluster.put(np.arange(100_000)), cluster.put({"x": 1})
    assert big.done() and small.done() and repr(big).endswith("done>")
    assert gather([cluster.submit(np.sum, big) for _ in range(5)]) == [4999950000] * 5
    assert cluster.submit(reads_without_a_copy, big).result()
    assert small.result() == {"x": 1}
    assert cluster.submit(dict.get, small, "x").result() == 1, "also when it was asked for here"


def reads_without_a_copy(array: Any) -> bool:
    return not array.flags.owndata and not array.flags.writeable


def test_what_was_put_in_goes_with_its_future_and_its_readers(cluster: Cluster, tmp_path: Any):
    big = cluster.put(np.ones(100_000))
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    reader = cluster.submit(sum_after, str(gate), big)
    del big
    cluster.submit(add).result()
    gate.write_text("go on")
    assert reader.result(60) == 100_000
    assert files_left(cluster) == 0


def sum_after(gate: str, array: Any) -> float:
    with open(gate) as file:
        file.read()
    return float(array.sum())


def test_what_cannot_be_put_in_says_so(cluster: Cluster):
    with pytest.raises(UsageError, match="the object"):
        cluster.put(one for one in range(3))


def test_a_run_over_its_time_limit_is_stopped(cluster: Cluster):
    slow = cluster.options(timeout=0.05).submit(time.sleep, 1000)
    error = slow.exception(60)
    assert isinstance(error, TaskKilledError) and f"task {slow.task}" in str(error)
    assert "0.05 s" in str(error) and "on node" in str(error)
    assert cluster.options(timeout=60).submit(add, 1).result() == 1


def test_exceptions_come_back_with_their_traceback(cluster: Cluster):
    future = cluster.submit(divide, 1, 0)
    with pytest.raises(ZeroDivisionError, match="division by zero") as caught:
        future.result()
    assert "in divide" in str(caught.value.__cause__)
    assert isinstance(future.exception(), ZeroDivisionError) and future.done() and not future.cancelled()


def test_what_needs_a_failed_task_fails_too_and_names_it(cluster: Cluster):
    bad = cluster.submit(divide, 1, 0)
    after = cluster.submit(add, cluster.submit(add, bad), 1)
    late = cluster.submit(add, bad)
    for one in (after, late):  # also when it had failed before
        error = one.exception(30)
        assert isinstance(error, ZeroDivisionError) and f"task {bad.task} (divide), which failed" in error.__notes__[0]


def test_unpicklable_arguments_are_refused_at_once(cluster: Cluster):
    with pytest.raises(Exception, match="argument 2"):
        cluster.submit(add, 1, (one for one in range(3)))


def test_unpicklable_results_are_errors_of_that_future_alone(cluster: Cluster):
    bad, good = cluster.submit(lambda: (one for one in range(3))), cluster.submit(add, 1)
    assert good.result() == 1
    assert "generator" in str(bad.exception(30))


def die(code: int) -> None:
    os._exit(code)


def test_a_worker_that_dies_is_replaced_and_the_task_named(cluster: Cluster):
    bad = cluster.submit(die, 3)
    good = [cluster.submit(add, number) for number in range(100)]
    error = bad.exception(60)
    assert isinstance(error, TaskKilledError) and f"task {bad.task}" in str(error) and "code 3" in str(error)
    assert gather(good) == list(range(100))


def kill_self_once(path: str) -> str:
    try:
        os.mkdir(path)
    except FileExistsError:
        return "alive"
    os.kill(os.getpid(), signal.SIGKILL)
    return "dead"


def test_a_task_whose_worker_was_killed_is_tried_again(cluster: Cluster, tmp_path: Any):
    assert cluster.submit(kill_self_once, str(tmp_path / "seen")).result(60) == "alive"


def raise_until(path: str, times: int) -> int:
    tries = len(os.listdir(path))
    open(os.path.join(path, str(tries)), "w").close()
    if tries < times:
        raise ValueError(tries)
    return tries


@pytest.mark.parametrize("retries, ok", [(1, False), (2, True)])
def test_retries(cluster: Cluster, tmp_path: Any, retries: int, ok: bool):
    future = cluster.options(retries=retries).submit(raise_until, str(tmp_path), 2)
    assert (future.exception(60) is None) == ok


def test_several_outputs(cluster: Cluster):
    one, two, three = cluster.options(outputs=3).submit(lambda: (1, np.ones(10_000), "three"))
    assert cluster.submit(add, one, 1).result() == 2
    assert cluster.submit(np.sum, two).result() == 10_000
    assert three.result() == "three"


def test_a_running_task_can_be_cancelled(cluster: Cluster):
    sleeper = cluster.submit(time.sleep, 1000)
    after = cluster.submit(add, sleeper)
    sleeper.cancel()
    for one in (sleeper, after):
        with pytest.raises(TaskCancelledError, match=rf"^task {one.task} was cancelled, or one that it needs was$"):
            one.result(60)
    assert sleeper.cancelled() and after.cancelled()
    assert gather([cluster.submit(add, number) for number in range(10)]) == list(range(10))


def test_waiting_has_a_limit(cluster: Cluster):
    sleeper = cluster.submit(time.sleep, 1000)
    with pytest.raises(TimeoutError, match=r"0\.01 s"):
        sleeper.result(0.01)
    cluster.cancel(sleeper)
    sleeper.exception(60)


def test_many_are_waited_for_in_the_order_of_their_ends(cluster: Cluster):
    futures = [cluster.submit(add, number) for number in range(50)]
    assert sorted(future.result() for future in as_completed(futures, 60)) == list(range(50))
    done, not_done = wait(futures, 60)
    assert done == set(futures) and not not_done


def test_the_first_is_enough_if_so_wanted(cluster: Cluster):
    slow, quick = cluster.submit(time.sleep, 1000), cluster.submit(add, 1)
    done, not_done = wait([slow, quick], 60, "first")
    assert done == {quick} and not_done == {slow}
    slow.cancel()
    slow.exception(60)


class Named(NamedTuple):
    one: Any
    others: Any


def test_gather_keeps_the_shape(cluster: Cluster):
    shape = {"a": [cluster.submit(add, 1), 5], "b": (cluster.submit(add, 2),)}
    assert cluster.gather(shape) == {"a": [1, 5], "b": (2,)}
    mixed = [cluster.submit(add, 1), cluster.submit(divide, 1, 0)]
    assert cluster.gather(mixed, errors="skip") == [1]
    assert isinstance(cluster.gather(mixed, errors="return")[1], ZeroDivisionError)
    named = Named(cluster.submit(add, 1), [mixed[0]])
    assert cluster.gather(named) == Named(1, [1]) and type(cluster.gather(named)) is Named
    assert cluster.gather(Named(*mixed), errors="skip") == (1,)
    with pytest.raises(UsageError, match="errors='ignore'"):
        cluster.gather(mixed, errors="ignore")  # type: ignore[arg-type]


def test_map_keeps_the_order_and_spoils_nothing(cluster: Cluster):
    results = cluster.map(divide, range(1000), [1] * 999 + [0])
    assert len(results) == 1000 and results[:3] == [0.0, 1.0, 2.0] and results[-2] == 998.0
    with pytest.raises(ZeroDivisionError):
        results[-1]
    assert list(cluster.map(add, range(10), chunk=3)) == list(range(10))
    assert list(cluster.map(add, [])) == []


class Unreadable:
    """Can be pickled, not unpickled: a class with a constructor of its own, or of a module that is not here."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __reduce__(self) -> tuple[type[int], tuple[str]]:
        return int, ("x" * self.size,)


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_result_that_cannot_be_read_is_an_error_of_its_future_alone(cluster: Cluster, size: int):
    bad, good = cluster.submit(Unreadable, size), cluster.submit(abs, -1)
    for _ in range(2):
        with pytest.raises(UnreadableError, match=rf"^task {bad.task}: its result cannot be loaded here: ValueError"):
            bad.result(60)
    found, one = cluster.gather([bad, good], errors="return")
    assert isinstance(found, UnreadableError) and one == 1
    assert cluster.gather({"bad": bad, "good": good}, errors="skip") == {"good": 1}
    with pytest.raises(UnreadableError):
        cluster.gather([bad, good])


def returns_its_cluster() -> object:
    return daws.current()


def test_a_cluster_is_not_sent_to_its_tasks(cluster: Cluster):
    what = r"daws\.client\.cluster\.Cluster.*: a cluster cannot be sent to tasks; inside of one, daws\.current\(\) is "
    with pytest.raises(UnpicklableError, match=rf"^argument 1 .*{what}the cluster it runs in$"):
        cluster.submit(len, [cluster])
    with pytest.raises(UnpicklableError, match=rf"^the function .*{what}"):
        cluster.submit(lambda: cluster)
    with pytest.raises(UnpicklableError, match="InnerCluster: a cluster cannot be sent to tasks"):
        cluster.submit(returns_its_cluster).result(60)


def test_map_says_what_is_not_iterable(cluster: Cluster):
    with pytest.raises(UsageError, match="map: 5 cannot be iterated over"):
        cluster.map(pow, [1], 5)  # type: ignore[call-overload]


def test_gather_takes_dataclasses_and_generators(cluster: Cluster):
    one, bad = cluster.submit(add, 1), cluster.submit(divide, 1, 0)
    assert gather(one for _ in range(2)) == [1, 1]
    found = gather(Parts(one, [one, 5]))
    assert (found.first, found.rest) == (1, [1, 5])
    assert gather(FrozenParts(one)).first == 1
    assert gather(Parts(bad, [bad, one]), errors="skip") == Parts(None, [1])


@dataclass
class Parts:
    first: Any
    rest: Any


@dataclass(frozen=True, slots=True)
class FrozenParts:
    first: Any


def test_what_is_no_future_is_named(cluster: Cluster):
    with pytest.raises(UsageError, match="5 is no future of daws"):
        list(as_completed([cluster.submit(add), 5]))
    with pytest.raises(UsageError, match="is one future; give a list"):
        wait(cluster.submit(add))  # type: ignore[arg-type]


def test_the_words_of_concurrent_futures_are_understood(cluster: Cluster):
    bad = cluster.submit(divide, 1, 0)
    assert wait([bad], return_when="FIRST_EXCEPTION").done == {bad}
    assert wait([bad], return_when="FIRST_COMPLETED") == wait([bad], return_when="ALL_COMPLETED")


def count_and_divide(folder: Path, item: int) -> float:
    with open(folder / str(item), "a") as calls:
        calls.write("x")
    return 1 / (item - 3)


def test_map_calls_each_item_once_even_beside_failures(cluster: Cluster, tmp_path: Path):
    mapped = cluster.map(count_and_divide, [tmp_path] * 8, range(8), chunk=4)
    with pytest.raises(ZeroDivisionError):
        list(mapped)
    assert mapped[4:] == [1.0, 0.5, 1 / 3, 0.25]
    assert [(tmp_path / str(item)).read_text() for item in range(8)] == ["x"] * 8


def a_lock_at(item: int, bad: int) -> Any:
    return threading.Lock() if item == bad else item


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_an_error_of_map_says_which_item_raised_it(cluster: Cluster, chunk: int | None):
    mapped = cluster.map(divmod, itertools.repeat(7), [5, 3, 0, 6], chunk=chunk)
    completed = next(one for one in as_completed(mapped) if one.item == 2)
    for read in (list, lambda one: one[2], cluster.gather, lambda one: completed.result()):
        with pytest.raises(ZeroDivisionError) as raised:
            read(mapped)
        assert any(note.startswith("raised by item 2 of the map, in task ") for note in raised.value.__notes__)


def test_unpicklable_results_of_map_are_errors_of_their_items_alone(cluster: Cluster):
    mapped = cluster.map(a_lock_at, range(5), [2] * 5, chunk=5)
    assert [mapped[item] for item in (0, 1, 3, 4)] == [0, 1, 3, 4]
    with pytest.raises(daws.UnpicklableError, match="the result cannot be pickled"):
        mapped[2]


def test_numbers_of_numpy_are_numbers(cluster: Cluster):
    given: dict[str, Any] = {"outputs": np.int64(2), "retries": np.int32(1), "timeout": np.float32(60.0)}
    one, other = cluster.options(**given).submit(divmod, 7, 2)
    assert gather([one, other]) == [3, 1]
    chunk: Any = np.int64(2)
    assert list(cluster.map(add, range(4), chunk=chunk)) == [0, 1, 2, 3]
    with pytest.raises(UsageError, match=r"memory='much': give a number of bytes, or a text such as '4 GB'"):
        cluster.options(memory="much")


def test_what_tasks_print_is_seen(cluster: Cluster, capfd: pytest.CaptureFixture[str]):
    cluster.submit(print, "hello from a worker").result()
    deadline, seen = time.monotonic() + 30, ""
    while "hello from a worker" not in seen and time.monotonic() < deadline:
        cluster.submit(add).result()
        seen += capfd.readouterr().out
    assert "hello from a worker\n" in seen


def test_await(cluster: Cluster):
    async def main() -> int:
        return await cluster.submit(add, 1) + await cluster.submit(add, 2)

    assert asyncio.run(main()) == 3


def test_a_loop_that_was_closed_takes_nothing_along(cluster: Cluster, tmp_path: Path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    future = cluster.submit(sum_after, str(gate), np.ones(3))

    async def give_up() -> None:
        await asyncio.wait_for(asyncio.ensure_future(awaited(future)), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    gate.write_text("go on")
    assert future.result(60) == 3
    assert cluster.submit(add, 1).result(60) == 1


async def awaited(future: "Future[Any]") -> Any:
    return await future


def test_callbacks_that_raise_take_nothing_along(cluster: Cluster, caplog: pytest.LogCaptureFixture):
    future = cluster.submit(add, 1)
    future.result(60)
    heard: list[Future[int]] = []
    callbacks: list[Callable[[Any], object]] = [sys.exit, fail_here, heard.append]
    for callback in callbacks:
        other = cluster.submit(add, 2)
        other.add_done_callback(callback)
        assert other.result(60) == 2 and cluster.submit(add, 3).result(60) == 3
    assert heard == [other]
    assert len(caplog.records) == 2 and "a callback of <Future" in caplog.text


def fail_here(future: object) -> None:
    raise LookupError("nobody asked")


def test_callbacks(cluster: Cluster):
    heard: list[Future[int]] = []
    future = cluster.submit(add, 1)
    future.add_done_callback(heard.append)
    future.result()
    future.add_done_callback(heard.append)
    wait([cluster.submit(add)])
    assert heard == [future, future]


def test_callbacks_are_called_in_their_order(cluster: Cluster, tmp_path: Any):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    future = cluster.submit(sum_after, str(gate), np.ones(3))
    heard: list[int] = []
    for number in range(5):
        future.add_done_callback(lambda _, number=number: heard.append(number))  # type: ignore[misc]
    gate.write_text("go on")
    future.result(60)
    assert heard == list(range(5))


def test_the_highest_rank_goes_first_if_the_strategy_goes_by_ranks(tmp_path: Path):
    ended: list[int] = []
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Cluster(1, strategy="daws:order=critical-path") as cluster:
        blocker = cluster.submit(sum_after, str(gate), np.ones(3))
        ranked = [cluster.options(rank=rank, expected=0.1).submit(add, rank) for rank in (1, 3, 0, 2)]
        for future in ranked:
            future.add_done_callback(lambda one: ended.append(one.result()))
        gate.write_text("go on")
        gather([blocker, *ranked])
    assert ended == [3, 2, 1, 0]


def test_a_thousand_futures_one_by_one(cluster: Cluster):
    futures = [cluster.submit(add, number) for number in range(3000)]
    assert gather(futures) == list(range(3000))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"outputs": 0}, "outputs=0"),
        ({"retries": -1}, "retries=-1"),
        ({"timeout": 0}, "timeout=0"),
        ({"expected": -1}, "expected=-1"),
        ({"rank": float("inf")}, "rank=inf"),
        ({"context": 3}, "context=3"),
    ],
)
def test_options_that_make_no_sense_are_refused(cluster: Cluster, options: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        cluster.options(**options).submit(add)


@pytest.mark.parametrize("options, message", [({"context": "gpu"}, "gpu"), ({"cores": 3}, "3 cores")])
def test_what_nobody_can_run_is_refused_at_once(cluster: Cluster, options: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        cluster.options(**options).submit(add)


def test_wide_tasks_run(cluster: Cluster):
    wide = [cluster.options(cores=2).submit(add, number) for number in range(5)]
    narrow = [cluster.submit(add, number) for number in range(20)]
    assert gather([wide, narrow]) == [list(range(5)), list(range(20))]


def test_refused_arguments_leave_nothing_behind(cluster: Cluster):
    session = cluster._open()
    with pytest.raises(UsageError, match="argument 1"):
        cluster.options(outputs=2).submit(add, (one for one in range(3)))
    assert not session.outputs


def test_only_own_futures_can_be_cancelled(cluster: Cluster):
    """Tasks of two clusters have the same numbers."""
    with Cluster(1) as other, Cluster(1) as third:
        mine, theirs = other.submit(time.sleep, 0.2), third.submit(abs, -1)
        assert mine.task == theirs.task
        with pytest.raises(UsageError, match="belongs to another cluster; cancel it there"):
            other.cancel([theirs])
        assert (mine.exception(60), theirs.exception(60)) == (None, None)
    with pytest.raises(UsageError, match="5 is no future of daws"):
        cluster.cancel([5])


def test_the_results_of_a_map_are_a_list_in_other_tasks(cluster: Cluster):
    squares = cluster.map(pow, range(5), [2] * 5)
    assert cluster.submit(sum, squares).result(60) == 30
    assert cluster.submit(repr, {"x": [squares]}).result(60) == "{'x': [[0, 1, 4, 9, 16]]}"
    failed = cluster.submit(sum, cluster.map(divmod, [1, 1], [1, 0]))
    assert isinstance(failed.exception(60), ZeroDivisionError)


def test_what_was_just_submitted_can_be_cancelled(cluster: Cluster):
    blockers: list[Future[Any]] = [cluster.submit(time.sleep, 1000) for _ in range(cluster.workers)]
    waiting: list[Future[Any]] = [cluster.submit(add, number) for number in range(6000)]
    cluster.cancel([*waiting, *blockers])
    assert all(isinstance(one.exception(60), TaskCancelledError) for one in blockers)
    assert all(one.cancelled() or one.result(60) == number for number, one in enumerate(waiting) if one.exception(60))
    assert waiting[-1].cancelled(), "there was nobody to run all of them"
    assert cluster.submit(add, 1).result(60) == 1


def test_workers_may_be_threads():
    with Cluster(2, kind="threads") as one:
        assert one.submit(os.getpid).result(60) == os.getpid()
        big = one.submit(np.arange, 100_000)
        assert one.submit(np.sum, big).result(60) == 4999950000
        assert isinstance(one.submit(divide, 1, 0).exception(60), ZeroDivisionError)
    with pytest.raises(UsageError, match="'processes' or 'threads'"):
        Cluster(2, kind="fibres")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:strategy .* works differently")
@pytest.mark.parametrize("strategy", PRESETS)
def test_every_preset_runs_a_graph(strategy: str):
    with Cluster(2, strategy=strategy) as one:
        leaves = [one.submit(add, number) for number in range(30)]
        sums = [one.submit(add, *leaves[low : low + 5]) for low in range(0, 30, 5)]
        big = [one.submit(np.full, 10_000, total) for total in sums]
        assert one.submit(add, *[one.submit(np.max, array) for array in big]).result(60) == sum(range(30))


def test_unknown_options_are_named(cluster: Cluster):
    with pytest.raises(UsageError, match="colour"):
        cluster.options(colour="red")  # type: ignore[call-overload]


@pytest.mark.parametrize("workers", [0, -1, "two", True])
def test_a_cluster_needs_workers(workers: Any):
    with pytest.raises(UsageError, match="workers="):
        Cluster(workers)


def test_a_closed_cluster_says_so():
    with Cluster(1) as one:
        pending = one.submit(time.sleep, 1000)
        folders = [folder for folder in (one._folders.memory, one._folders.scratch) if folder is not None]
        one.close(cancel=True)
    with pytest.raises(ClosedError, match="closed"):
        one.submit(add)
    with pytest.raises(TaskCancelledError, match="closed"):
        pending.result(10)
    assert not any(folder.exists() for folder in folders), "nothing is left behind"
    one.close()


@pytest.mark.parametrize("kind", ["processes", "threads"])
def test_closing_while_others_submit_is_no_other_error(kind: Any):
    one = Cluster(1, kind=kind)
    found: list[BaseException] = []
    started = threading.Barrier(4)

    def submit_until_closed() -> None:
        started.wait()
        try:
            while True:
                future = one.submit(add, 1)
                one.put(np.ones(10_000))
                future.result(60)
        except BaseException as error:
            found.append(error)

    threads = [threading.Thread(target=submit_until_closed) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait()
    one.close()
    for thread in threads:
        thread.join()
    assert [type(error) for error in found] == [ClosedError] * 3


def test_a_callback_may_not_wait_but_may_close():
    one = Cluster(1)
    heard: list[Any] = []
    ended = threading.Event()

    def callback(future: Future[int]) -> None:
        for function in (one.submit(add).result, lambda: wait([one.submit(add)])):
            try:
                function()
            except UsageError as error:
                heard.append(str(error))
        one.close()
        ended.set()

    one.submit(add, 1).add_done_callback(callback)
    assert ended.wait(60)
    assert len(heard) == 2 and all("cannot wait" in text for text in heard)
    for thread in threading.enumerate():
        if thread.name == "daws-close":
            thread.join()
    assert "closed" in repr(one)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_of_the_client_has_no_cluster(cluster: Cluster):
    pending = cluster.submit(time.sleep, 1000)
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        found = []
        for what in (lambda: pending.result(60), lambda: cluster.submit(add), lambda: daws.wait([pending], 60)):
            try:
                found.append(type(what()).__name__)
            except BaseException as error:
                found.append(str(error))
        os.write(writer, "|".join(found).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        assert file.read() == f"{FORKED}|{FORKED}|Waited"
    os.waitpid(pid, 0)
    cluster.cancel(pending)
    assert cluster.submit(add, 1).result(60) == 1, "here nothing has changed"


def test_help_is_pleasant():
    text = pydoc.render_doc(Cluster)
    assert "with daws.Cluster() as cluster" in text and "scatter" not in text
    for name in ("submit", "options", "map", "put", "gather", "cancel", "close"):
        assert getattr(Cluster, name).__doc__
    with Cluster(1) as one:
        assert repr(one) == "<Cluster: 1 worker, daws, 0 tasks to end>"
    assert repr(one) == "<Cluster: 1 worker, daws, closed>"


@pytest.mark.parametrize("memory_bytes", [0, -1, 1.5, True])
def test_a_memory_that_is_none_is_refused(memory_bytes: Any):
    with pytest.raises(UsageError, match=f"memory_bytes={memory_bytes!r}: give a whole number of bytes of at least 1"):
        Cluster(1, memory_bytes=memory_bytes)


def test_two_clusters_of_one_process_do_not_write_into_each_others_words():
    with Cluster(2) as one, Cluster(2) as two:
        rounds = [[each.submit(divmod, number, 7) for each in (one, two) for number in range(500)] for _ in range(8)]
        for futures in rounds:
            assert gather(futures) == 2 * [divmod(number, 7) for number in range(500)]
