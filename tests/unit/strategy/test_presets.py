from math import inf

import pytest

from daws.strategy.adapt.matrix import AdaptMatrix
from daws.strategy.place.daws import PlaceDaws
from daws.strategy.presets import DEFAULT, PRESETS
from daws.strategy.registry import DECISIONS
from daws.strategy.spec import describe, format_strategy, parse_strategy

NAMES = (
    *("mlb", "mdl", "rlds", "flds", "daws", "matrix", "adage", "constellation", "master-worker"),
    *("albatross", "sparrow", "data-diffusion", "heft", "aimes", "swift", "random"),
)


def test_all_are_there():
    assert tuple(PRESETS) == NAMES
    assert DEFAULT in PRESETS


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_is_described(name: str):
    preset = PRESETS[name]
    assert preset.name == preset.strategy.name == name
    assert preset.summary and "\n" not in preset.summary and len(preset.summary) <= 100
    assert preset.paper
    rows = describe(preset.strategy)
    assert tuple(row.decision for row in rows) == DECISIONS
    assert parse_strategy(name) is preset.strategy
    assert describe(parse_strategy(format_strategy(preset.strategy))) == rows


def test_no_two_presets_are_the_same():
    assert len({repr(describe(preset.strategy)) for preset in PRESETS.values()}) == len(PRESETS)


def answers_of(name: str) -> dict[str, str]:
    return {row.decision: row.answer for row in describe(PRESETS[name].strategy)}


def test_matrix_policies_differ_in_threshold_and_relaxing_alone():
    thresholds = {"mlb": inf, "mdl": 0.0, "rlds": 0.05, "flds": 0.05, "matrix": 0.05}
    for name, threshold in thresholds.items():
        assert PRESETS[name].strategy.place == PlaceDaws(t=threshold)
        relax = "above" if name in ("flds", "matrix") else "never"
        adapt = "matrix" if name == "matrix" else "nothing"
        assert answers_of(name) == answers_of("rlds") | {"relax": relax, "adapt": adapt}


def test_the_adaptive_one_returns_to_its_own_threshold():
    strategy = parse_strategy("matrix:t=0.2")
    answers: list[object] = [strategy.place, strategy.adapt]
    assert answers == [PlaceDaws(t=0.2), AdaptMatrix(t=0.2)]
