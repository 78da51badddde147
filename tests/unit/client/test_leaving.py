"""Leaving a cluster: nothing that was submitted is dropped in silence."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import daws
from daws.client import listening
from daws.client.cancelled import TaskCancelledError
from daws.client.cluster import Cluster
from daws.model.errors import ClosedError

FORMS: dict[str, dict[str, Any]] = {
    "thread": {},
    "threads": {"kind": "threads"},
    "process": {"node": "process"},
    "nodes": {"nodes": 2},
}


def write(path: str, seconds: float = 0.05) -> None:
    time.sleep(seconds)
    open(path, "w").close()


def wait_for(path: str) -> None:
    while not os.path.exists(path):
        time.sleep(0.01)


def fail(number: int = 0) -> None:
    raise ValueError(f"number {number}")


def same(value: Any) -> Any:
    return value


@pytest.mark.parametrize("form", FORMS)
def test_leaving_the_block_waits_for_what_was_submitted(form: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    with Cluster(2, **FORMS[form]) as cluster:
        for number in range(10):
            cluster.submit(write, str(tmp_path / str(number)))
    assert len(list(tmp_path.iterdir())) == 10
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("form", FORMS)
def test_an_exception_cancels_and_says_how_many(form: str, capfd: pytest.CaptureFixture[str]):
    with pytest.raises(ValueError, match="on purpose"), Cluster(1, **FORMS[form]) as cluster:
        futures = [cluster.submit(wait_for, "/nonexistent/file") for _ in range(3)]
        if FORMS[form].get("kind") == "threads":  # what runs there cannot be stopped
            cluster.cancel(futures)
        raise ValueError("on purpose\nand more")
    said = "daws: 3 tasks were cancelled: ValueError: on purpose\n"
    assert capfd.readouterr().err == ("" if "kind" in FORMS[form] else said)
    assert not any(future.exception() is None for future in futures)


def test_close_waits_and_with_cancel_it_does_not(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    cluster = Cluster(1)
    cluster.submit(write, str(tmp_path / "a"))
    cluster.close()
    assert (tmp_path / "a").exists()
    cluster.close()  # it is closed already
    other = Cluster(1)
    future = other.submit(wait_for, "/nonexistent/file")
    other.close(cancel=True)
    assert future.done() and isinstance(future.exception(), ClosedError | TaskCancelledError)
    assert capfd.readouterr().err == ""


def test_an_exit_without_an_error_is_no_reason_to_cancel(tmp_path: Path):
    with pytest.raises(SystemExit), Cluster(1) as cluster:
        cluster.submit(write, str(tmp_path / "a"))
        sys.exit(0)
    assert (tmp_path / "a").exists()


def test_leaving_waits_for_what_callbacks_submit(tmp_path: Path):
    def go_on(_: Any) -> None:
        cluster.submit(write, str(tmp_path / "second"))

    with Cluster(1) as cluster:
        cluster.submit(write, str(tmp_path / "first")).add_done_callback(go_on)
    assert (tmp_path / "second").exists()


def test_a_callback_may_close(tmp_path: Path):
    cluster = Cluster(1)
    closing = threading.Event()

    def close(_: Any) -> None:
        cluster.close()
        closing.set()

    cluster.submit(same, 1).add_done_callback(close)
    cluster.submit(write, str(tmp_path / "a"))
    assert closing.wait(60)
    assert cluster._closer is not None
    cluster._closer.join(60)
    assert (tmp_path / "a").exists() and cluster._session is None


@pytest.mark.parametrize("form", ["thread", "process"])
def test_an_exception_in_a_callback_cancels_and_says_how_many(
    form: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    cluster = Cluster(1, **FORMS[form])
    left = threading.Event()

    def leave(_: Any) -> None:
        try:
            with cluster:
                raise ValueError("on purpose")
        except ValueError:
            left.set()

    gate = str(tmp_path / "gate")
    cluster.submit(wait_for, gate).add_done_callback(leave)
    for _ in range(2):
        cluster.submit(wait_for, "/nonexistent/file")
    open(gate, "w").close()
    assert left.wait(60)
    assert cluster._closer is not None
    cluster._closer.join(60)
    assert capfd.readouterr().err == "daws: 2 tasks were cancelled: ValueError: on purpose\n"


def test_a_cluster_that_is_garbage_collected_ends_its_tasks_first(tmp_path: Path):
    future = Cluster(1).submit(same, bytes(1_000_000))
    Cluster(1).submit(write, str(tmp_path / "a"))
    gc.collect()
    assert len(future.result()) == 1_000_000  # its cluster has no name, and is there as long as that is needed
    while not (tmp_path / "a").exists():
        time.sleep(0.01)


def test_failures_that_nobody_saw_are_told(capfd: pytest.CaptureFixture[str]):
    with Cluster(1) as cluster:
        for number in range(3):
            cluster.submit(fail, number)
    assert capfd.readouterr().err == "daws: 3 tasks failed and nobody asked for the result: ValueError: number 0\n"


@pytest.mark.parametrize("way", ["result", "exception", "gather", "after"])
def test_failures_that_somebody_saw_are_not(way: str, capfd: pytest.CaptureFixture[str]):
    with Cluster(1) as cluster:
        futures = [cluster.submit(fail) for _ in range(1 if way == "after" else 3)]
        if way == "gather":
            with pytest.raises(ValueError):
                daws.gather(futures)
        elif way == "after":
            with pytest.raises(ValueError):
                cluster.submit(same, futures).result()
        for future in futures:
            if way == "result":
                with pytest.raises(ValueError):
                    future.result()
            elif way == "exception":
                assert isinstance(future.exception(), ValueError)
    assert capfd.readouterr().err == ""


def test_a_failure_that_was_seen_hides_no_other(capfd: pytest.CaptureFixture[str]):
    with Cluster(1) as cluster:
        one, other = cluster.submit(fail, 1), cluster.submit(fail, 2)
        daws.wait([other])
        with pytest.raises(ValueError, match="number 1"):
            cluster.submit(same, cluster.submit(same, one)).result()
    assert capfd.readouterr().err == "daws: 1 task failed and nobody asked for the result: ValueError: number 2\n"


def test_a_broken_cluster_can_be_left(capfd: pytest.CaptureFixture[str]):
    with Cluster(1) as cluster:
        cluster.submit(wait_for, "/nonexistent/file")
        cluster._open().on_broken(ClosedError("it broke on purpose"))
    said = capfd.readouterr().err
    assert said == "daws: 1 task failed and nobody asked for the result: ClosedError: it broke on purpose\n"


def test_closing_refuses_tasks_of_other_threads(tmp_path: Path):
    cluster = Cluster(1)
    gate, refused = str(tmp_path / "gate"), threading.Event()
    cluster.submit(wait_for, gate)

    def submit_until_refused() -> None:
        try:
            while True:
                cluster.submit(same, 1)
        except ClosedError:
            refused.set()
            open(gate, "w").close()

    thread = threading.Thread(target=submit_until_refused)
    thread.start()
    cluster.close()
    thread.join()
    assert refused.is_set()


def test_async_with(tmp_path: Path):
    async def main() -> int:
        turns = 0
        async with Cluster(1) as cluster:
            assert await cluster.submit(pow, 2, 10) == 1024
            cluster.submit(write, str(tmp_path / "a"), 0.3)

            async def count() -> None:
                nonlocal turns
                while not (tmp_path / "a").exists():
                    turns += 1
                    await asyncio.sleep(0.01)

            counting = asyncio.ensure_future(count())
        await counting
        return turns

    assert asyncio.run(main()) > 3  # the loop went on while the cluster was left
    assert (tmp_path / "a").exists()


def test_async_with_that_is_cancelled(capfd: pytest.CaptureFixture[str]):
    async def leave() -> None:
        async with Cluster(1) as cluster:
            cluster.submit(wait_for, "/nonexistent/file")

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(leave(), 1)

    asyncio.run(main())
    assert capfd.readouterr().err == "daws: 1 task was cancelled: CancelledError\n"


SCRIPT = """
import sys, time
import daws

def write(path):
    time.sleep(0.2)
    open(path, "w").close()

cluster = daws.Cluster(1)
for number in range(3):
    cluster.submit(write, sys.argv[1] + str(number))
"""


@pytest.mark.parametrize(
    ("last", "code", "files", "said"),
    [
        ("", 0, 3, ""),
        ("sys.exit(0)", 0, 3, ""),
        ("sys.exit(3)", 3, 3, ""),
        ("1 / 0", 1, 0, "daws: 3 tasks were cancelled: ZeroDivisionError: division by zero\n"),
        ("del cluster", 0, 3, ""),
    ],
)
def test_a_program_that_ends(last: str, code: int, files: int, said: str, tmp_path: Path):
    script = SCRIPT + last
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "made")], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == code
    assert len(list(tmp_path.iterdir())) == files
    assert ended.stderr.endswith(said) and (said or ended.stderr == "")


@pytest.mark.parametrize("form", FORMS)
def test_items_of_maps_that_failed_and_that_nobody_saw_are_told(form: str, capfd: pytest.CaptureFixture[str]):
    with Cluster(2, **FORMS[form]) as cluster:
        cluster.map(fail, range(1000))
    said = capfd.readouterr().err
    assert said.startswith("daws: 1,000 items of maps failed and nobody asked for the result: ValueError: number ")
    assert said.count("\n") == 1


def test_items_whose_results_cannot_be_pickled_are_told(capfd: pytest.CaptureFixture[str]):
    with Cluster(1) as cluster:
        cluster.map(make_lock, range(3), chunk=3)
        cluster.submit(fail)
    said = capfd.readouterr().err
    assert said.startswith("daws: 1 task and 2 items of maps failed and nobody asked for the result: ")


def make_lock(number: int) -> Any:
    return threading.Lock() if number else number


def gather_all(mapped: Any, cluster: Cluster) -> None:
    cluster.gather(mapped)


def return_errors(mapped: Any, cluster: Cluster) -> None:
    assert len(cluster.gather(mapped, errors="return")) == 40
    raise ValueError


def ask_for_one(mapped: Any, cluster: Cluster) -> None:
    mapped[3]


def ask_as_completed(mapped: Any, cluster: Cluster) -> None:
    assert [type(item.exception()) for item in daws.as_completed(mapped)] == [ValueError] * 40
    raise ValueError


def ask_for_states(mapped: Any, cluster: Cluster) -> None:
    assert {item.state for item in daws.as_completed(mapped)} == {"failed"}
    raise ValueError


def pass_on(mapped: Any, cluster: Cluster) -> None:
    cluster.submit(same, mapped).result()


@pytest.mark.parametrize(
    ("way", "chunk"),
    [
        (lambda mapped, _: list(mapped), 1),
        (gather_all, 1),
        (return_errors, 7),
        (ask_for_one, 40),
        (ask_as_completed, 7),
        (ask_for_states, 7),
        (pass_on, 7),
    ],
)
def test_items_of_maps_that_somebody_saw_are_not(way: Any, chunk: int, capfd: pytest.CaptureFixture[str]):
    with Cluster(2) as cluster, pytest.raises(ValueError):
        way(cluster.map(fail, range(40), chunk=chunk), cluster)
    assert capfd.readouterr().err == ""


def map_inside() -> int:
    results: list[Any] = daws.current().gather(daws.current().map(fail, range(5)), errors="return")
    return len(results)


@pytest.mark.parametrize("form", FORMS)
def test_what_fails_inside_of_a_task_is_its_own_business(form: str, capfd: pytest.CaptureFixture[str]):
    with Cluster(1, **FORMS[form]) as cluster:
        assert cluster.submit(map_inside).result() == 5
    assert capfd.readouterr().err == ""


def test_failures_that_nobody_asks_about_take_little_memory(monkeypatch: pytest.MonkeyPatch, capfd: Any):
    with Cluster(1) as cluster:
        session = cluster._open()
        daws.wait([cluster.submit(fail, number) for number in range(500)])
        assert len(session.unseen) == 500 and len(session.unseen._named) == listening.NAMED_MAX
        monkeypatch.setattr(listening, "COUNTED_MAX", 500)
        daws.wait([cluster.submit(fail)])
        assert len(session.unseen) == 500
    said = "daws: more than 500 tasks failed and nobody asked for the result: ValueError: number 0\n"
    assert capfd.readouterr().err == said


def test_what_a_gather_has_left_behind_is_forgotten_with_its_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    gate = str(tmp_path / "gate")
    with Cluster(1) as cluster:
        futures = [cluster.submit(fail, 1), cluster.submit(wait_for, gate)]
        futures.append(cluster.submit(fail, 2))
        with pytest.raises(ValueError, match="number 1"):
            daws.gather(futures)
        open(gate, "w").close()
        daws.wait(futures)
        assert not cluster._open().unseen and not any(future._told for future in futures)
    assert capfd.readouterr().err == ""


def test_the_state_of_a_future_says_that_it_failed(capfd: pytest.CaptureFixture[str]):
    with Cluster(1) as cluster:
        future = cluster.submit(fail)
        daws.wait([future])
        assert future.state == "failed"
    assert capfd.readouterr().err == ""


UNCLOSED = """
import sys
import daws
from daws.futures import Executor

def make(number):
    return bytes([number]) * 300_000

def combine(path, *parts):
    with open(path, "w") as file:
        file.write(str([len(part) for part in parts]))

how, path = sys.argv[1:]
if how == "executor":
    executor = Executor(2)
    parts = [executor.submit(make, number) for number in range(4)]
    executor.submit(combine, path, *[part.result() for part in parts])
else:
    cluster = daws.Cluster(1, nodes=int(how))
    cluster.submit(combine, path, *[cluster.submit(make, number) for number in range(4)])
"""


@pytest.mark.parametrize("how", ["1", "2", "executor"])
def test_the_end_of_a_program_waits_for_tasks_that_make_files(how: str, tmp_path: Path):
    script, made = tmp_path / "script.py", tmp_path / "made"
    script.write_text(UNCLOSED)
    ended = subprocess.run([sys.executable, script, how, made], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert made.read_text() == str([300_000] * 4)


def large(number: int) -> bytes:
    return bytes([number]) * 100_000


@pytest.mark.parametrize("form", FORMS)
def test_results_can_be_asked_for_after_the_block(form: str):
    with Cluster(2, **FORMS[form]) as cluster:
        futures = [cluster.submit(large, number) for number in range(5)]
        mapped = cluster.map(large, range(5), chunk=2)
        given = cluster.put(large(9))
    assert [future.result() for future in futures] == [large(number) for number in range(5)]
    assert list(mapped) == [large(number) for number in range(5)] and given.result() == large(9)


def test_results_that_outlive_their_cluster_go_with_their_futures():
    with Cluster(1) as cluster:
        session = cluster._open()
        futures = [cluster.submit(large, number) for number in range(3)]
    assert len(session.results.kept) == 3
    del futures[1:]
    gc.collect()
    assert len(session.results.kept) == 1 and futures[0].result() == large(0)


@pytest.mark.parametrize("form", FORMS)
def test_tasks_that_a_close_gives_up_are_cancelled(form: str):
    cluster = Cluster(1, **FORMS[form])
    future = cluster.submit(time.sleep, 0.5)
    cluster.close(cancel=True)
    assert future.cancelled() and future.state == "cancelled"
    with pytest.raises(TaskCancelledError, match="its cluster was closed"):
        future.result()
