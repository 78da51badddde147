"""A sample of the fault seeds; `make faults` runs many more."""

import pytest

from daws.core import store_calls
from daws.core.invariants import check
from daws.sim.user import CLOSE, DETACH, KILLED
from daws.sim.worlds import RANGES, SESSIONS, draw_scenario, run_scenario
from daws.sim.worlds.corpus import RANGE_SEEDS
from daws.strategy import PRESETS
from daws.workloads.registry import KINDS
from tests.sim.corpus import HURRIED, ONCE_WRONG
from tests.sim.digests import how_to_record, recorded
from tests.sim.faults import Failure, how_to_replay, main, of_all_ranges, summary, try_seed

SAMPLE = range(150)
SESSION_SAMPLE = range(SESSIONS, SESSIONS + 40)
DEEP = range(3, 90, 7)
"""Seeds of the sample that look into every node after every step, beside those that always do."""
DIGESTS = recorded()


@pytest.mark.parametrize("seed", [*SAMPLE, *SESSION_SAMPLE, *ONCE_WRONG])
def test_no_rule_is_violated_and_recorded_seeds_run_as_they_did(seed):
    found = try_seed(seed, check if seed in DEEP else None)
    assert not isinstance(found, Failure), f"{found.message}; again: {how_to_replay(seed)}"
    assert found.digest == DIGESTS.get(seed, found.digest), how_to_record(seed)


@pytest.mark.parametrize("seed", HURRIED)
def test_no_run_is_left_behind_however_soon_unknown_tasks_are_asked_for_again(seed, monkeypatch):
    monkeypatch.setattr(store_calls, "UNKNOWN_WAIT_NS", 10_000_000)
    run_scenario(seed, check)


@pytest.mark.parametrize("seed", [0, 8, 47, 102])
def test_the_same_seed_is_the_same_run(seed):
    assert run_scenario(seed) == run_scenario(seed)


def test_the_sample_meets_every_kind_of_graph_fault_and_strategy():
    drawn = [draw_scenario(seed) for seed in SAMPLE]
    # Workflow families have tasks of hours and are left to the matrix; what sets the last two presets apart is pilots.
    small = {"bot", "fan-in", "fan-out", "pipeline", "all-pairs", "random"}
    assert small <= set(KINDS)
    assert {one.kind for one in drawn} >= {*small, "labelled", "wide", "growing"}
    assert {one.strategy.name for one in drawn} >= set(PRESETS) - {"aimes", "swift"}
    kinds = ("loss", "duplication", "delay", "crashes", "crashes_at_store", "partitions", "slow_nodes", "cancels")
    for kind in kinds:
        assert any(getattr(one.plan, kind) for one in drawn)


def test_the_sample_of_sessions_meets_all_that_can_happen_to_them():
    drawn = [draw_scenario(seed) for seed in SESSION_SAMPLE]
    assert {one.kind for one in drawn} == {"session", "session, store fails", "session, store forgets"}
    plans = [one.user for one in drawn if one.user is not None]
    assert {visit.leaves for plan in plans for visit in plan.visits} == {CLOSE, DETACH, KILLED}
    for name in ("kept", "cancels", "let_go", "cuts", "sweeper_deaths", "rivals", "last_words"):
        assert any(getattr(plan, name) for plan in plans)
    assert any(one.shards > 1 for one in drawn)


def test_the_summary_counts_what_struck():
    first = run_scenario(0)
    text = summary([first, first])
    assert f"{first.kind} 2" in text and f"{first.strategy} 2" in text and f"tasks {2 * first.tasks}" in text


def test_a_failing_seed_is_named_and_can_be_run_again(monkeypatch, capsys):
    def fails(seed, deep=None):
        raise AssertionError("no such luck")

    monkeypatch.setattr("tests.sim.faults.run_scenario", fails)
    assert main(["--seed", "5"]) == 1
    assert "no such luck" in capsys.readouterr().out
    assert try_seed(5) == Failure(5, "AssertionError: no such luck")


def test_seeds_of_all_ranges_are_as_many_of_each():
    seeds = of_all_ranges(7)
    assert len(seeds) == len(set(seeds)) == 7
    counts = [sum(one.first <= seed < one.first + RANGE_SEEDS for seed in seeds) for one in RANGES]
    assert sum(counts) == 7 and max(counts) - min(counts) <= len(RANGES) - 1 and min(counts) > 0


def test_a_good_seed_is_told_in_full(capsys):
    assert main(["--seed", "1", "--verbose"]) == 0
    out = capsys.readouterr().out
    assert "plan: FaultPlan(" in out and "WorldOutcome(seed=1" in out
