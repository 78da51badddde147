"""Waiting for many futures at once: one wake-up for many ends, and none too late for an error."""

import asyncio
import concurrent.futures
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import daws
from daws.client import future, gathering
from daws.client.cancelled import TaskCancelledError
from daws.client.cluster import Cluster
from daws.client.gathering import TOGETHER, gather
from daws.model.errors import TaskKilledError, UsageError

MANY = 40


def read(path: str) -> str:
    return Path(path).read_text()


def divide(path: str) -> float:
    """By zero, when it is told so."""
    return 1 / int(read(path))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(2) as one:
        yield one


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Named pipes. Whoever reads one until the end of the test is let go then."""
    made: list[str] = []

    def fifo(name: str) -> str:
        path = str(tmp_path / name)
        os.mkfifo(path)
        made.append(path)
        return path

    with ExitStack() as held:
        yield fifo
        for path in made:
            held.callback(os.close, os.open(path, os.O_RDWR))


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """How often somebody waited, as what was done each time just before (what is first put in)."""
    todo: list[Callable[[], object]] = []
    acquire = future.acquire

    def spy(lock: Any, timeout: float | None) -> bool:
        if todo:
            todo.pop(0)()
        return acquire(lock, timeout)

    monkeypatch.setattr(gathering, "acquire", spy)
    return todo


@pytest.fixture
def together(waits: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is to wait for one future by itself."""
    monkeypatch.setattr(future, "acquire", lambda lock, timeout: pytest.fail("one is waited for by itself"))


def test_an_error_is_raised_at_once_however_long_others_take(
    cluster: Cluster, fifo: Callable[[str], str], waits: list[Callable[[], object]]
):
    bad, long = fifo("bad"), fifo("long")
    failing = cluster.submit(divide, bad)
    futures = [*[cluster.submit(abs, number) for number in range(MANY)], failing, cluster.submit(read, long)]
    waits.append(lambda: Path(bad).write_text("0"))
    with pytest.raises(ZeroDivisionError):
        gather(futures)
    assert not waits and not futures[-1].done()
    waits.append(lambda: pytest.fail("what is known already is waited for"))
    with pytest.raises(ZeroDivisionError):
        gather(futures[MANY:] + futures[MANY:] * MANY)
    Path(long).write_text("end")
    assert futures[-1].result() == "end"


@pytest.mark.usefixtures("together")
def test_an_error_is_raised_at_once_though_one_before_it_takes_long(
    cluster: Cluster, fifo: Callable[[str], str], waits: list[Callable[[], object]]
):
    bad, long = fifo("bad"), fifo("long")
    slow = cluster.submit(read, long)
    waits += [lambda: Path(bad).write_text("0"), lambda: pytest.fail("there is nothing to wait for")]
    with pytest.raises(ZeroDivisionError):
        gather([slow, cluster.submit(divide, bad), *[cluster.put(0)] * MANY])
    assert len(waits) == 1 and not slow.done()
    Path(long).write_text("end")


@pytest.mark.usefixtures("together")
def test_after_an_error_of_another_task_all_are_waited_for_together(
    cluster: Cluster, fifo: Callable[[str], str], waits: list[Callable[[], object]]
):
    bad, long = fifo("bad"), fifo("long")
    others = cluster.submit(divide, bad)
    futures = [cluster.submit(read, long), *[cluster.submit(abs, number) for number in range(MANY)]]
    waits += [lambda: Path(bad).write_text("0"), lambda: Path(long).write_text("end")]
    assert gather(futures) == ["end", *range(MANY)]
    assert others.state == "failed"


def test_an_error_of_another_cluster_is_raised_at_once_too(cluster: Cluster, fifo: Callable[[str], str]):
    long = fifo("long")
    with Cluster(1) as other:
        futures = [other.submit(divmod, 1, 0), *[cluster.submit(read, long)] * MANY]
        with pytest.raises(ZeroDivisionError):
            gather(futures)
        assert not futures[-1].done()
        Path(long).write_text("end")
        assert gather(futures[1:]) == ["end"] * MANY


def test_many_ends_wake_who_waits_once(fifo: Callable[[str], str], waits: list[Callable[[], object]]):
    first = fifo("first")
    with Cluster(1) as cluster:  # whose tasks end in the order in which they were submitted
        futures = [cluster.submit(read, first), *[cluster.submit(abs, number) for number in range(TOGETHER - 1)]]
        waits += [lambda: Path(first).write_text("end"), lambda: pytest.fail("it was woken too early")]
        assert gather(futures) == ["end", *range(TOGETHER - 1)]
        assert len(waits) == 1


def test_what_is_not_a_future_is_left_as_it_is(cluster: Cluster):
    futures = [cluster.submit(abs, number) for number in range(MANY)]
    mixed = [*futures, "text", [futures[3], None], futures[2]]
    assert gather(mixed) == [*range(MANY), "text", [3, None], 2]
    assert gather(set(futures)) == set(range(MANY))
    nothing = [cluster.submit(print, end="") for _ in range(MANY)]
    assert gather(tuple(nothing)) == (None,) * MANY
    assert [future.result() for future in nothing] == [None] * MANY


def test_a_map_is_gathered_item_by_item(cluster: Cluster):
    def third(x: int) -> float:
        return 3 / x

    assert gather({"a": cluster.map(third, [1, 3]), "b": cluster.submit(abs, -1)}) == {"a": [3.0, 1.0], "b": 1}
    assert gather(cluster.map(third, [1, 3]), timeout=60) == [3.0, 1.0]
    assert gather(cluster.map(third, [])) == []
    assert gather(cluster.map(third, [1, 0, 3], chunk=3), errors="skip") == [3.0, 1.0]
    first, error, last = gather(cluster.map(third, [1, 0, 3]), errors="return")
    assert (first, type(error), last) == (3.0, ZeroDivisionError, 1.0)
    for timeout in (None, 60):
        with pytest.raises(ZeroDivisionError):
            gather([cluster.map(third, [1, 0])], timeout=timeout)
    dead = gather(cluster.map(os._exit, [1, 1], chunk=2), errors="return")
    assert [type(one) for one in dead] == [TaskKilledError, TaskKilledError]


# -- cancelling --------------------------------------------------------------------------------------------------------

FORMS: dict[str, dict[str, Any]] = {
    "thread": {},
    "threads": {"kind": "threads"},
    "process": {"node": "process"},
    "nodes": {"nodes": 2},
}


def wait_for_file(begun: str, path: str) -> None:
    open(begun, "w").close()
    while not os.path.exists(path):
        time.sleep(0.01)


@pytest.mark.parametrize("form", FORMS)
def test_cancel_says_whether_it_did_and_running_asks_the_nodes(form: str, tmp_path: Path):
    gate = str(tmp_path / "gate")
    with Cluster(1, **FORMS[form]) as cluster:
        runs = [cluster.submit(wait_for_file, str(tmp_path / str(number)), gate) for number in range(cluster.workers)]
        while len(list(tmp_path.iterdir())) < len(runs):
            time.sleep(0.01)
        waits = [cluster.submit(abs, -number) for number in range(40)]
        after = cluster.submit(abs, waits[-1])
        assert all(one.running() for one in runs) and not waits[-1].running() and not waits[-1].done()
        heard: list[Any] = []
        waits[-1].add_done_callback(heard.append)
        assert waits[-1].cancel() is True and waits[-1].cancelled() and waits[-1].done()
        assert heard == [waits[-1]]
        with pytest.raises(concurrent.futures.CancelledError):
            waits[-1].result(0)
        assert waits[-1].cancel() is True, "it is cancelled"
        assert runs[0].cancel() is True and not runs[0].running()
        with pytest.raises(TaskCancelledError, match=f"task {runs[0].task} was cancelled"):
            runs[0].result(0)
        open(gate, "w").close()
        assert cluster.gather(waits[:-1]) == [*range(39)]
        assert waits[0].cancel() is False and waits[0].result() == 0 and not waits[0].cancelled()
        with pytest.raises(TaskCancelledError):
            after.result(60)
        assert cluster.cancel(waits) == 0
    assert waits[0].cancel() is False and waits[0].running() is False


def test_maps_and_outputs_can_be_cancelled(tmp_path: Path):
    gate = str(tmp_path / "gate")
    with Cluster(1) as cluster:
        mapped = cluster.map(wait_for_file, [str(tmp_path / "begun")] * 3, [gate] * 3, chunk=1)
        assert mapped.cancel() is True and mapped.done() and mapped.cancel() is False
        first, second = cluster.options(outputs=2).submit(wait_for_file, str(tmp_path / "begun"), gate)
        assert second.cancel() and first.cancelled() and second.cancelled() and not cluster._open().outputs
        many = [cluster.submit(wait_for_file, str(tmp_path / "begun"), gate) for _ in range(3)]
        assert cluster.cancel(many) == 3


def test_a_task_over_its_time_limit_is_a_timeout():
    for kind in ("processes", "threads"):
        with Cluster(1, kind=kind) as cluster:
            slow = cluster.options(timeout=0.1).submit(time.sleep, 2)
            with pytest.raises(TimeoutError, match=r"time limit of 0\.1 s") as raised:
                slow.result()
            assert isinstance(raised.value, daws.TaskTimeoutError) and isinstance(raised.value, TaskKilledError)


def test_on_event_loops():
    async def main(cluster: Cluster) -> None:
        assert await asyncio.gather(*[cluster.submit(abs, -one) for one in range(3)]) == [0, 1, 2]
        assert await asyncio.wait_for(cluster.submit(abs, -5), 60) == 5
        slow = cluster.submit(time.sleep, 1000)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slow, 0.05)
        assert not slow.done(), "nobody has cancelled the task"
        asking = asyncio.ensure_future(slow)
        await asyncio.sleep(0)
        slow.cancel()
        with pytest.raises(TaskCancelledError):
            await asking

    with Cluster(1) as cluster:
        asyncio.run(main(cluster))


def cancels_and_catches() -> str:
    future = daws.current().options(timeout=0.05).submit(time.sleep, 100)
    try:
        future.result()
    except TimeoutError as error:
        return type(error).__name__
    return ""


def test_time_limits_inside_of_tasks():
    with Cluster(2) as cluster:
        assert cluster.submit(cancels_and_catches).result() == "TaskTimeoutError"


# -- what map gives ----------------------------------------------------------------------------------------------------


def invert(number: int) -> float:
    return 1 / number


def adds(*numbers: float) -> float:
    return sum(numbers)


@pytest.fixture(scope="module", params=FORMS)
def any_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(2, **FORMS[request.param]) as one:
        yield one


def test_items_are_futures_in_the_order_of_their_ends(any_cluster: Cluster, tmp_path: Path):
    gate = tmp_path / "gate"
    mapped = any_cluster.map(wait_for_file, [str(tmp_path / "begun")] * 2, [str(gate), str(tmp_path)], chunk=1)
    ending = daws.as_completed(mapped)
    first = next(ending)
    assert (first.item, first.result(), first.done(), first.state) == (1, None, True, "done")
    gate.touch()
    (last,) = ending
    assert last.item == 0 and not last.cancelled() and not last.running() and last.exception() is None


@pytest.mark.parametrize("chunk", [1, 3, None])
def test_items_that_raise_and_those_that_do_not(any_cluster: Cluster, chunk: int | None):
    mapped = any_cluster.map(invert, range(10), chunk=chunk)
    found = {one.item: one for one in daws.as_completed(mapped)}
    assert sorted(found) == [*range(10)] and found[4].result() == 0.25 and found[4].state == "done"
    assert isinstance(found[0].exception(), ZeroDivisionError) and found[0].state == "failed"
    with pytest.raises(ZeroDivisionError):
        found[0].result()
    assert any_cluster.submit(adds, found[1], found[2]).result() == 1.5
    assert daws.gather([found[1], found[2]]) == [1.0, 0.5]
    assert daws.gather([found[0], found[2]], errors="skip") == [0.5]
    done, not_done = daws.wait(mapped)
    assert {one.item for one in done} == {*range(10)} and not not_done
    assert found[3] in done and found[3] == next(one for one in done if one.item == 3)
    assert daws.wait(mapped, return_when="FIRST_EXCEPTION").done


def test_lists_may_have_futures_items_and_maps(any_cluster: Cluster):
    mapped, future = any_cluster.map(abs, range(5), chunk=2), any_cluster.submit(abs, -7)
    (item,) = [one for one in daws.as_completed(mapped) if one.item == 2]
    mixed: list[Any] = [mapped, future, item]
    found = [*daws.as_completed(mixed)]
    assert sorted(one.result() for one in found) == [0, 1, 2, 2, 3, 4, 7]
    assert len(daws.progress([mapped, future])) == 6
    assert any_cluster.gather({"x": mapped, "y": future}) == {"x": [0, 1, 2, 3, 4], "y": 7}
    assert any_cluster.cancel(item) == 0 and item.cancel() is False
    with pytest.raises(AttributeError, match=r"future\.result\(\)"):
        _ = item.get
    with pytest.raises(UsageError, match="is one future"):
        daws.as_completed(item)
    with pytest.raises(UsageError, match="is no future of daws"):
        daws.wait([3])  # type: ignore[list-item]


def test_waiting_for_maps_has_a_limit(any_cluster: Cluster, tmp_path: Path):
    mapped = any_cluster.map(wait_for_file, [str(tmp_path / "begun")] * 4, [str(tmp_path / "gate")] * 4, chunk=2)
    with pytest.raises(TimeoutError, match=r"2 of 2 tasks have not ended within 0\.01 s"):
        next(daws.as_completed(mapped, 0.01))
    done, not_done = daws.wait(mapped, 0.01)
    assert not done and len(not_done) == 4
    (tmp_path / "gate").touch()
    assert len(daws.wait(mapped).done) == 4


def as_completed_inside() -> list[int]:
    here = daws.current()
    mixed: list[Any] = [here.map(abs, [-1, -2, -3]), here.submit(abs, -9)]
    return sorted(one.result() for one in daws.as_completed(mixed))


def test_inside_of_tasks(any_cluster: Cluster):
    assert any_cluster.submit(as_completed_inside).result() == [1, 2, 3, 9]


def test_async_for(any_cluster: Cluster):
    async def main() -> None:
        futures = [any_cluster.submit(abs, -one) for one in range(20)]
        assert sorted([one.result() async for one in daws.as_completed(futures)]) == [*range(20)]
        mapped = any_cluster.map(abs, range(5))
        assert sorted([await one async for one in daws.as_completed(mapped)]) == [*range(5)]
        slow = any_cluster.submit(time.sleep, 0.5)
        with pytest.raises(TimeoutError, match="1 of 1 tasks"):
            async for _ in daws.as_completed([slow], 0.01):
                pass

    asyncio.run(main())


def test_the_standard_library_is_told_what_to_use_instead(any_cluster: Cluster):
    with pytest.raises(AttributeError, match=r"daws\.wait or daws\.as_completed"):
        concurrent.futures.wait([any_cluster.submit(abs, 1)])  # type: ignore[arg-type]
