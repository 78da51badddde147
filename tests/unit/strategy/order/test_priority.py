import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.strategy.decisions import Reasons, View
from daws.strategy.order.context_rank import OrderContextRank
from daws.strategy.order.critical_path import OrderCriticalPath
from daws.strategy.order.data_size import OrderDataSize
from daws.strategy.order.submission import OrderSubmission
from tests.unit.strategy.fakes import FakeView, ready_of

ORDERS = [OrderDataSize(), OrderCriticalPath(), OrderSubmission()]
ORDERS_BY_RANK = [OrderContextRank(rank=rank, low=-3, high=3) for rank in ("biggest", "smallest", "range", "any")]
VIEW: View = FakeView()


@pytest.mark.parametrize("order", [*ORDERS, *ORDERS_BY_RANK], ids=repr)
@given(
    first=st.tuples(st.integers(-100, 100), st.integers(0, 2**58), st.integers(-(2**62), 2**62)),
    second=st.tuples(st.integers(-100, 100), st.integers(0, 2**58), st.integers(-(2**62), 2**62)),
)
def test_higher_priority_goes_first_whatever_else_is_compared(
    order: OrderDataSize, first: tuple[int, int, int], second: tuple[int, int, int]
):
    keys = []
    for priority, size, rank in (first, second):
        ready = ready_of((1, size, -1, ()), priority=priority, rank=size, context=f"c@{rank}")
        keys.append(order.key(VIEW, ready))
        reasons: Reasons = order.explain(VIEW, ready)
        assert reasons["choice"] == keys[-1]
        assert reasons["priority"] == priority
    if first[0] > second[0]:
        assert keys[0] < keys[1]
