from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.model.task import GUESS_NS
from daws.strategy.relax.above import RelaxAbove
from tests.unit.strategy.fakes import FakeView

S = 1_000_000_000


def test_the_example_of_the_paper():
    # 1,000 tasks in 10 s on one core, 5,000 dedicated, tt = 30 s: 2,000 are moved.
    view = FakeView(cores=1, done_count=1000, run_ns=10 * S, dedicated_count=5000, tt_ns=30 * S)
    assert RelaxAbove().excess(view) == 2000


@given(st.integers(0, 5000), st.integers(1, 64), st.integers(0, 1000), st.integers(0, 10**12), st.integers(0, 10**11))
def test_what_stays_is_run_within_tt_and_not_one_less(count: int, cores: int, done: int, run_ns: int, tt_ns: int):
    view = FakeView(dedicated_count=count, cores=cores, done_count=done, run_ns=run_ns, tt_ns=tt_ns)
    excess = RelaxAbove().excess(view)
    assert 0 <= excess <= count
    mean_ns = (run_ns // done if done else 0) or GUESS_NS
    kept = count - excess
    assert kept * mean_ns <= tt_ns * cores
    if excess:
        assert (kept + 1) * mean_ns > tt_ns * cores
    reasons = RelaxAbove().explain(view)
    assert reasons["choice"] == excess
    if reasons["queue_ns"] > tt_ns * 1.001:
        assert excess > 0


def test_where_no_run_ends_nothing_is_kept():
    view = FakeView(dedicated_count=7, done_count=10, run_ns=10, stalled_ns=S // 10)
    assert RelaxAbove().excess(view) == 0, "no longer than tt"
    view.stalled_ns += 1
    assert RelaxAbove().excess(view) == RelaxAbove().explain(view)["choice"] == 7
    view.relaxing = False
    assert RelaxAbove().excess(view) == 0


def test_tt_0_shares_everything_and_not_relaxing_nothing():
    assert RelaxAbove().excess(FakeView(dedicated_count=7, tt_ns=0)) == 7
    assert RelaxAbove().excess(FakeView(dedicated_count=7, tt_ns=0, relaxing=False)) == 0
    assert RelaxAbove(tt=0).start_tt_ns() == 0
    assert RelaxAbove().start_tt_ns() == S // 10


@pytest.mark.parametrize(
    ("rule", "after_sharing", "after_failed_steal"),
    [("fixed", 1.0, 1.0), ("journal", 2.0, 0.5), ("bigdata", 0.5, 2.0)],
)
def test_rules(rule: str, after_sharing: float, after_failed_steal: float):
    relax = RelaxAbove(tt_rule=rule)  # type: ignore[arg-type]
    assert relax.after_sharing(FakeView(tt_ns=S)) == after_sharing * S
    assert relax.after_failed_steal(FakeView(tt_ns=S)) == after_failed_steal * S


@given(st.sampled_from(["journal", "bigdata"]), st.lists(st.booleans(), max_size=60))
def test_tt_stays_within_its_bounds(rule: str, sharings: list[bool]):
    relax = RelaxAbove(tt_rule="journal" if rule == "journal" else "bigdata", tt_min=0.05, tt_max=2)
    view = FakeView(tt_ns=relax.start_tt_ns())
    for sharing in sharings:
        view.tt_ns = relax.after_sharing(view) if sharing else relax.after_failed_steal(view)
        assert floor(0.05 * S) <= view.tt_ns <= 2 * S
