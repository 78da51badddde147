import pytest

from daws.strategy.decisions import DEDICATED, SHARED
from daws.strategy.place.late import PlaceLate
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of, ready_of

BIG = 10**6


@pytest.mark.parametrize(
    ("places", "loads", "choice"),
    [
        ((2,), {}, 2),
        ((2,), {2: 8}, 2),
        ((2,), {2: 9}, SHARED),
        ((0, 2), {}, DEDICATED),
        ((77,), {}, SHARED),
    ],
)
def test_to_the_data_unless_its_node_is_overloaded(places: tuple[int, ...], loads: dict[int, int], choice: int):
    view, ready = FakeView(loads=loads), ready_of((1, BIG, -1, places))
    place = PlaceLate()
    assert place.choose(view, ready, SplitMix64(0)) == choice
    assert place.explain(view, ready, SplitMix64(0))["choice"] == choice


def test_what_reads_nothing_large_waits_for_whoever_pulls_it():
    assert PlaceLate().choose(FakeView(), ready_of(), SplitMix64(0)) == SHARED
    assert PlaceLate().choose(FakeView(), ready_of((1, 9, -1, (2,))), SplitMix64(0)) == SHARED
    assert PlaceLate().explain(FakeView(), ready_of(), SplitMix64(0))["best"] == -1


def test_an_overloaded_node_that_alone_can_run_it_gets_it():
    view = FakeView(members=members_of(4, contexts={2: "gpu"}), loads={2: 100})
    assert PlaceLate().choose(view, ready_of((1, BIG, -1, (2,)), context="gpu"), SplitMix64(0)) == 2
