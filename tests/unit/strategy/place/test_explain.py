"""Asking why changes nothing."""

import pytest

from daws.strategy import answers
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, members_of, ready_of


@pytest.mark.parametrize("name", answers("place"))
def test_no_randomness_is_used_up(name: str):
    # Nobody but nodes 2 and 3 may run it: whoever pushes it has to draw one of them.
    view, ready = FakeView(members=members_of(4, contexts={2: "gpu", 3: "gpu"})), ready_of(context="gpu")
    place, rng = answers("place")[name](), SplitMix64(5)
    reasons = [place.explain(view, ready, rng) for _ in range(3)]
    assert rng.state == 5
    assert [why["choice"] for why in reasons] == [place.choose(view, ready, rng)] * 3
