from hypothesis import given
from hypothesis import strategies as st

from daws.strategy.balance.steal import BalanceSteal
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of

MS = 1_000_000
LOADS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 5)), max_size=8, unique_by=lambda load: load[0])


@given(LOADS)
def test_the_most_loaded_is_the_victim(loads: list[tuple[int, int]]):
    picked = BalanceSteal().pick(FakeView(), loads)
    most = max((load for _, load in loads), default=0)
    assert picked == -1 if most == 0 else dict(loads)[picked] == most
    assert BalanceSteal().explain(FakeView(), loads)["choice"] == picked


def test_half_is_taken():
    amounts = [BalanceSteal().amount(FakeView(), available) for available in (0, 1, 2, 3, 10)]
    assert amounts == [0, 1, 1, 1, 5]
    assert BalanceSteal(share=1).amount(FakeView(), 10) == 10


def test_no_more_than_most_is_taken_at_once():
    amounts = [BalanceSteal().amount(FakeView(), available) for available in (511, 512, 514, 10**6)]
    assert amounts == [255, 256, 256, 256]
    assert BalanceSteal(most=3).amount(FakeView(), 100) == 3
    assert BalanceSteal(share=1, most=1).amount(FakeView(), 0) == 0


def test_rumours_are_followed_unless_it_is_as_in_the_papers():
    assert BalanceSteal().follows_rumours
    assert not BalanceSteal(rumours="no").follows_rumours


def test_nobody_asks_more_often_than_tasks_end():
    balance = BalanceSteal(poll_min_ms=1, poll_max_ms=100)
    assert balance.after_failure(FakeView(poll_ns=MS, done_count=4, run_ns=320 * MS))[0] == 80 * MS
    assert balance.after_failure(FakeView(poll_ns=45 * MS, done_count=4, run_ns=320 * MS))[0] == 90 * MS
    assert balance.after_failure(FakeView(poll_ns=MS, done_count=1, run_ns=10**12))[0] == 100 * MS
    assert balance.after_failure(FakeView(poll_ns=MS))[0] == 2 * MS, "before the first has ended, nothing is known"


def test_explain_has_the_bounds_of_what_follows_a_failure():
    balance = BalanceSteal(poll_min_ms=1, poll_max_ms=100, neighbours=9)
    view = FakeView(now_ns=5_000 * MS, idle_since_ns=1_000 * MS, poll_ns=MS, done_count=4, run_ns=320 * MS)
    reasons = balance.explain(view, [])
    assert (reasons["poll_after_failure_min_ns"], reasons["poll_after_failure_max_ns"]) == (80 * MS, 400 * MS)
    assert reasons["neighbours_max"] == 9
    assert balance.after_failure(view)[0] == 80 * MS


def test_who_is_idle_for_long_may_wait_for_a_tenth_of_it():
    balance = BalanceSteal(poll_min_ms=1, poll_max_ms=100)
    view = FakeView(now_ns=5_000 * MS, idle_since_ns=1_000 * MS, poll_ns=300 * MS)
    assert balance.after_failure(view)[0] == 400 * MS


@given(
    st.floats(0.001, 1000),
    st.floats(1, 1000),
    st.integers(1, 20),
    st.sampled_from(["sqrt", 1, 8, 30]),
    st.integers(0, 5),
    st.integers(1, 2000),
)
def test_back_off_doubles_up_to_the_cap_and_never_gives_up(
    poll_min_ms: float, factor: float, probes: int, neighbours: int | str, grow: int, member_count: int
):
    balance = BalanceSteal(
        probes=probes,
        neighbours="sqrt" if isinstance(neighbours, str) else neighbours,
        grow=grow,
        poll_min_ms=poll_min_ms,
        poll_max_ms=poll_min_ms * factor,
    )
    view = FakeView(members=members_of(member_count))
    view.poll_ns, view.neighbour_count = balance.start_poll_ns(), balance.start_neighbours(member_count)
    cap_ns = int(poll_min_ms * factor * MS)
    reach = max(probes, int(member_count**0.5) if neighbours == "sqrt" else int(neighbours))
    for _ in range(60):
        poll_ns, count = balance.after_failure(view)
        assert poll_ns == min(2 * view.poll_ns, cap_ns)
        assert 0 < poll_ns <= cap_ns
        assert count == min(view.neighbour_count + grow, reach)
        view.poll_ns, view.neighbour_count = poll_ns, count
        assert len(balance.targets(view, SplitMix64(1))) == min(count, member_count - 1)
    assert view.poll_ns == cap_ns  # and there it stays: the next failure changes nothing
    assert balance.after_success(view) == (balance.start_poll_ns(), balance.start_neighbours(member_count))


def test_defaults_are_bounded_however_large_the_cluster():
    balance = BalanceSteal()
    view = FakeView(members=members_of(5000), neighbour_count=4)
    for _ in range(100):
        view.poll_ns, view.neighbour_count = balance.after_failure(view)
    assert (view.poll_ns, view.neighbour_count) == (200 * MS, 6)
    assert (balance.mode, balance.asks_load, balance.from_head) == ("steal", True, False)
