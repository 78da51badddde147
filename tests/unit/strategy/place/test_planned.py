import pytest

from daws.model.task import Ready
from daws.strategy.decisions import DEDICATED, SHARED
from daws.strategy.place.daws import PlaceDaws
from daws.strategy.place.planned import PlacePlanned
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, ObjectAt, members_of, ready_of

BIG: ObjectAt = (1, 10**9, 5, (3,))
SMALL: ObjectAt = (2, 10, 6, ())


def choose(ready: Ready, **view: object) -> int:
    return PlacePlanned().choose(FakeView(**view), ready, SplitMix64(0))  # type: ignore[arg-type]


def test_what_was_planned_goes_home_wherever_its_data_is():
    assert choose(ready_of(BIG, rank=7, home=2, planned=True)) == 2
    assert choose(ready_of(BIG, rank=7, home=0, planned=True)) == DEDICATED
    assert choose(ready_of(SMALL, rank=7, home=0, planned=True)) == SHARED, "whoever takes it has nothing to fetch"


@pytest.mark.parametrize(
    "ready",
    [
        ready_of(BIG, rank=7, home=2),  # of a live client: its home says only who got it first
        ready_of(BIG, home=2, planned=True),
        ready_of(BIG, rank=7, home=77, planned=True),
        ready_of(BIG, rank=7, home=2, planned=True, context="gpu"),
    ],
)
def test_what_has_no_plan_goes_by_its_data(ready: Ready):
    view = FakeView(members=members_of(4, contexts={3: "gpu>any"}))
    assert PlacePlanned().choose(view, ready, SplitMix64(0)) == PlaceDaws().choose(view, ready, SplitMix64(0)) == 3


def test_what_follows_a_task_that_was_stolen_stays_with_it_where_few_wait():
    here: ObjectAt = (1, 10**9, 5, (0,))
    other: ObjectAt = (4, 10**6, 7, (2,))
    ready = ready_of(here, other, rank=7, home=2, planned=True)
    assert choose(ready) == 2
    assert choose(ready, strays=frozenset([1])) == DEDICATED
    assert choose(ready, strays=frozenset([4])) == 2, "the largest input is where it was planned to be"
    assert choose(ready, cores=2, shared_count=1, strays=frozenset([1])) == DEDICATED
    assert choose(ready, cores=2, shared_count=1, dedicated_count=1, strays=frozenset([1])) == 2


def test_it_says_what_it_went_by():
    ready = ready_of((1, 10**9, 5, (0,)), rank=7, home=2, planned=True)
    reasons = PlacePlanned().explain(FakeView(strays=frozenset([1])), ready, SplitMix64(0))
    assert (reasons["planned"], reasons["home"], reasons["home_can_run"], reasons["astray"]) == (True, 2, True, True)
    assert reasons["choice"] == DEDICATED
