from daws.model.task import INLINE_BYTES
from daws.strategy.order.data_size import OrderDataSize
from tests.unit.strategy.fakes import FakeView, ready_of


def test_more_bytes_first():
    ready = [ready_of(), ready_of((1, 50_000, -1, ())), ready_of((1, 30_000, -1, ()), (2, 30_000, -1, ()))]
    assert [OrderDataSize().key(FakeView(), task) for task in ready] == [0, -50_000, -60_000]
    assert OrderDataSize().explain(FakeView(), ready[2])["input_bytes"] == 60_000
    assert not OrderDataSize().needs_ranks


def test_what_travels_inside_records_costs_nothing():
    ready = ready_of((1, INLINE_BYTES, -1, ()), (2, INLINE_BYTES + 1, -1, ()))
    assert OrderDataSize().key(FakeView(), ready) == -INLINE_BYTES - 1
