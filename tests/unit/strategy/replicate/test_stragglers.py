import pytest

from daws.model.errors import StrategyError
from daws.model.task import TaskSpec
from daws.strategy import parse_strategy
from daws.strategy.replicate.stragglers import ReplicateStragglers
from tests.unit.strategy.fakes import FakeView

MS = 1_000_000


@pytest.mark.parametrize(
    ("quantile", "estimate", "overdue"),
    [(0, 0, 0), (100, 0, 150), (0, 200, 300), (400, 200, 300), (100, 200, 150), (10, 0, 50)],
)
def test_overdue_by_what_was_seen_or_said_whichever_is_less(quantile: int, estimate: int, overdue: int):
    view, spec = FakeView(quantile=quantile * MS), TaskSpec(1, estimate_ns=estimate * MS)
    replicate = ReplicateStragglers()
    assert replicate.overdue_ns(view, spec) == overdue * MS
    reasons = replicate.explain(view, spec)
    assert reasons["overdue_ns"] == overdue * MS and reasons["choice"] == replicate.copies(view, spec) == 0


@pytest.mark.parametrize("text", ["adage:replicate=stragglers", "sparrow:replicate=stragglers"])
def test_it_needs_idle_nodes_that_ask(text: str):
    with pytest.raises(StrategyError, match=r"replicate=stragglers .* balance=steal"):
        parse_strategy(text)
