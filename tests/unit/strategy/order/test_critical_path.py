from daws.strategy.order.critical_path import OrderCriticalPath
from tests.unit.strategy.fakes import FakeView, ready_of


def test_larger_rank_first():
    order = OrderCriticalPath()
    assert order.key(FakeView(), ready_of(rank=9)) < order.key(FakeView(), ready_of(rank=8))
    assert order.explain(FakeView(), ready_of(rank=9)) == {"rank": 9, "priority": 0, "choice": -9}
    assert order.needs_ranks
