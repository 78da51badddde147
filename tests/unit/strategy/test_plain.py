"""What is not asked about must be as if it had been."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.model.task import INLINE_BYTES
from daws.strategy.decisions import SHARED
from daws.strategy.presets import PRESETS
from daws.strategy.registry import DECISIONS, answer_class, answers
from daws.strategy.rng import SplitMix64
from tests.unit.strategy.fakes import FakeView, ready_of

NEUTRAL = [
    (decision, name)
    for decision in ("place", "order")
    for name in answers(decision)
    if getattr(answer_class(decision, name), "plain_is_neutral", False)
]


@pytest.mark.parametrize("decision, name", NEUTRAL)
@given(threshold=st.floats(0, 10), home=st.integers(-1, 3), planned=st.booleans())
def test_plain_tasks_are_shared_with_the_neutral_key(
    decision: str, name: str, threshold: float, home: int, planned: bool
):
    answer = answer_class(decision, name)()
    view, ready = FakeView(threshold=threshold), ready_of(home=home, planned=planned)
    if decision == "place":
        assert answer.choose(view, ready, SplitMix64(1)) == SHARED
    else:
        assert answer.key(view, ready) == 0


@pytest.mark.parametrize("decision, name", [one for one in NEUTRAL if answer_class(*one).small_is_neutral])  # type: ignore[attr-defined]
@given(threshold=st.floats(0.001, 10), sizes=st.lists(st.integers(1, INLINE_BYTES), min_size=1, max_size=4))
def test_so_are_tasks_that_read_only_what_travels_inside_records(
    decision: str, name: str, threshold: float, sizes: list[int]
):
    answer = answer_class(decision, name)()
    ready = ready_of(*[(number, size, number, (1,)) for number, size in enumerate(sizes)])
    if decision == "place":
        assert answer.choose(FakeView(threshold=threshold), ready, SplitMix64(1)) == SHARED
    else:
        assert answer.key(FakeView(threshold=threshold), ready) == 0


def test_the_default_strategy_is_among_them():
    strategy = PRESETS["daws"].strategy
    assert strategy.place.plain_is_neutral and strategy.order.plain_is_neutral  # type: ignore[attr-defined]
    assert {"place", "order"} <= set(DECISIONS)
