import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.strategy.decisions import SHARED
from daws.strategy.place.earliest import PlaceEarliest
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of, ready_of

SECOND = 10**9
"""Bytes that take a second; tasks take one too, and nodes have two cores."""


@pytest.mark.parametrize(
    ("loads", "places", "choice"),
    [
        ({0: 1}, (2,), 2),  # the data is there, and it is not known to be busier
        ({0: 1, 2: 4}, (2,), SHARED),  # waiting there takes longer than fetching
        ({0: 1, 2: 2}, (2,), 2),  # waiting there takes half as long
        ({0: 6, 3: 0}, (0,), 3),  # an idle node has it sooner, with the transfer
        ({0: 2, 3: 0}, (0,), SHARED),
        ({0: 6}, (), SHARED),  # nobody is known to be better off
    ],
)
def test_where_it_ends_first(loads: dict[int, int], places: tuple[int, ...], choice: int):
    view, ready = FakeView(loads=loads), ready_of((1, SECOND, -1, places))
    place = PlaceEarliest()
    assert place.choose(view, ready, SplitMix64(0)) == choice
    reasons = place.explain(view, ready, SplitMix64(0))
    assert reasons["choice"] == choice
    if choice != SHARED:
        assert min(reasons["ends_ns"], key=reasons["ends_ns"].__getitem__) == choice


def test_faster_nodes_and_the_gain_that_a_push_must_bring():
    infos = tuple(NodeInfo(i, (ExecutorClass(2),), speed=1.0 + i) for i in range(2))
    view = FakeView(members=Members(1, infos), loads={0: 0, 1: 0})
    assert PlaceEarliest().choose(view, ready_of(), SplitMix64(0)) == 1
    assert PlaceEarliest(gain=0.6).choose(view, ready_of(), SplitMix64(0)) == SHARED
    assert PlaceEarliest(heard=0).choose(view, ready_of(), SplitMix64(0)) == SHARED


def test_only_nodes_that_can_run_it():
    view = FakeView(members=members_of(4, contexts={2: "gpu"}), loads={0: 9, 1: 0, 2: 9})
    assert PlaceEarliest().choose(view, ready_of(context="gpu"), SplitMix64(0)) == 2
    alone = FakeView(members=members_of(1, contexts={0: "gpu"}))
    assert PlaceEarliest().choose(alone, ready_of(), SplitMix64(0)) == SHARED


@given(st.dictionaries(st.integers(0, 3), st.integers(0, 20)), st.lists(st.integers(0, 3)))
def test_the_choice_is_a_member_or_here(loads: dict[int, int], places: list[int]):
    choice = PlaceEarliest().choose(FakeView(loads=loads), ready_of((1, SECOND, -1, tuple(places))), SplitMix64(0))
    assert choice == SHARED or choice in (1, 2, 3)
