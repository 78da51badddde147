from daws.strategy.decisions import SHARED
from daws.strategy.place.keep import PlaceKeep
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, ready_of


def test_everything_is_shared():
    view, ready = FakeView(), ready_of((1, 10**12, -1, (3,)), home=2)
    assert PlaceKeep().choose(view, ready, SplitMix64(0)) == SHARED
    assert PlaceKeep().explain(view, ready, SplitMix64(0))["choice"] == SHARED
