from hypothesis import given
from hypothesis import strategies as st

from daws.strategy.balance.neighbours import draw, part, root
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of


class CountingRng(SplitMix64):
    __slots__ = ("count",)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.count = 0

    def below(self, bound: int) -> int:
        self.count += 1
        return super().below(bound)


@given(st.integers(0, 40), st.integers(0, 45), st.integers(0, 45), st.integers(0, 2**64 - 1))
def test_distinct_others_and_as_many_as_asked_for(total: int, count: int, node: int, seed: int):
    view = FakeView(node=node, members=members_of(total))
    drawn = draw(view, SplitMix64(seed), count)
    others = set(range(total)) - {node}
    assert set(drawn) <= others
    assert len(drawn) == len(set(drawn)) == min(count, len(others))
    assert drawn == draw(view, SplitMix64(seed), count)


def test_the_cost_does_not_grow_with_the_members():
    view = FakeView(node=5, members=members_of(20_000))
    rng = CountingRng(1)
    for _ in range(100):
        draw(view, rng, 4)
    assert rng.count < 100 * 5


def test_everybody_is_drawn_some_day():
    view, rng = FakeView(node=3, members=members_of(12)), SplitMix64(2)
    counts = dict.fromkeys(range(12), 0)
    for _ in range(3000):
        for node in draw(view, rng, 4):
            counts[node] += 1
    assert counts.pop(3) == 0
    assert min(counts.values()) > 900  # 3000 × 4 / 11 is 1091
    assert max(counts.values()) < 1280


@given(st.integers(0, 10**9))
def test_root(count: int):
    assert root(count) ** 2 <= max(1, count) < (root(count) + 1) ** 2


@given(st.integers(0, 10**6), st.floats(0.01, 1))
def test_part_is_something_if_there_is_something_and_never_more_than_there_is(available: int, share: float):
    assert min(1, available) <= part(available, share) <= available
    assert part(available, 0.5) == max(min(1, available), available // 2)
