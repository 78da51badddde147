"""Stores that fail in simulations: each way of failing strikes, and is survived."""

import pytest

from daws.core.effects import CallStore
from daws.model.errors import InternalError
from daws.sim.checkers.remembered import check_remembered
from daws.sim.servers import Heard, Held, Servers
from daws.sim.worlds import draw_scenario, make_scenario_kernel, run_scenario
from daws.sim.worlds.stock import LOGGED, REPLICATED
from daws.store.memory.store import HeldIntent
from daws.strategy.rng import SplitMix64


def first(residues, limit=200):
    return [seed for seed in range(limit) if seed % 23 in residues]


@pytest.mark.parametrize(
    ("residues", "kinds"),
    [
        (LOGGED, {"store out of reach", "store slowed", "store restarted", "calls lost with the store"}),
        (REPLICATED, {"failover", "acknowledged and lost", "crashed with its server", "call of the past"}),
    ],
)
def test_each_kind_of_failure_strikes(residues, kinds):
    met: set[str] = set()
    for seed in first(residues):
        met.update(run_scenario(seed).faults)
        if kinds <= met:
            return
    raise AssertionError(f"no seed has met {kinds - met}")


def test_a_killed_store_comes_back_with_what_was_safe_and_nobody_has_heard_of_the_rest(monkeypatch):
    seen: list[tuple[bool, int, list[Held]]] = []

    def watched(servers, kernel):
        safe, held = servers.safe, list(servers.held)
        restart(servers, kernel)
        seen.append((len(servers.notes) == safe, len(held), list(servers.held)))

    restart = Servers._restart
    monkeypatch.setattr(Servers, "_restart", watched)
    for seed in first(LOGGED, 100):
        run_scenario(seed)
    assert any(held for _, held, _ in seen)
    assert all(kept and not left for kept, _, left in seen)


def test_a_replica_refuses_what_rests_on_words_that_it_has_lost():
    """As a real server does: a node says with each call how much of what it had said was acknowledged."""
    scenario = draw_scenario(first(REPLICATED)[0])
    kernel = make_scenario_kernel(scenario)
    servers = kernel.servers
    servers.heard[7, 0] = [Heard(100, 0, 3, True), Heard(200, 0, 5, True), Heard(300, 0, 8, False)]

    def refused() -> list[int]:
        return [token for token in range(1, 12) if servers._is_of_the_past(7, CallStore(token, 0, []))]

    assert not refused(), "nothing is lost"
    servers.kept_ns[0, 0] = 150
    servers.server[0] = 1
    assert refused() == [6, 7, 8, 9, 10, 11], "what token 5 had written is lost"
    servers.begun[7, 0, 0] = 9
    assert refused() == [6, 7, 8, 9], "from then on it has said again what was lost"


def failed_over():
    scenario = draw_scenario(first(REPLICATED)[0])
    kernel = make_scenario_kernel(scenario)
    kernel.start()
    kernel.run(scenario.plan.horizon_ns + 60_000_000_000)
    kernel.run_on(kernel.now_ns + 20_000_000_000)
    check_remembered(kernel)
    return kernel


def test_the_end_is_judged_where_the_store_forgets():
    kernel = failed_over()
    task = SplitMix64(1).below(kernel.graph.task_count)
    kernel.store.shards[0].log.append(task)
    with pytest.raises(InternalError, match="times in the log of commits"):
        check_remembered(kernel)
    kernel.store.shards[0].log.pop()
    kernel.store.shards[0].outbox[task << 2] = HeldIntent(0, ((task, 0),), 1)
    with pytest.raises(InternalError, match="does not carry out"):
        check_remembered(kernel)
