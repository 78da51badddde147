"""Tasks that fail because of another: the original exception, its traceback, and the way from there to here."""

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

import daws
from daws import Cluster
from daws.client.cancelled import TaskCancelledError
from daws.client.future import Future
from daws.client.gathering import gather
from daws.client.waiting import as_completed
from daws.futures import Executor
from daws.model.errors import CommandError, TaskKilledError
from daws.workers.errors import RemoteTraceback

LONG_S = 60.0


class OwnError(ValueError):
    def __init__(self, name: str, *, code: int) -> None:
        super().__init__(f"{name} is bad")
        self.code = code


def load(name: str) -> str:
    raise OwnError(name, code=7)


def same(value: Any) -> Any:
    return value


def mean(value: Any) -> Any:
    return value


@pytest.fixture(
    scope="module",
    params=[{}, {"kind": "threads"}, {"nodes": 2}],
    ids=["node on a thread", "threads", "node processes"],
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(2, **request.param) as made:
        yield made


def check(error: BaseException | None, *said: str) -> None:
    assert type(error) is OwnError, repr(error)
    assert str(error) == "stars.csv is bad" and error.code == 7
    assert isinstance(error.__cause__, RemoteTraceback)
    assert f'File "{__file__}", line {load.__code__.co_firstlineno + 1}, in load' in str(error.__cause__)
    (note,) = error.__notes__
    for text in said:
        assert text in note, note


def test_the_original_exception_is_raised_and_the_way_is_named(cluster: Cluster):
    root = cluster.submit(load, "stars.csv")
    between = cluster.submit(mean, root)
    child, root_task, between_task = cluster.submit(same, between), root.task, between.task
    del root, between
    try:
        child.result(LONG_S)
    except ValueError as error:
        check(
            error,
            f"task {child.task} (same) was not run: it needs task {between_task} (mean), which needs task",
            f"task {root_task} (load), which failed on node ",
            "OwnError: stars.csv is bad",
        )
    else:
        pytest.fail("nothing was raised")


def test_the_task_that_raised_is_named(cluster: Cluster):
    future = cluster.submit(load, "stars.csv")
    check(future.exception(LONG_S), f"raised by task {future.task} (load) on node ")
    assert future.exception() is not future.exception(), "one that is raised refers to who asked"


def test_a_task_that_is_submitted_later_fails_as_well(cluster: Cluster):
    parent = cluster.submit(load, "stars.csv")
    assert parent.exception(LONG_S) is not None
    child, parent_task = cluster.submit(same, parent), parent.task
    del parent
    gc.collect()
    check(child.exception(LONG_S), f"(same) was not run: it needs task {parent_task} (load)")


def test_however_it_is_asked_for(cluster: Cluster):
    children = [cluster.submit(same, cluster.submit(load, "stars.csv")) for _ in range(3)]
    for error in gather(children, errors="return", timeout=LONG_S):
        check(error, "was not run")
    for child in as_completed(children, LONG_S):
        check(child.exception(), "was not run")
    with pytest.raises(OwnError):
        gather(children)

    async def ask() -> None:
        with pytest.raises(OwnError):
            await children[0]

    asyncio.run(ask())


def test_items_of_a_map_fail_what_reads_them(cluster: Cluster):
    mapped = cluster.map(load, ["stars.csv", "other"], chunk=1)
    check(cluster.submit(same, mapped).exception(LONG_S), "raised by task")
    item = next(one for one in daws.as_completed(mapped) if one.item == 0)
    for given in (item, [item]):
        error = cluster.submit(same, given).exception(LONG_S)
        check(error, "raised by task")
        assert error is not None and "an item of a map" in str(error.__cause__)
    with pytest.raises(OwnError):
        mapped[0]


def test_in_tasks_of_tasks(cluster: Cluster):
    def parent() -> list[str]:
        here = daws.current()
        child = here.submit(same, here.submit(mean, here.submit(load, "stars.csv")))
        try:
            child.result()
        except ValueError as error:
            return [type(error).__name__, str(error.__cause__), *error.__notes__]
        return []

    for _ in range(20):  # whether a task fails before the next is created is up to chance
        kind, cause, note = cluster.submit(parent).result(LONG_S)
        assert kind == "OwnError" and "in load" in cause
        assert "need" in note and "(load), which failed on node" in note
    unseen = cluster.submit(lambda: daws.current().submit(same, daws.current().submit(load, "stars.csv")).result())
    error = unseen.exception(LONG_S)
    assert isinstance(error, OwnError) and "was not run" in error.__notes__[0]
    assert "in load" in str(error.__cause__)
    after = cluster.submit(same, unseen).exception(LONG_S)
    assert isinstance(after, OwnError) and len(after.__notes__) == 2


def test_many_children_share_one_exception(cluster: Cluster):
    parent = cluster.submit(load, "x" * 10_000)
    children = [cluster.submit(same, parent) for _ in range(300)]
    del parent
    assert all(isinstance(one.exception(LONG_S), OwnError) for one in children)
    assert len({id(one._what.failure) for one in children}) == 1


def test_commands_killed_workers_and_cancelled_roots():
    def end() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with Cluster(1) as cluster:
        made = cluster.run(["false"])
        error = cluster.submit(same, made).exception(LONG_S)
        assert isinstance(error, CommandError) and error.code == 1 and "was not run" in error.__notes__[0]
        error = cluster.submit(same, cluster.submit(end)).exception(LONG_S)
        assert isinstance(error, TaskKilledError) and "SIGKILL" in str(error)
        assert "was not run" in error.__notes__[0]
        blocked = cluster.submit(signal.pause)
        child = cluster.submit(same, blocked)
        blocked.cancel()
        assert isinstance(child.exception(LONG_S), TaskCancelledError)


def test_through_an_executor():
    with Executor(1) as executor:
        error = executor.submit(load, "stars.csv").exception(LONG_S)
        check(error, "raised by task 0 (load)")


def test_a_failure_of_a_future_that_was_let_go_of_is_freed_with_the_last_child(cluster: Cluster):
    child: Future[Any] = cluster.submit(same, cluster.submit(load, "stars.csv"))
    gc.collect()
    check(child.exception(LONG_S), "was not run")
