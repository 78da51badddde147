import pytest

from daws.model.errors import StrategyError
from daws.strategy import parse_strategy
from daws.strategy.balance.index import BalanceIndex
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView


def test_idle_nodes_leave_their_name_with_the_first_member():
    balance = BalanceIndex()
    assert (
        balance.targets(FakeView(node=3), SplitMix64(0)) == [0]
        and balance.targets(FakeView(node=0), SplitMix64(0)) == []
    )
    assert balance.leaves_name(FakeView()) and balance.keeps_index
    assert not balance.waits_for_best and BalanceIndex(policy="max-cache-hit").waits_for_best


def test_explain_agrees_and_names_what_it_goes_by():
    reasons = BalanceIndex(window=7).explain(FakeView(), [(0, 3)])
    assert reasons["choice"] == 0 and reasons["window"] == 7 and reasons["policy"] == "max-compute-util"


def test_without_a_place_that_brings_the_tasks_there_it_is_refused():
    with pytest.raises(StrategyError, match="balance=index"):
        parse_strategy("flds:balance=index")
