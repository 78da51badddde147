from daws.strategy.order.submission import OrderSubmission
from tests.unit.strategy.fakes import FakeView, ready_of


def test_nothing_is_compared():
    order = OrderSubmission()
    assert order.key(FakeView(), ready_of(rank=9)) == order.key(FakeView(), ready_of((1, 5, -1, ()))) == 0
    assert not order.needs_ranks
