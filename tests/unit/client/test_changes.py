"""What functions by value use, and what is changed in place between two submits."""

import collections
import functools
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import daws
import daws.futures
from daws.data import functions
from tests.unit.runtime.cluster.machines import DEADLINE_S, Machines

KINDS: dict[str, dict[str, Any]] = {"processes": {}, "threads": {"kind": "threads"}, "nodes": {"nodes": 2}}


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """One node to connect to."""
    with Machines(tmp_path_factory.mktemp("changes")) as machines:
        machines.node(1, "processes")
        machines.wait_for(1)
        yield machines


@pytest.fixture(params=[*KINDS, "connect"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "connect":
        opened = request.getfixturevalue("machines").connect()
    else:
        opened = daws.Cluster(1, **KINDS[request.param])
    with opened as cluster:
        yield cluster


def session_of(cluster: daws.Cluster) -> Any:
    return cluster._session


class Settings:
    """Of this module, which workers can import; its instances have a state."""

    def __init__(self) -> None:
        self.rate = 0


class Slotted:
    __slots__ = ("rate",)
    rate: int


def _dict() -> Any:
    values = {"rate": 0}
    return lambda: values["rate"], lambda n: values.update(rate=n)


def _new_key() -> Any:
    values: dict[int, int] = {}
    return lambda: max(values), lambda n: values.update({n: n})


def _nested() -> Any:
    values = ({"all": [SimpleNamespace(rate=0)]},)
    return lambda: values[0]["all"][0].rate, lambda n: setattr(values[0]["all"][0], "rate", n)


def _list() -> Any:
    values = [0]
    return lambda: values[-1], values.append


def _set() -> Any:
    values = {0}
    return lambda: max(values), values.add


def _bytearray() -> Any:
    values = bytearray(1)
    return lambda: values[0], lambda n: values.__setitem__(0, n)


def _deque() -> Any:
    values = collections.deque([0], maxlen=1)
    return lambda: values[0], values.append


def _namespace() -> Any:
    values = SimpleNamespace(rate=0)
    return lambda: values.rate, lambda n: setattr(values, "rate", n)


def _instance() -> Any:
    values = Settings()
    return lambda: values.rate, lambda n: setattr(values, "rate", n)


def _slots() -> Any:
    values = Slotted()
    return lambda: values.rate, lambda n: setattr(values, "rate", n)


def _instance_of_a_local_class() -> Any:
    class Local:
        rate = 0

    values = Local()
    return lambda: values.rate, lambda n: setattr(values, "rate", n)


def _small_array() -> Any:
    values = np.zeros(3)
    return lambda: int(values[1]), lambda n: values.__setitem__(1, n)


def _large_array() -> Any:
    values = np.zeros(100_000)
    return lambda: int(values[-1]), lambda n: values.__setitem__(-1, n)


def _large_list() -> Any:
    values = [0] * 300_000
    return lambda: values[-1], lambda n: values.__setitem__(-1, n)


def _through_a_function() -> Any:
    values = {"rate": 0}

    def inner() -> int:
        return values["rate"]

    return lambda: inner(), lambda n: values.update(rate=n)


def _function_in_a_dict() -> Any:
    rate = 0

    def change(n: int) -> None:
        nonlocal rate
        rate = n

    steps = {"first": lambda: rate}
    return lambda: steps["first"](), change


def _another_function_in_a_dict() -> Any:
    steps: dict[str, Callable[[], int]] = {}
    return lambda: steps["first"](), lambda n: steps.update(first=lambda: n)


def _default() -> Any:
    values = [0]

    def function(given: list[int] = values) -> int:
        return given[-1]

    return function, values.append


def _attribute_of_a_function() -> Any:
    def inner() -> int:
        return 0

    inner.rate = 0  # type: ignore[attr-defined]
    return lambda: inner.rate, lambda n: setattr(inner, "rate", n)  # type: ignore[attr-defined]


def _itself() -> Any:
    values: list[Any] = [0]
    values.append(values)
    return lambda: values[1][0], lambda n: values.__setitem__(0, n)


def _beside_what_cannot_be_compared() -> Any:
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    values = {"rate": 0, "local": threading.local(), "deep": deep, "proxy": Settings.__dict__.get("rate")}
    return lambda: values["rate"], lambda n: values.update(rate=n)


def _random() -> Any:
    values = random.Random(0)
    return lambda: values.randrange(1000), values.seed


def _generator() -> Any:
    box = [np.random.default_rng(0)]
    return lambda: int(box[0].integers(1000)), lambda n: [box[0].integers(1000) for _ in range(n)]


def _partial() -> Any:
    values = [0]
    last = functools.partial(max, values)
    return lambda: last(), values.append


def _method_of_a_list() -> Any:
    values = [0]
    pop = values.pop
    return lambda: pop(), values.append


def _function_in_a_tuple() -> Any:
    values = {"rate": 0}
    steps = (lambda: values["rate"],)
    return lambda: steps[0](), lambda n: values.update(rate=n)


CASES = [
    _dict,
    _new_key,
    _nested,
    _list,
    _set,
    _bytearray,
    _deque,
    _namespace,
    _instance,
    _slots,
    _instance_of_a_local_class,
    _small_array,
    _large_array,
    _large_list,
    _through_a_function,
    _function_in_a_dict,
    _another_function_in_a_dict,
    _default,
    _attribute_of_a_function,
    _itself,
    _beside_what_cannot_be_compared,
    _partial,
    _method_of_a_list,
    _function_in_a_tuple,
]


def test_each_task_has_what_was_there_when_it_was_submitted(cluster: daws.Cluster):
    for case in CASES:
        function, change = case()
        futures = []
        for n in range(1, 5):
            change(n)
            futures.append(cluster.submit(function))
        assert cluster.gather(futures) == [1, 2, 3, 4], case.__name__


def test_map_tasks_and_options_notice_it(cluster: daws.Cluster):
    function, change = _dict()
    task = daws.task(function)
    item = lambda _: function()  # noqa: E731
    found: list[tuple[Any, ...]] = []
    for n in range(1, 4):
        change(n)
        found.append((cluster.map(item, range(2)), task(), cluster.options(retries=1).submit(function)))
    for n, (mapped, *futures) in enumerate(found, 1):
        assert [*mapped] == [n, n] and cluster.gather(futures) == [n, n]


def test_an_executor_notices_it():
    function, change = _dict()
    with daws.futures.Executor(1) as executor:
        futures = []
        for n in range(1, 4):
            change(n)
            futures.append(executor.submit(function))
        assert [one.result(DEADLINE_S) for one in futures] == [1, 2, 3]


def test_tasks_that_submit_tasks(cluster: daws.Cluster):
    def outer() -> list[int]:
        values = {"rate": 0}
        futures = []
        for n in range(1, 4):
            values["rate"] = n
            futures.append(daws.current().submit(lambda: values["rate"]))
        inner = lambda: values["rate"]  # noqa: E731
        for n in range(4, 7):
            values["rate"] = n
            futures.append(daws.current().submit(inner))
        return [one.result() for one in futures]

    assert cluster.submit(outer).result(DEADLINE_S) == [1, 2, 3, 4, 5, 6]


def test_attributes_of_a_class(cluster: daws.Cluster):
    values = {"rate": 0}

    class Config:
        rate = 0
        inside = SimpleNamespace(rate=0)

        @staticmethod
        def from_global() -> int:
            return values["rate"]

    def function() -> tuple[Any, ...]:
        return Config.rate, Config.inside.rate, Config.from_global(), getattr(Config, "late", 0)

    for n in range(1, 4):
        Config.rate = Config.inside.rate = values["rate"] = n
        assert cluster.submit(function).result(DEADLINE_S) == (n, n, n, 0)
    Config.late = 5  # type: ignore[attr-defined]
    assert cluster.submit(function).result(DEADLINE_S) == (3, 3, 3, 5)


@pytest.mark.parametrize("case", [_random, _generator])
def test_generators_of_random_numbers_change_only_with_use(case: Callable[[], Any]):
    function, change = case()
    with daws.Cluster(1) as cluster:
        first = cluster.submit(function).result(DEADLINE_S)
        count = len(session_of(cluster).functions.by_content)
        cluster.submit(function).result(DEADLINE_S)
        assert len(session_of(cluster).functions.by_content) == count
        change(3)
        cluster.submit(function).result(DEADLINE_S)
        assert len(session_of(cluster).functions.by_content) == count + 1
    assert isinstance(first, int)


def test_what_was_not_changed_is_not_sent_again():
    with daws.Cluster(1) as cluster:
        for case in CASES:
            function, _ = case()
            if case in (_large_array, _large_list, _new_key, _slots, _another_function_in_a_dict):
                continue
            numbers = {session_of(cluster).number_of(function) for _ in range(3)}
            assert len(numbers) == 1, case.__name__


def test_what_has_changed_very_often_goes_with_the_arguments(cluster: daws.Cluster):
    function, change = _dict()
    count = functions.CHANGES_MAX + 50
    futures = []
    for n in range(count):
        change(n)
        futures.append(cluster.submit(function))
    assert cluster.gather(futures) == [*range(count)]
    assert len(session_of(cluster).functions.by_content) < functions.CHANGES_MAX + 10


def test_globals_of_main():
    script = """
import threading, types
import daws
params, space, lock = {'lr': 0}, types.SimpleNamespace(lr=0), threading.Lock()
class Cfg: lr = 0
def of_dict(): return params['lr']
def of_space(): return space.lr
def of_class(): return Cfg.lr
def attributes(): return [].lock if params is None else params['lr']  # a name that is an attribute's alone
if __name__ == '__main__':
    with daws.Cluster(1) as cluster:
        found = []
        for number in (1, 2, 3):
            params['lr'] = space.lr = Cfg.lr = number
            found += cluster.gather([cluster.submit(one) for one in (of_dict, of_space, of_class, attributes)])
        assert found == [1] * 4 + [2] * 4 + [3] * 4, found
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=DEADLINE_S)


def test_memo_notices_it(tmp_path: Any):
    function, change = _dict()
    with daws.Cluster(1, memo=tmp_path) as cluster:
        found = []
        for n in (1, 2, 1):
            change(n)
            found.append(cluster.options(memo=True).submit(function).result(DEADLINE_S))
    assert found == [1, 2, 1]
