"""How long leases are changes nothing where nobody dies: no decision hangs on them."""

import ast
import inspect
from typing import Any

import pytest

from daws.bounds import bound
from daws.core import lease
from daws.core.effects import STALL, TICK, CallStore
from daws.core.events import RunEnded
from daws.sim.cluster import cluster_of
from daws.sim.profiles import profile
from daws.sim.simulate import Settings, simulate
from daws.strategy import parse_strategy
from daws.strategy.presets import PRESETS
from daws.testing import Driver, ready
from daws.testing.build import object_at
from daws.wire.messages import Submission, SubmissionTaken
from daws.wire.store import Leased
from daws.workloads import parse_workload

CASES = {
    "sipht:tasks=60": 4,
    "epigenomics:tasks=60,time-scale=0.02,data-scale=0.02": 8,
    "inspiral:tasks=60,time-scale=0.3,data-scale=0.3": 6,
    "cybershake:tasks=60": 8,
    "montage:tasks=60": 3,
    "all-pairs:files=12": 8,
    "fan-out:tasks=300,length-ms=200": 12,
}
LEASES_S = (1.0, 10.0, 30.0, 125.0)
SLOWLY = {"adage": "adage:period-ms=100,period-max-ms=12000"}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("workload", CASES)
def test_makespans_do_not_depend_on_how_long_leases_are(workload: str, preset: str):
    nodes = CASES[workload]
    cluster = cluster_of(nodes, 2)
    graph = parse_workload(workload).build(nodes, 2, 5)
    bound_s = bound(graph, cluster.groups, profile("measured")).seconds
    strategy = parse_strategy(SLOWLY.get(preset, preset))
    leases_s = {one for one in LEASES_S if bound_s < 300 * one} | {max(bound_s, LEASES_S[-1])}
    seen = {
        lease_s: simulate(graph, cluster, strategy, Settings(seed=5, lease_s=lease_s))[0].makespan_s
        for lease_s in sorted(leases_s)
    }
    assert len(seen) > 2
    assert max(seen.values()) < 1.001 * min(seen.values()), seen


class Unasked:
    """In the place of a strategy: whoever asks it anything fails."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the tick or a renewal asks about {name}")


@pytest.mark.parametrize("preset", PRESETS)
def test_neither_the_tick_nor_a_renewal_asks_the_strategy_anything(preset: str):
    """A node that has tasks of all sorts waiting, and one that is idle."""
    for busy in (True, False):
        node = Driver(preset, members=3, cores=1)
        if busy:
            tasks = (ready(1), ready(2), *[ready(task, object_at(task, 0), rank=1, home=0) for task in (3, 4)])
            node.give(Submission(-1, 0, tasks))
            node.drop(SubmissionTaken)
        node.core.strategy = Unasked()  # type: ignore[assignment]
        for _ in range(3):
            node.fire(TICK)
            for call in [one for one in node.effects if isinstance(one, CallStore)]:
                node.effects.remove(call)
                answers = [Leased()] if len(call.rows) == 1 else [None] * (len(call.rows) - 1) + [Leased()]
                node.answer(call, *answers)


def test_the_tick_imports_no_decision():
    """What is looked at again after a while has a timer of its own: see `daws.core.handlers.fires`."""
    imported = {
        alias.name
        for one in ast.walk(ast.parse(inspect.getsource(lease)))
        if isinstance(one, ast.ImportFrom) and one.module in DECIDING
        for alias in one.names
    }
    assert imported <= {"look_for_work_soon", "forget_lost_round"}, "at the start, and after a message that was lost"
    assert ".strategy" not in inspect.getsource(lease)


DECIDING = {f"daws.core.{name}" for name in ("schedule", "relax", "steal", "lifelines", "validating", "replicas")}


def test_a_node_that_waits_for_nothing_sets_no_timer():
    """A task that nobody can take over, and an idle node: only the lease goes on."""
    with Driver("flds", members=1, cores=1) as node:
        node.give(Submission(-1, 0, (ready(1),)))
        node.drop(SubmissionTaken)
        assert STALL not in node.timers
        node.give(RunEnded(1, node.core.executors.running[1].number, 5))
        assert STALL not in node.timers
        node.effects.clear()
