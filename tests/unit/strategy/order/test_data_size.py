from daws.strategy.order.data_size import OrderDataSize
from tests.unit.strategy.fakes import FakeView, ready_of


def test_more_bytes_first():
    ready = [ready_of(), ready_of((1, 5, -1, ())), ready_of((1, 3, -1, ()), (2, 3, -1, ()))]
    assert [OrderDataSize().key(FakeView(), task) for task in ready] == [0, -5, -6]
    assert OrderDataSize().explain(FakeView(), ready[2])["input_bytes"] == 6
    assert not OrderDataSize().needs_ranks
