from hypothesis import given
from hypothesis import strategies as st

from daws.strategy.decisions import SHARED
from daws.strategy.place.random import PlaceRandom
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of, ready_of


def test_every_node_gets_some():
    view, rng = FakeView(node=1), SplitMix64(0)
    assert {PlaceRandom().choose(view, ready_of(), rng) for _ in range(100)} == {0, SHARED, 2, 3}


@given(st.integers(0, 2**64 - 1), st.sampled_from(["", "gpu", "none-has-it"]))
def test_explain_agrees(seed: int, context: str):
    view, ready = FakeView(members=members_of(5, contexts={2: "gpu", 3: "gpu"})), ready_of(context=context)
    choice = PlaceRandom().choose(view, ready, SplitMix64(seed))
    reasons = PlaceRandom().explain(view, ready, SplitMix64(seed))
    assert reasons["choice"] == choice
    assert choice in (SHARED, *view.members.capable(ready.spec.needs))
    assert reasons["able_count"] == {"": 3, "gpu": 2, "none-has-it": 0}[context]


def test_alone_it_stays():
    assert PlaceRandom().choose(FakeView(members=members_of(1)), ready_of(), SplitMix64(0)) == SHARED
