from daws.strategy.balance.none import BalanceNone
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView


def test_nobody_asks_and_nothing_moves():
    balance, view = BalanceNone(), FakeView()
    assert balance.mode == "none"
    assert balance.targets(view, SplitMix64(0)) == []
    assert balance.pick(view, [(1, 5)]) == balance.explain(view, [(1, 5)])["choice"] == -1
    assert balance.amount(view, 5) == balance.start_neighbours(9) == 0
    assert balance.after_failure(view) == balance.after_success(view) == (view.poll_ns, 0)
    assert balance.start_poll_ns() > 0
