from daws.strategy.cache.lru import CacheLru
from tests.unit.strategy.fakes import FakeView


def test_what_is_larger_than_the_room_is_not_kept():
    cache = CacheLru(lru_gb=0.001)
    assert (cache.limit_bytes, cache.by_use) == (1_000_000, True)
    for size, kept in ((1_000_000, True), (1_000_001, False)):
        assert cache.keeps(FakeView(), size) is cache.explain(FakeView(), size)["choice"] is kept
