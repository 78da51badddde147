"""Functions that are coroutines, as tasks: on every kind of cluster, and inside of tasks."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import daws
from daws.client.cluster import Cluster
from daws.workers.coroutines import is_coroutine_function

FORMS: dict[str, dict[str, Any]] = {"thread": {}, "threads": {"kind": "threads"}, "nodes": {"nodes": 2}}


@pytest.fixture(scope="module", params=FORMS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(2, **FORMS[request.param]) as one:
        yield one


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def fail(number: int) -> int:
    await asyncio.sleep(0)
    raise ValueError(f"number {number}")


async def both(number: int) -> tuple[int, int]:
    return number, await double(number)


def hidden(number: int) -> Any:
    """No coroutine function, but its result is a coroutine."""
    return double(number)


async def submits(number: int) -> list[int]:
    here: Any = daws.current()
    one = await here.submit(double, number)
    return [one, *await asyncio.gather(*[here.submit(pow, one, power) for power in (1, 2)])]


class Tool:
    async def times(self, number: int) -> int:
        return await double(number)

    async def __call__(self, number: int) -> int:
        return await double(number)


def test_coroutine_functions_are_told_from_others():
    assert all(map(is_coroutine_function, [double, partial(double, 1), Tool().times, Tool(), Tool.times]))
    assert not any(map(is_coroutine_function, [hidden, len, int, partial(hidden, 1), Tool, "text".upper]))


@pytest.mark.parametrize("function", [double, partial(double), Tool().times, Tool(), hidden, daws.task(double)])
def test_coroutine_functions_run(cluster: Cluster, function: Any):
    assert cluster.submit(function, 4).result() == 8
    assert cluster.options(retries=1).submit(function, 5).result() == 10


def test_closures_maps_errors_and_outputs(cluster: Any):
    base = 7

    async def add(number: int) -> int:
        return number + base

    assert cluster.submit(add, 1).result() == 8
    assert list(cluster.map(double, range(5))) == [0, 2, 4, 6, 8]
    assert list(cluster.map(hidden, range(5))) == [0, 2, 4, 6, 8]
    with pytest.raises(ValueError, match="number 3"):
        cluster.submit(fail, 3).result()
    found = cluster.gather(cluster.map(fail, [4]), errors="return")
    assert isinstance(found[0], ValueError)
    one, other = cluster.options(outputs=2).submit(both, 3)
    assert (one.result(), other.result()) == (3, 6)


def test_coroutines_submit_tasks_and_await_them(cluster: Any):
    assert cluster.submit(submits, 3).result() == [6, 6, 36]


class Proxy:
    """Has whatever it is asked for."""

    def __getattr__(self, name: str) -> "Proxy":
        if name.startswith("__"):
            raise AttributeError(name)
        return Proxy()

    def __call__(self) -> int:
        return 5


def test_an_object_that_answers_to_every_name_is_no_coroutine():
    assert not is_coroutine_function(Proxy())
