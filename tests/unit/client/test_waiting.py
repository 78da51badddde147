"""Waiting for many futures at once: one wake-up for many ends, and none too late for an error."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from daws.client import future, waiting
from daws.client.cluster import Cluster
from daws.client.waiting import TOGETHER, gather
from daws.model.errors import TaskCancelledError, TaskKilledError, UsageError

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

    monkeypatch.setattr(waiting, "acquire", spy)
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


def test_a_map_has_no_futures_to_wait_for(cluster: Cluster, fifo: Callable[[str], str]):
    mapped: Any = cluster.map(read, [fifo("never")])
    for wait in (waiting.wait, lambda what: list(waiting.as_completed(what))):
        with pytest.raises(UsageError, match="<Mapped: 1 items in 1 tasks, 0 ended> has results, not futures"):
            wait(mapped)  # at once, not when it has ended
    cluster.cancel(mapped)
    assert isinstance(mapped.futures[0].exception(60), TaskCancelledError)
