from daws.strategy.cache.none import CacheNone
from tests.unit.strategy.fakes import FakeView


def test_nothing_is_kept():
    assert not CacheNone().keeps(FakeView(), 1)
    assert CacheNone().explain(FakeView(), 5) == {"size_bytes": 5, "choice": False}
