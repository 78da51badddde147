"""What thieves wish for."""

import pytest

from daws.model.context import Wish
from daws.model.errors import StrategyError
from daws.strategy import answers, parse_strategy
from daws.strategy.balance.give import BalanceGive
from daws.strategy.balance.master_worker import BalanceMasterWorker
from daws.strategy.balance.none import BalanceNone
from daws.strategy.balance.random_steal import BalanceRandomSteal
from daws.strategy.balance.steal import BalanceSteal
from tests.unit.strategy.fakes import FakeView

THIEVES = (BalanceSteal, BalanceRandomSteal, BalanceMasterWorker)


@pytest.mark.parametrize("cls", THIEVES)
def test_by_default_there_is_no_wish(cls):
    assert cls().wish is None and cls(take="order").wish is None
    assert cls(take="biggest", take_low=3).wish == Wish("biggest", 3)
    assert cls(take_high=3).wish == Wish("order", high=3)


@pytest.mark.parametrize("cls", THIEVES)
def test_wishes_are_explained(cls):
    reasons = cls(take="smallest", take_low=-1, take_high=9).explain(FakeView(), [(1, 2)])
    assert (reasons["take"], reasons["take_low"], reasons["take_high"], reasons["choice"]) == ("smallest", -1, 9, 1)


def test_who_does_not_ask_has_no_wish():
    assert BalanceNone().wish is None and BalanceGive().wish is None
    assert {name for name, cls in answers("balance").items() if hasattr(cls, "take")} >= {
        *("steal", "random-steal", "master-worker")
    }


def test_an_empty_range_is_refused():
    with pytest.raises(StrategyError, match="take-high=2 is less than take-low=3"):
        parse_strategy("mlb:take-low=3,take-high=2")
    with pytest.raises(StrategyError, match="take=largest: expected 'order' or 'biggest' or 'smallest' or 'any'"):
        parse_strategy("mlb:take=largest")


def test_the_order_of_executors_is_another_matter():
    strategy = parse_strategy("constellation:rank=range,low=1,high=5,take=biggest")
    assert strategy.balance.wish == Wish("biggest"), "the range of the order is not that of the thieves"
