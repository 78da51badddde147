from hypothesis import given
from hypothesis import strategies as st

from daws.strategy.decisions import SHARED
from daws.strategy.place.master import PlaceMaster
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of, ready_of

MEMBERS = members_of(5, contexts={2: "gpu", 3: "gpu"})


def test_all_go_to_the_first_member():
    assert PlaceMaster().choose(FakeView(node=3), ready_of(), SplitMix64(0)) == 0
    assert PlaceMaster().choose(FakeView(node=0), ready_of(), SplitMix64(0)) == SHARED
    assert PlaceMaster().choose(FakeView(members=members_of(0)), ready_of(), SplitMix64(0)) == SHARED


def test_what_the_master_cannot_run_stays_or_goes_to_one_that_can():
    gpu = ready_of(context="gpu")
    assert PlaceMaster().choose(FakeView(node=2, members=MEMBERS), gpu, SplitMix64(0)) == SHARED
    assert {PlaceMaster().choose(FakeView(node=1, members=MEMBERS), gpu, SplitMix64(seed)) for seed in range(30)} == {
        2,
        3,
    }
    assert PlaceMaster().choose(FakeView(node=1), gpu, SplitMix64(0)) == SHARED


@given(st.integers(0, 4), st.sampled_from(["", "gpu", "none-has-it"]), st.integers(0, 9))
def test_explain_agrees(node: int, context: str, seed: int):
    view, ready = FakeView(node=node, members=MEMBERS), ready_of(context=context)
    reasons = PlaceMaster().explain(view, ready, SplitMix64(seed))
    assert reasons["choice"] == PlaceMaster().choose(view, ready, SplitMix64(seed))
    assert reasons["master_can_run"] == (context == "")
