from daws.strategy.adapt.nothing import AdaptNothing
from daws.strategy.decisions import Changes
from tests.unit.strategy.fakes import FakeView


def test_it_starts_as_told_and_is_never_asked_again():
    adapt = AdaptNothing()
    assert adapt.start(0.3) == Changes(threshold=0.3, relaxing=True)
    assert adapt.period == 0
    assert adapt.adjust(FakeView(moved_bytes=10**15, run_ns=1)) is None
    assert adapt.explain(FakeView())["choice"] is None
