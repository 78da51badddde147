"""Tasks that submit tasks, from the user's side: on processes and on threads, with few workers."""

import asyncio
import contextlib
import io
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daws
from daws.client.cancelled import TaskCancelledError
from daws.client.cluster import Cluster
from daws.model.errors import ClosedError, TaskFailedError, TaskKilledError, UsageError
from tests.unit.client.inner_jobs import attempt, depth, divide, end_worker, fibonacci, touch

KINDS = ("processes", "threads")


@pytest.fixture(scope="module", params=KINDS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One worker: whatever blocks it blocks everything."""
    with Cluster(1, kind=request.param) as one:
        yield one


@pytest.fixture
def processes() -> Iterator[Cluster]:
    with Cluster(2) as one:
        yield one


def eventually(is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def test_recursion_by_tasks(cluster: Cluster):
    assert cluster.submit(fibonacci, 10).result(60) == 55


def test_deep_recursion_needs_one_worker(cluster: Cluster):
    assert cluster.submit(depth, 50).result(60) == 50


def test_many_children_of_one_task(cluster: Cluster):
    def many(n: int) -> int:
        here = daws.current()
        return sum(here.gather([here.submit(abs, number) for number in range(n)]))

    assert cluster.submit(many, 1000).result(60) == 499500


def test_children_build_graphs(cluster: Cluster):
    def graph() -> list[Any]:
        here = daws.current()
        two, three = here.submit(abs, -2), here.submit(abs, -3)
        low, high = here.options(outputs=2).submit(divmod, here.submit(pow, two, three), three)
        return [here.submit(max, [low, high]).result(), low.result(), high.result(), two.result()]

    assert cluster.submit(graph).result(60) == [2, 2, 2, 2]


def test_an_object_is_put_in_once_for_many_children(cluster: Cluster):
    def parent(size: int) -> int:
        here = daws.current()
        table = here.put(np.ones(size))
        return int(sum(here.gather([here.submit(np.sum, table) for _ in range(3)])))

    assert cluster.submit(parent, 10).result(60) == 30
    assert cluster.submit(parent, 200_000).result(60) == 600_000


def test_words_that_are_for_clients_alone_say_what_to_do_instead(cluster: Cluster):
    def runs() -> None:
        daws.current().run(["true"])

    def cancels() -> None:
        here = daws.current()
        here.cancel([here.submit(abs, 1)])

    with pytest.raises(UsageError, match=r"inside a task, run programs by subprocess\.run"):
        cluster.submit(runs).result(60)
    with pytest.raises(UsageError, match="they are cancelled with it"):
        cluster.submit(cancels).result(60)


def test_large_results_of_children_are_files(cluster: Cluster):
    def total() -> float:
        here = daws.current()
        made = here.submit(np.full, 100_000, 2.0)
        half = here.submit(np.multiply, made, 0.5)
        return float(made.result().sum() + half.result().sum())

    assert cluster.submit(total).result(60) == 300_000.0


def test_objects_of_children_go_with_their_parent(cluster: Cluster):
    def make() -> int:
        here = daws.current()
        waited, left = here.submit(np.zeros, 100_000), here.submit(np.ones, 100_000)
        assert here.submit(np.sum, left).result() == 100_000
        return len(waited.result())

    files = cluster._open().files
    assert cluster.submit(make).result(60) == 100_000
    assert eventually(lambda: not len(files))


def test_children_run_on_other_nodes_and_their_results_come_back():
    def child(number: int) -> tuple[int, np.ndarray[Any, Any]]:
        time.sleep(0.02)  # so that others find something to steal
        return os.getppid(), np.full(10_000, number)

    def parent() -> tuple[int, int]:
        here = daws.current()
        results = here.gather([here.submit(child, number) for number in range(30)])
        return len({worker for worker, _ in results}), int(sum(array.sum() for _, array in results))

    with Cluster(1, nodes=3) as three:
        nodes, total = three.submit(parent).result(60)
        assert nodes > 1 and total == 435 * 10_000
        assert three.submit(fibonacci, 8).result(60) == 21
        error = three.submit(lambda: daws.current().submit(divide, 1, 0).result()).exception(60)
        assert isinstance(error, ZeroDivisionError)


def test_an_error_of_a_child_is_raised_in_its_parent(cluster: Cluster):
    def parent() -> str:
        here = daws.current()
        bad = here.submit(divide, 1, 0)
        after = here.submit(divide, bad, 2)
        error = after.exception()
        assert isinstance(error, ZeroDivisionError) and "divide" in str(error.__cause__)
        assert "was not run: it needs task" in error.__notes__[0] and "(divide), which failed on" in error.__notes__[0]
        try:
            return str(bad.result())
        except ZeroDivisionError as said:
            assert "divide" in str(said.__cause__)
            return f"{type(said).__name__}: {said}"

    assert cluster.submit(parent).result(60) == "ZeroDivisionError: division by zero"


def test_an_error_that_the_parent_does_not_catch_is_its_own(cluster: Cluster):
    future = cluster.submit(lambda: daws.current().submit(divide, 1, 0).result())
    assert isinstance(future.exception(60), ZeroDivisionError)


def test_children_outlive_a_parent_that_does_not_wait(cluster: Cluster, tmp_path: Path):
    def parent() -> int:
        for number in range(3):
            daws.current().submit(touch, str(tmp_path / str(number)))
        return 7

    assert cluster.submit(parent).result(60) == 7
    assert eventually(lambda: len(list(tmp_path.iterdir())) == 3)


def test_map_and_waiting_for_several(cluster: Cluster):
    def several() -> tuple[Any, ...]:
        here = daws.current()
        squares = list(here.map(lambda x: x * x, range(100)))
        made = [here.submit(abs, -number) for number in range(10)]
        ended = sorted(future.result() for future in daws.as_completed(made))
        done, not_done = daws.wait([here.submit(abs, -1), here.submit(divide, 1, 0)])
        first = daws.wait([here.submit(abs, -1)], return_when="first")
        found = here.gather({"a": [here.submit(abs, -4)], "b": here.submit(divide, 1, 0)}, errors="skip")
        return sum(squares), ended, len(done), len(not_done), len(first.done), found

    assert cluster.submit(several).result(60) == (328350, list(range(10)), 2, 0, 1, {"a": [4]})


def test_gather_and_progress_are_as_outside(cluster: Cluster):
    def several() -> tuple[Any, ...]:
        here = daws.current()
        mapped = here.map(divide, range(4), [1, 0] * 2, chunk=2)
        states = [item.state for item in daws.progress(mapped)]
        return here.gather([mapped], "skip", None, True), here.gather(mapped[2], timeout=0), states, here.workers

    found = cluster.submit(several).result(60)
    assert found == ([[0, 2]], 2, ["done", "failed"] * 2, cluster.workers)


def test_asking_does_not_wait(cluster: Cluster):
    def ask() -> tuple[bool, bool, int]:
        here = daws.current()
        future = here.submit(abs, -5)
        before = future.done()  # with one worker, it cannot have been run yet
        try:
            future.result(timeout=0)
        except TimeoutError:
            late = True
        return before, late, future.result()

    assert cluster.submit(ask).result(60) == (False, True, 5)


def test_callbacks_and_await(cluster: Cluster):
    def parent() -> list[int]:
        here = daws.current()
        heard: list[int] = []
        future = here.submit(abs, -5)
        future.add_done_callback(lambda one: heard.append(one.result()))

        async def wait() -> int:
            return int(await future)

        return [*heard, asyncio.run(wait()), *heard]

    assert cluster.submit(parent).result(60) == [5, 5]


def test_what_makes_no_sense_is_refused(cluster: Cluster):
    def waits_with_a_limit() -> None:
        daws.current().submit(abs, 1).result(timeout=1)

    def cancels() -> None:
        daws.current().submit(abs, 1).cancel()

    def returns_a_future() -> Any:
        return daws.current().submit(abs, 1)

    def asks_too_much() -> None:
        daws.current().options(cores=64).submit(abs, 1).result()

    def waits_in_a_thread() -> None:
        future = daws.current().submit(abs, 1)
        raised: list[BaseException] = []

        def wait() -> None:
            try:
                future.result()
            except UsageError as error:
                raised.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
        raise raised[0]

    for task, error, text in (
        (waits_with_a_limit, UsageError, "leave out timeout"),
        (cancels, UsageError, "cancelled with it"),
        (lambda: daws.current().map(abs, range(3)).cancel(), UsageError, "cancelled with it"),
        (lambda: daws.current().gather([daws.current().submit(abs, 1)], timeout=9), UsageError, "leave out timeout"),
        (lambda: daws.current().options(memo=True), UsageError, "leave out memo="),
        (lambda: daws.current().options(retries=1).options(memo=True), UsageError, "leave out memo="),
        (lambda: daws.current().nodes(), UsageError, "there is no nodes()"),
        (lambda: daws.current().sessions(), UsageError, "there is no sessions()"),
        (lambda: daws.current().drain(1), UsageError, "there is no drain()"),
        (lambda: daws.current().end("mine"), UsageError, "there is no end()"),
        (lambda: daws.current().counters(), UsageError, "there is no counters()"),
        (lambda: daws.current().use_strategy("daws"), UsageError, "there is no use_strategy()"),
        (lambda: daws.current().close(), UsageError, "there is no close()"),
        (returns_a_future, UsageError, "return its result()"),
        (asks_too_much, TaskFailedError, "64 cores"),
        (waits_in_a_thread, UsageError, "only the thread"),
    ):
        found = cluster.submit(task).exception(60)
        assert isinstance(found, error), found
        assert text in str(found)
    with pytest.raises(UsageError, match=r"make a daws\.Cluster"):
        daws.current()


def test_futures_do_not_outlive_their_task(cluster: Cluster):
    def leave() -> None:
        daws.kept = daws.current().submit(abs, -1)  # type: ignore[attr-defined]

    def take_it() -> Any:
        kept = daws.kept  # type: ignore[attr-defined]
        del daws.kept  # type: ignore[attr-defined]
        try:
            daws.current().submit(abs, kept)
        except ClosedError as error:
            assert "another task" in str(error)
        return kept.result()

    cluster.submit(leave).result(60)
    assert isinstance(cluster.submit(take_it).exception(60), ClosedError)


def test_retries_submit_again(cluster: Cluster, tmp_path: Path):
    def parent(path: str) -> int:
        made = daws.current().submit(attempt, path).result()
        if made < 3:
            raise ValueError(made)
        return int(made)

    assert cluster.options(retries=2).submit(parent, str(tmp_path / "tries")).result(60) == 3


def test_a_parent_that_dies_is_tried_again(processes: Cluster, tmp_path: Path):
    """What it had submitted belongs to the attempt that died; results count once."""

    def parent(path: str) -> int:
        here = daws.current()
        children = [here.submit(abs, number) for number in range(20)]
        assert children[0].result() == 0
        if attempt(path) < 3:
            os._exit(3)
        return sum([child.result() for child in children])

    assert processes.submit(parent, str(tmp_path / "tries")).result(60) == 190
    assert (tmp_path / "tries").read_text() == "xxx"


def test_the_death_of_a_worker_takes_those_that_wait_in_it_along(tmp_path: Path):
    def child(path: str) -> int:
        if attempt(path) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return 5

    def parent(path: str) -> int:
        return daws.current().submit(child, path).result() + 1

    with Cluster(1) as one:
        assert one.submit(parent, str(tmp_path / "tries")).result(60) == 6
        error = one.submit(lambda: daws.current().submit(os._exit, 3).result()).exception(60)
        assert isinstance(error, TaskKilledError) and "exited with code 3" in str(error)
        assert one.submit(fibonacci, 5).result(60) == 5


def test_a_parent_that_listens_to_itself_does_not_hear_its_children(capfd: pytest.CaptureFixture[str]):
    def parent() -> str:
        with contextlib.redirect_stdout(io.StringIO()) as heard:
            print("before")
            daws.current().submit(print, "the child").result()
            print("after")
        return heard.getvalue()

    with Cluster(1) as one:
        assert one.submit(parent).result(60) == "before\nafter\n"
    assert capfd.readouterr().out == "the child\n"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_child_that_kills_its_worker_fails_by_itself(tmp_path: Path, workers: int):
    """The first time its parent, which waits in the same worker, ends with it; tried again, it waits alone."""

    def parent(path: str) -> tuple[int, str]:
        time = attempt(path)
        try:
            daws.current().submit(end_worker, 3).result()
        except daws.TaskKilledError as error:
            return time, str(error)
        return time, ""

    with Cluster(workers) as cluster:
        time, said = cluster.submit(parent, str(tmp_path / "tries")).result(60)
        assert time == 2 or (workers == 2 and time == 1), "with two, they may never have shared one"
        assert re.fullmatch(r"task \d+ \(end_worker\): its worker exited with code 3 on node 0 \(attempt 4\)", said)
        pids = [cluster.submit(os.getpid).result(60) for _ in range(9)]
        assert len({*pids}) <= workers


def test_what_a_child_with_a_time_limit_does_is_no_concern_of_its_parent(tmp_path: Path):
    def parent(path: str) -> tuple[int, str]:
        time = attempt(path)
        slow = daws.current().options(timeout=0.05).submit(end_worker, None)
        return time, type(slow.exception()).__name__

    with Cluster(1) as cluster:
        assert cluster.submit(parent, str(tmp_path / "tries")).result(60) == (1, "TaskTimeoutError")


def test_cancelling_a_task_that_waits_cancels_what_it_has_submitted(tmp_path: Path):
    begun, never = str(tmp_path / "begun"), str(tmp_path / "never")
    os.mkfifo(never)

    def child() -> None:
        touch(begun)
        Path(never).read_text()

    def parent() -> None:
        daws.current().submit(child).result()

    with Cluster(1) as one:
        cancelled = one.submit(parent)
        assert eventually(lambda: os.path.exists(begun))
        cancelled.cancel()
        assert isinstance(cancelled.exception(60), TaskCancelledError)
        assert one.submit(depth, 3).result(60) == 3


@daws.task
def _double(x: int) -> int:
    return 2 * x


def _doubled(xs: list[int]) -> list[int]:
    doubled: list[int] = daws.gather([_double(x) for x in xs])
    return doubled


@pytest.mark.parametrize("kind", ["processes", "threads"])
def test_decorated_functions_called_in_a_task_are_tasks_of_its_cluster(kind: Any):
    with daws.Cluster(1, kind=kind) as cluster:
        assert cluster.submit(_doubled, [1, 2, 3]).result() == [2, 4, 6]
