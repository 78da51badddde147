from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from daws.strategy.balance.sample import BalanceSample
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of


@given(st.integers(1, 20), st.integers(1, 5), st.integers(1, 50), st.integers())
def test_so_many_probes_in_all_and_none_twice_before_all_others(nodes: int, probes: int, fresh: int, seed: int):
    guests = BalanceSample(probes=probes).guests(FakeView(members=members_of(nodes)), fresh, SplitMix64(seed))
    counts = Counter(dict(guests))
    assert len(counts) == len(guests) and 0 not in counts
    if nodes == 1:
        assert not guests
        return
    assert counts.total() == probes * fresh
    fewest = min(counts.values()) if len(counts) == nodes - 1 else 0
    assert max(counts.values()) - fewest <= 1


def test_one_task_for_each_who_comes_and_nobody_polls():
    balance, view = BalanceSample(), FakeView(shared_count=7)
    assert (balance.mode, balance.from_head, balance.targets(view, SplitMix64(1)), balance.pick(view, [(1, 4)])) == (
        "invite",
        True,
        [],
        -1,
    )
    assert [balance.amount(view, available) for available in (0, 1, 9)] == [0, 1, 1]
    assert balance.after_failure(view) == balance.after_success(view) == (view.poll_ns, 0)
    assert balance.explain(view, []) == {"probes": 2, "waiting": 7, "members": 4, "choice": -1}
