"""Classes that travel by value, to the workers of a real cluster and back."""

import datetime
import enum
import gc
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import pytest

import daws


@pytest.fixture(scope="module")
def cluster() -> Iterator[daws.Cluster]:
    with daws.Cluster(1) as cluster:
        yield cluster


def echo(value: Any) -> Any:
    return value


def test_a_class_is_changed_by_its_own_process_alone(cluster: daws.Cluster):
    class Counter:
        count = 0
        names: ClassVar[list[str]] = []

        def step(self) -> int:
            type(self).count += 1
            return type(self).count

    steps = []
    for _ in range(3):
        steps.append(cluster.submit(lambda one: one.step(), Counter()).result())
        cluster.submit(gc.collect).result()  # takes classes that nothing refers to
    assert steps == [1, 2, 3], "what a worker keeps in a class stays there"
    step = Counter.step
    assert type(cluster.submit(echo, Counter()).result()) is Counter
    assert Counter.count == 0 and Counter.step is step, "and is not brought back"
    Counter.count = 10
    assert cluster.submit(lambda one: one.step(), Counter()).result() == 11
    Counter.names.append("in place")
    assert cluster.submit(lambda one: one.names, Counter()).result() == ["in place"]
    Counter.step = lambda self: -1  # type: ignore[method-assign]
    assert cluster.submit(lambda one: one.step(), Counter()).result() == -1


def test_nothing_of_the_users_runs_when_a_class_is_put_together(cluster: daws.Cluster):
    ran: list[str] = []

    class Meta(type):
        def __new__(mcs, name: str, bases: tuple[type, ...], names: dict[str, Any], *, word: str) -> "Meta":
            ran.append(name)
            return super().__new__(mcs, name, bases, {**names, "word": word})

        def __init__(cls, name: str, bases: tuple[type, ...], names: dict[str, Any], *, word: str) -> None:
            super().__init__(name, bases, names)

    class Base:
        def __init_subclass__(cls, *, key: str) -> None:
            ran.append(key)

    class Made(metaclass=Meta, word="made"):
        word: str

    class Child(Base, key="child"):
        def seen(self) -> list[str]:
            return ran

    assert cluster.submit(lambda: Made.word).result() == "made"
    assert cluster.submit(lambda one: one.seen(), Child()).result() == ["Made", "child"]
    assert ran == ["Made", "child"]


def test_members_of_enums_are_what_a_constructor_made_of_them(cluster: daws.Cluster):
    class Base(enum.Enum):
        def __init__(self, mass: float, name: str) -> None:
            self.mass = mass

        @property
        def heavy(self) -> bool:
            return self.mass > 1

    class Planet(Base):
        EARTH = (1.0, "earth")
        JUPITER = (318.0, "jupiter")
        LARGEST = JUPITER

    class Unhashable(enum.Enum):
        A = [1]  # noqa: RUF012

    class Pair(tuple[int, int], enum.Enum):
        ONE = (1, 2)
        TWO = (3, 4)

    class Day(datetime.date, enum.Enum):
        FIRST = 2020, 1, 2

    assert cluster.submit(lambda: (Day.FIRST.year, Day.FIRST.isoformat())).result() == (2020, "2020-01-02")
    assert cluster.submit(echo, Day.FIRST).result() is Day.FIRST
    assert cluster.submit(lambda: [one.heavy for one in Planet]).result() == [False, True]
    assert cluster.submit(lambda: Planet["LARGEST"]).result() is Planet.JUPITER
    assert cluster.submit(echo, Unhashable.A).result() is Unhashable.A
    assert cluster.submit(lambda: [(one[0], one.value) for one in Pair]).result() == [(1, (1, 2)), (3, (3, 4))]
    assert cluster.submit(echo, Pair.TWO).result() is Pair.TWO


def test_a_class_that_is_defined_in_a_task_is_one_class_here(cluster: daws.Cluster):
    def make() -> Any:
        class Inside(NamedTuple):
            x: int

        make.kind = Inside = getattr(make, "kind", Inside)  # type: ignore[attr-defined, misc]
        return Inside(1)

    first, second = cluster.submit(make).result(), cluster.submit(make).result()
    assert type(first) is type(second) and first == second == (1,)


def test_large_results_come_back_as_the_same_class(cluster: daws.Cluster):
    class Page(NamedTuple):
        text: str

    found = cluster.submit(lambda: [Page("x" * 1000) for _ in range(1000)]).result()
    assert {type(page) for page in found} == {Page}
