from math import inf

from hypothesis import given
from hypothesis import strategies as st

from daws.strategy.adapt.matrix import AdaptMatrix
from daws.strategy.decisions import Changes
from daws.strategy.place.daws import PlaceDaws
from tests.unit.strategy.fakes import FakeView

S = 1_000_000_000
ADAPT = AdaptMatrix(t=0.5)  # MDL above 1, MLB up to 0.02, else the threshold of the views below


def seen(moved_ratio: float, read_ratio: float, **more: object) -> FakeView:
    """A node that ran tasks for 100 s in all, at 1 GB/s."""
    view = FakeView(run_ns=100 * S, done_count=100, net_bytes_per_s=1e9)
    view.moved_bytes, view.read_bytes = int(moved_ratio * 100 * S), int(read_ratio * 100 * S)
    for name, value in more.items():
        setattr(view, name, value)
    return view


def test_it_starts_as_flds():
    assert ADAPT.start(0.5) == Changes(threshold=0.5, relaxing=True)
    assert ADAPT.period > 0


def test_before_anything_ran_nothing_changes():
    assert ADAPT.adjust(FakeView(moved_bytes=10**15)) is None


def test_much_moved_leads_to_mdl_and_back_at_half():
    assert ADAPT.adjust(seen(0.9, 3)) is None
    assert ADAPT.adjust(seen(1.1, 3)) == Changes(threshold=0.0, relaxing=False)
    mdl = {"threshold": 0.0, "relaxing": False}
    assert ADAPT.adjust(seen(0.6, 3, **mdl)) is None
    assert ADAPT.adjust(seen(0.4, 3, **mdl)) == Changes(threshold=0.5, relaxing=True)


def test_little_read_leads_to_mlb_and_back_at_twice_as_much():
    assert ADAPT.adjust(seen(0, 0.03)) is None
    assert ADAPT.adjust(seen(0, 0.02)) == Changes(threshold=inf, relaxing=True)
    assert ADAPT.adjust(seen(0, 0.03, threshold=inf)) is None
    assert ADAPT.adjust(seen(0, 0.05, threshold=inf)) == Changes(threshold=0.5, relaxing=True)


def test_nothing_read_yet_says_nothing_of_what_is_to_come():
    assert ADAPT.adjust(seen(0, 0)) is None


def test_locality_that_works_is_not_taken_for_little_data():
    assert ADAPT.adjust(seen(0, 0.9)) is None


def test_mdl_does_not_starve_the_others():
    # A task moves 1.1 s and runs for 1 s: with 2 cores, 2 dedicated tasks are done sooner than one is moved, 3 are not.
    assert ADAPT.adjust(seen(1.1, 3, dedicated_count=2)) == Changes(threshold=0.0, relaxing=False)
    assert ADAPT.adjust(seen(1.1, 3, dedicated_count=3)) == Changes(threshold=0.0, relaxing=True)
    mdl = {"threshold": 0.0, "relaxing": False}
    assert ADAPT.adjust(seen(1.1, 3, dedicated_count=500, **mdl)) == Changes(threshold=0.0, relaxing=True)


def test_only_the_last_period_counts():
    """However long a node has held little data: once what it reads is large, it changes with the next look."""
    view = seen(0, 0.02, threshold=inf)
    view.adapted = (view.done_count, view.run_ns, view.moved_bytes, view.read_bytes)
    view.done_count += 10
    view.run_ns += 10 * S
    view.read_bytes += 30 * S
    assert ADAPT.adjust(view) == Changes(threshold=0.5, relaxing=True)
    assert ADAPT.explain(view)["read_ratio"] == 3


def test_it_returns_to_its_own_threshold():
    assert AdaptMatrix().t == PlaceDaws().t
    changes = AdaptMatrix(t=0.2).adjust(seen(0.1, 3, threshold=0.0))
    assert changes is not None
    assert changes.threshold == 0.2


RATIOS = st.floats(0, 5)


@given(RATIOS, RATIOS, st.sampled_from([0.0, 0.5, inf]), st.booleans(), st.integers(0, 50))
def test_one_look_is_enough_and_explain_agrees(
    moved: float, read: float, threshold: float, relaxing: bool, dedicated: int
):
    view = seen(moved, read, threshold=threshold, relaxing=relaxing, dedicated_count=dedicated)
    changes = ADAPT.adjust(view)
    assert ADAPT.explain(view)["choice"] == changes
    if changes is not None:
        assert changes.threshold is not None
        assert changes.relaxing is not None
        assert changes.threshold in (0.0, 0.5, inf)
        assert changes.relaxing or changes.threshold == 0
        view.threshold, view.relaxing = changes.threshold, changes.relaxing
        assert ADAPT.adjust(view) is None  # the same numbers do not make it swing
