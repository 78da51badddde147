import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.model.task import CLIENT, Ready
from daws.strategy.decisions import DEDICATED
from daws.strategy.place.home import PlaceHome
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, ObjectAt, members_of, ready_of


def choose(ready: Ready, **view: object) -> int:
    return PlaceHome().choose(FakeView(**view), ready, SplitMix64(0))  # type: ignore[arg-type]


def test_home_first():
    data: ObjectAt = (1, 10**9, -1, (3,))
    assert choose(ready_of(data, home=2)) == 2
    assert choose(ready_of(data, home=0)) == DEDICATED


@pytest.mark.parametrize("home", [-1, 77])
def test_without_home_to_most_of_the_data(home: int):
    assert choose(ready_of((1, 5, -1, (1, 2)), (2, 6, -1, (3,)), (3, 2, -1, (2,)), home=home)) == 2
    assert choose(ready_of((1, 5, -1, (CLIENT, 77)), (2, 4, -1, (1,)), home=home)) == 1
    assert choose(ready_of(home=home)) == DEDICATED
    assert choose(ready_of((1, 0, -1, (2,)), home=home)) == DEDICATED


def test_at_equal_bytes_it_stays():
    assert choose(ready_of((1, 5, -1, (3, 0)))) == DEDICATED
    assert choose(ready_of((1, 5, -1, (3,))), objects=frozenset([1])) == DEDICATED
    assert choose(ready_of((1, 5, -1, (3, 2)))) == 3


def test_only_nodes_that_can_run_it():
    members = members_of(4, contexts={2: "gpu"})
    assert choose(ready_of((1, 5, -1, (3,)), context="gpu", home=1), members=members) == 2
    assert choose(ready_of(context="gpu", home=2), members=members) == 2
    assert choose(ready_of(context="gpu"), members=members, node=2) == DEDICATED
    assert choose(ready_of(context="tpu"), members=members) == DEDICATED


INPUTS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(0, 5),
        st.just(-1),
        st.lists(st.sampled_from([CLIENT, 0, 1, 2, 77]), max_size=3).map(tuple),
    ),
    max_size=4,
)


@given(INPUTS, st.sampled_from([-1, 0, 1, 77]), st.sampled_from(["", "gpu"]), st.frozensets(st.integers(0, 9)))
def test_explain_agrees(inputs: list[ObjectAt], home: int, context: str, objects: frozenset[int]):
    view = FakeView(members=members_of(4, contexts={1: "gpu", 2: "gpu"}), objects=objects)
    ready = ready_of(*inputs, home=home, context=context)
    choice = PlaceHome().choose(view, ready, SplitMix64(7))
    reasons = PlaceHome().explain(view, ready, SplitMix64(7))
    node = view.node if choice == DEDICATED else choice
    assert reasons["choice"] == choice
    assert node in view.members.capable(ready.spec.needs)
    if reasons["home_can_run"]:
        assert node == home
    elif reasons["held_bytes"]:
        assert reasons["held_bytes"][node] == max(reasons["held_bytes"].values())
