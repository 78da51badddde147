"""Functions whose calls are tasks."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import daws
from daws.client import current
from daws.client.cluster import Cluster
from daws.client.options import options_of
from daws.client.tasks import Task
from daws.model.errors import UsageError


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(2) as one:
        yield one


@daws.task
def square(x: int) -> int:
    """The square of a number."""
    return x * x


@daws.task(retries=1)
def raises_once(path: str) -> str:
    try:
        os.mkdir(path)
    except FileExistsError:
        return "at last"
    raise ValueError("the first time")


@daws.task
def total(numbers: dict[str, list[int]]) -> int:
    return sum(numbers["x"])


def test_calls_that_take_each_other_s_futures_make_the_graph(cluster: Cluster):
    future = square(3)
    assert future.result() == 9
    assert square(square(square(2))).result() == 256
    assert total({"x": [square(x) for x in range(4)]}).result() == 14


def test_a_task_looks_like_its_function():
    assert square.__name__ == "square" and square.__doc__ == "The square of a number."
    assert square.plain(3) == square.__wrapped__(3) == 9, "without any cluster"
    assert "test_tasks.square" in repr(square)


def test_options(cluster: Cluster, tmp_path: Path):
    assert raises_once(str(tmp_path / "one")).result() == "at last"
    never = raises_once.options(retries=0)
    assert isinstance(never(str(tmp_path / "two")).exception(), ValueError)
    assert raises_once.options(priority=3)._checked.retries == 1, "others stay as they are"
    quotient, rest = daws.task(divmod).options(outputs=2)(7, 2)
    assert (quotient.result(), rest.result()) == (3, 1)
    with pytest.raises(UsageError, match="'colour'"):
        square.options(colour="red")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="timeout=-1"):
        daws.task(timeout=-1)(pow)


def call(function: Any, *args: Any) -> Any:
    return function.plain(*args), type(function).__name__


def test_tasks_travel_as_arguments(cluster: Cluster):
    assert cluster.submit(call, square, 3).result() == (9, "Task")
    assert cluster.submit(call, square.options(cores=2), 3).result() == (9, "Task")
    local = daws.task(lambda x: x + 1)
    assert cluster.submit(call, local, 3).result() == (4, "Task")


def test_a_task_of_a_module_travels_by_name():
    assert len(pickle.dumps(square)) < 100
    again = pickle.loads(pickle.dumps(square.options(cores=2)))
    assert isinstance(again, Task) and again._named is square
    assert again._checked == options_of(cores=2)


class Tool:
    def __init__(self, factor: int) -> None:
        self.factor = factor

    @daws.task
    def times(self, x: int) -> int:
        return self.factor * x


def test_methods_may_be_tasks(cluster: Cluster):
    assert Tool(3).times(5).result() == 15


def test_the_innermost_cluster_is_meant(cluster: Cluster):
    with Cluster(1) as inner:
        assert current.cluster() is inner
    assert current.cluster() is cluster
    other = daws.use(Cluster(1))
    assert current.cluster() is other
    other.close()
    assert current.cluster() is cluster


SCRIPT = """
import daws

@daws.task
def fib(n):
    return n if n < 2 else fib.plain(n - 1) + fib.plain(n - 2)

@daws.task
def add(*numbers):
    return sum(numbers)

try:
    fib(3)
except daws.UsageError as error:
    print(error)
with daws.Cluster(2):
    print(add(fib(10), fib(11)).result())
"""


def test_tasks_of_a_script(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    out = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert "no cluster" in out.stdout and out.stdout.splitlines()[-1] == "144", out.stderr


def test_a_task_inside_of_something_is_called_not_submitted(cluster: Cluster):
    for submit in (
        lambda: cluster.submit(partial(square, 3)),
        lambda: cluster.submit(Tool(3).times, 5),
    ):
        with pytest.raises(UsageError, match=r"is a task already: call it, .*\(…\), or give .*\.plain$"):
            submit()
    assert list(cluster.map(square.plain, [3])) == [9]
