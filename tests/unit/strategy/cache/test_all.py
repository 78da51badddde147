from daws.strategy.cache.all import CacheAll
from tests.unit.strategy.fakes import FakeView


def test_everything_is_kept():
    assert CacheAll().keeps(FakeView(), 10**15)
    assert CacheAll().explain(FakeView(), 5) == {"size_bytes": 5, "choice": True}
