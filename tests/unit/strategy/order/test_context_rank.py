import pytest

from daws.model.context import RANK_MAX
from daws.strategy.order.context_rank import OrderContextRank
from tests.unit.strategy.fakes import FakeView, ready_of

CONTEXTS = ("", "c", "c@-9", "c@1", "c@4..6", "c@5", "c@9")


@pytest.mark.parametrize(
    ("order", "sorted_contexts"),
    [
        (OrderContextRank(), ("c@9", "c@5", "c@4..6", "c@1", "", "c", "c@-9")),
        (OrderContextRank(rank="smallest"), ("c@-9", "", "c", "c@1", "c@4..6", "c@5", "c@9")),
        (OrderContextRank(rank="range", low=4, high=5), ("c@4..6", "c@5", "c@-9", "", "c", "c@1", "c@9")),
        (OrderContextRank(rank="any"), CONTEXTS),
    ],
)
def test_orders(order: OrderContextRank, sorted_contexts: tuple[str, ...]):
    def key(context: str) -> float:
        return order.key(FakeView(), ready_of(context=context))

    assert tuple(sorted(CONTEXTS, key=key)) == sorted_contexts  # sorted() keeps equal keys in the order they came


def test_extreme_ranks_stay_within_their_range():
    order = OrderContextRank(rank="range", low=RANK_MAX)
    inside, outside = ready_of(context=f"c@{RANK_MAX}"), ready_of(context=f"c@{-RANK_MAX}")
    assert order.key(FakeView(), inside) < order.key(FakeView(), outside)
    assert order.explain(FakeView(), inside)["context_rank"] == RANK_MAX
