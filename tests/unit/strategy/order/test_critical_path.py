from daws.model.task import INLINE_BYTES, RAISED
from daws.strategy.order.critical_path import OrderCriticalPath
from tests.unit.strategy.fakes import FakeView, ready_of

LARGE = (8, INLINE_BYTES + 1, 3, (0,))
SMALL = (9, INLINE_BYTES, 3, (0,))


def test_larger_rank_first():
    order = OrderCriticalPath()
    assert order.key(FakeView(), ready_of(rank=9)) < order.key(FakeView(), ready_of(rank=8))
    assert order.explain(FakeView(), ready_of(rank=9)) == {"rank": 9, "priority": 0, "choice": -9}
    assert order.needs_ranks


def test_a_raised_rank_is_compared_with_the_others():
    order = OrderCriticalPath()
    assert order.key(FakeView(), ready_of(rank=RAISED + 9)) == -9
    why = order.explain(FakeView(), ready_of(rank=RAISED + 9))
    assert why == {"rank": 9, "priority": 0, "choice": -9, "raised": True}


def test_without_a_rank_what_goes_on_comes_before_what_begins_and_the_latest_first():
    order = OrderCriticalPath(room_mb=4)
    early, late = FakeView(done_count=3), FakeView(done_count=7)
    begins, goes_on = ready_of(SMALL), ready_of(SMALL, LARGE)
    assert order.key(early, ready_of()) == order.key(early, begins) == 0
    assert order.key(late, goes_on) < order.key(early, goes_on) < 0
    assert order.explain(late, goes_on) == {"rank": 0, "priority": 0, "choice": -8, "begun": 8}
    assert order.key(late, ready_of(LARGE, rank=100)) < order.key(late, goes_on), "a rank says more"
    assert order.key(late, ready_of(priority=1)) < order.key(late, goes_on), "and a priority more than that"


def test_as_published_size_does_not_matter():
    assert OrderCriticalPath().key(FakeView(done_count=7), ready_of(LARGE)) == 0
