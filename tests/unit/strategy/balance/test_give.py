from hypothesis import given
from hypothesis import strategies as st

from daws.strategy.balance.give import BalanceGive
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of

LOADS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), max_size=8, unique_by=lambda load: load[0])


@given(LOADS, st.integers(0, 5), st.integers(0, 5))
def test_only_the_most_loaded_gives_and_only_to_the_least_loaded(
    loads: list[tuple[int, int]], dedicated: int, shared: int
):
    view = FakeView(dedicated_count=dedicated, shared_count=shared)
    picked = BalanceGive().pick(view, loads)
    own = dedicated + shared
    by_load = [load for _, load in loads]
    if not loads or max(by_load) > own or min(by_load) == own:
        assert picked == -1
    else:
        assert dict(loads)[picked] == min(by_load)
    reasons = BalanceGive().explain(view, loads)
    assert reasons["choice"] == picked
    assert reasons["own_load"] == own


def test_neighbours_are_the_root_of_all():
    view = FakeView(members=members_of(103))
    assert BalanceGive().start_neighbours(103) == 10
    assert len(set(BalanceGive().targets(view, SplitMix64(0)))) == 10
    assert BalanceGive().targets(FakeView(members=members_of(1)), SplitMix64(0)) == []


def test_half_is_given_and_from_the_tail():
    assert [BalanceGive().amount(FakeView(), available) for available in (0, 1, 9)] == [0, 1, 4]
    assert (BalanceGive().mode, BalanceGive().asks_load, BalanceGive().from_head) == ("give", True, False)


def test_the_period_doubles_up_to_its_cap_and_starts_anew():
    balance, view = BalanceGive(), FakeView()
    view.poll_ns = balance.start_poll_ns()
    seen = []
    for _ in range(20):
        view.poll_ns, view.neighbour_count = balance.after_failure(view)
        seen.append(view.poll_ns // 1_000_000)
    assert seen[:10] == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]
    assert set(seen[10:]) == {1000}
    assert balance.after_success(view) == (1_000_000, 2)
