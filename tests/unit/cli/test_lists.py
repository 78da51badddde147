"""What there is, as shown to people."""

import pytest

from daws.cli import main
from daws.cli.lists import show_strategies
from daws.strategy import DECISIONS, PRESETS, answers, describe, parameters_of
from daws.workloads import KINDS


def test_all_presets_with_paper_and_decisions(capsys):
    assert show_strategies(None) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for preset in PRESETS.values():
        assert preset.summary in shown and preset.paper in shown
    assert "place=daws(t=inf)" in shown  # what tells mlb from the others
    assert "daws (the default)" in shown


@pytest.mark.parametrize("name", PRESETS)
def test_one_preset_in_full(capsys, name):
    show_strategies(name)
    shown = capsys.readouterr().out
    for row in describe(PRESETS[name].strategy):
        assert f"{row.decision}={row.answer} " in shown
        assert all(f"{key}={value}" in shown for key, value in row.parameters.items())


def test_an_altered_strategy_shows_its_values(capsys):
    show_strategies("flds:t=0.2,order=critical-path")
    shown = capsys.readouterr().out
    assert "t=0.2 " in shown and "order=critical-path " in shown


@pytest.mark.parametrize("decision", DECISIONS)
def test_one_decision_with_all_answers(capsys, decision):
    show_strategies(decision)
    shown = capsys.readouterr().out
    for name, cls in answers(decision).items():
        assert f"{decision}={name}" in shown
        assert all(f"{one.key}=" in shown for one in parameters_of(cls))


def test_the_strategy_that_was_meant_is_named(capsys):
    assert main(["strategies", "flsd"]) == 2
    assert capsys.readouterr().err.endswith("; did you mean flds?\n")


def test_all_workloads(capsys):
    assert main(["workloads"]) == 0
    shown = capsys.readouterr().out
    assert all(f"{kind.name}: {kind.help}" in shown for kind in KINDS.values())
