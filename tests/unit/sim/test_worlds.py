"""Scenarios by seed, and the deaths that are aimed."""

import pytest

from daws.sim.checkers import Violation
from daws.sim.worlds import draw_scenario, make_scenario_kernel, run_scenario
from daws.store.memory.store import HANDLERS
from daws.wire.store import TakeOver

AIMED = {
    "heirs": ("partial_takeovers", "crashed as an heir"),
    "last words": ("deaths_after_call", "last words"),
    "exiled": ("store_cuts", "exiled"),
}


def first_of(kind, limit=400):
    return next(draw_scenario(seed) for seed in range(limit) if draw_scenario(seed).kind == kind)


def test_the_same_number_draws_the_same_scenario():
    one, other = draw_scenario(30), draw_scenario(30)
    assert (one.kind, one.plan, one.cluster, one.shards) == (other.kind, other.plan, other.cluster, other.shards)
    assert one.strategy.name == other.strategy.name


@pytest.mark.parametrize("kind", AIMED)
def test_a_death_that_is_aimed_strikes(kind):
    field, note = AIMED[kind]
    scenario = first_of(kind)
    assert getattr(scenario, field) > 0
    assert run_scenario(scenario.seed).faults[note] > 0


def test_an_heir_dies_when_it_has_one_shard_of_several(monkeypatch):
    scenario = first_of("heirs")
    assert scenario.shards > 1
    kernel = make_scenario_kernel(scenario)
    asked: dict[int, set[int]] = {}  # by heir: the shards that it has asked for what somebody left
    taken_over: dict[int, int] = {}
    kill, take_over = kernel.kill, HANDLERS[TakeOver]

    def asks(store, shard, row, now_ns):
        asked.setdefault(row.node, set()).add(row.shard)
        return take_over(store, shard, row, now_ns)

    def watched(node):
        taken_over[node] = len(asked.get(node, ()))
        return kill(node)

    monkeypatch.setitem(HANDLERS, TakeOver, asks)
    monkeypatch.setattr(kernel, "kill", watched)
    kernel.start()
    kernel.run(scenario.plan.horizon_ns)
    assert 1 in taken_over.values()


def test_word_that_an_intent_was_carried_out_comes_twice():
    scenarios = (draw_scenario(seed) for seed in range(700))
    outcomes = (run_scenario(one.seed) for one in scenarios if one.late_clears)
    assert any("echoed" in one.faults for one in outcomes)


def test_what_is_born_late_ends_as_the_task_does_that_it_waits_for():
    drawn = [one for one in map(draw_scenario, range(300)) if one.kind == "born late"]
    assert {bool(one.cancelled) for one in drawn} == {True, False}
    ends = [run_scenario(one.seed) for one in drawn]
    assert any(one.failed and one.cancelled for one in ends), "some were born after that was cancelled, some before"
    assert any(not one.failed and not one.cancelled for one in ends)


def test_heirs_in_a_rush_meet_both_short_tasks_and_lost_objects():
    drawn = [one for one in map(draw_scenario, range(300)) if one.kind == "rush"]
    assert {bool(one.deaths_after_call) for one in drawn} == {True, False}
    assert all(one.lease_s < 1 for one in drawn)


@pytest.mark.parametrize("kills", [2, 4])
def test_a_killer_that_is_found_out_too_early_or_too_late_is_noticed(kills, monkeypatch):
    scenario = next(
        one for one in map(draw_scenario, range(900)) if one.killers and not one.strategy.replicate.copies_max
    )
    monkeypatch.setattr("daws.sim.worlds.run.KILLS", kills)
    with pytest.raises(Violation, match=f"has killed 3 nodes and not {kills}"):
        run_scenario(scenario.seed)


def test_slow_nodes_are_themselves_again_when_the_world_has_healed():
    scenario = next(one for one in map(draw_scenario, range(400)) if one.plan.slow_nodes)
    kernel = make_scenario_kernel(scenario)
    kernel.start()
    kernel.run_on(scenario.plan.horizon_ns - 1)
    assert any(machine.speed < machine.info.speed for machine in kernel.machines)
    kernel.run_on(scenario.plan.horizon_ns + 1)
    assert all(machine.speed == machine.info.speed for machine in kernel.machines)


def test_nodes_leave_alone_and_among_other_faults():
    drawn = [one for one in map(draw_scenario, range(400)) if one.kind == "leaving"]
    assert {one.is_peaceful for one in drawn} == {True, False}
    assert all(len(one.leaves) < one.cluster.node_count for one in drawn), "somebody stays"
    for peaceful in (True, False):
        scenario = next(one for one in drawn if one.is_peaceful == peaceful)
        faults = run_scenario(scenario.seed).faults
        assert faults["left"] > 0
        if peaceful:
            assert set(faults) == {"told to leave", "left"} and faults["left"] == faults["told to leave"]
