"""Simulations from the outside: what goes in, what comes out."""

import gc

import pytest
from msgspec.structs import asdict

from daws.model.context import parse_context
from daws.model.errors import ContextError
from daws.model.graph import GraphBuilder
from daws.sim.cluster import cluster_of, joined, parse_group
from daws.sim.profiles import Costs
from daws.sim.simulate import Settings, simulate
from daws.strategy import parse_strategy
from daws.workloads import parse_workload

FREE = Costs(
    latency_ns=0, step_ns=0, message_ns=0, task_ns=0, dispatch_ns=0, store_call_ns=0, store_row_ns=0, task_bytes=0
)


def run(workload="bot:tasks=100", nodes=4, cores=2, strategy="daws", **settings):
    graph = parse_workload(workload).build(nodes, cores, 0)
    return simulate(graph, cluster_of(nodes, cores), parse_strategy(strategy), Settings(**settings))[0]


def test_one_core_without_costs_takes_as_long_as_the_work():
    result = run("bot:tasks=50,length-ms=10,spread=constant", 1, 1, costs=FREE)
    assert result.makespan_s == pytest.approx(0.5, rel=1e-3)
    assert result.efficiency == pytest.approx(1.0, rel=1e-3)
    assert result.throughput == pytest.approx(100, rel=1e-3)


def test_efficiency_counts_speed_and_utilization_does_not():
    graph = parse_workload("bot:tasks=40,length-ms=10,spread=constant").build(1, 2, 0)
    fast = joined([parse_group("1x2:speed=4")])
    result, _ = simulate(graph, fast, parse_strategy("daws"), Settings(costs=FREE))
    assert result.makespan_s == pytest.approx(0.05, rel=1e-2)
    assert result.efficiency == pytest.approx(1.0, rel=1e-2)
    assert result.utilization == pytest.approx(1.0, rel=1e-2)


def test_result_describes_the_run():
    result = run("pipeline:tasks=100,size=4", 3, 2, "flds:t=0.2", seed=5)
    assert (result.tasks, result.edges, result.nodes, result.cores, result.cores_total) == (100, 75, 3, 2, 6)
    assert (result.strategy, result.seed, result.failed, result.cancelled) == ("flds:t=0.2", 5, 0, 0)
    assert result.store_records >= 75


def test_objects_from_outside_are_read_where_they_lie_or_fetched():
    result = run("all-pairs:files=10", 4, 2, "flds")
    assert result.failed == 0
    assert result.local_hits > 0
    assert result.bytes_moved % 12_000_000 == 0 and result.bytes_moved > 0


def test_one_node_moves_nothing():
    result = run("all-pairs:files=6", 1, 2, "flds")
    assert (result.bytes_moved, result.local_hits, result.failed) == (0, 72, 0)


def test_the_same_seed_is_the_same_run_and_another_is_not():
    def numbers(seed):
        found = asdict(run("random:tasks=300", seed=seed, digest=True))
        return {key: value for key, value in found.items() if key not in ("wall_s", "peak_rss_mb", "seed")}

    assert numbers(1) == numbers(1)
    assert numbers(1)["digest"] != numbers(2)["digest"]


def test_progress_is_told_now_and_then():
    told: list[int] = []
    graph = parse_workload("bot:tasks=60000,length-ms=1").build(4, 2, 0)
    simulate(graph, cluster_of(4, 2), parse_strategy("daws"), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 60_000


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_is_left_as_it_was(collecting):
    was = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        run("bot:tasks=1")
        assert gc.isenabled() == collecting
    finally:
        (gc.enable if was else gc.disable)()


def test_a_context_that_nobody_offers_is_named():
    builder = GraphBuilder()
    builder.add_task("render", 1000, context=parse_context("gpu@3"))
    graph = builder.build()
    with pytest.raises(ContextError, match=r"task 0 \(render\) .*'gpu@3', which no executor offers: there are any"):
        simulate(graph, cluster_of(2), parse_strategy("daws"))
    with pytest.raises(ContextError, match=r"there are gpu@1\.\.2"):
        simulate(graph, joined([parse_group("1x1[gpu@1..2]")]), parse_strategy("daws"))
    result, _ = simulate(graph, joined([parse_group("3x1"), parse_group("1x1[gpu@1..5]")]), parse_strategy("daws"))
    assert (result.failed, result.makespan_s > 0) == (0, True)


def test_too_many_cores_are_refused():
    builder = GraphBuilder()
    builder.add_task("wide", 1000, cores=3)
    with pytest.raises(ContextError, match=r"needs 3 core\(s\) .* up to 2 cores"):
        simulate(builder.build(), cluster_of(4, 2), parse_strategy("daws"))


def test_an_empty_graph_ends_at_once():
    result, _ = simulate(GraphBuilder().build(), cluster_of(2), parse_strategy("daws"))
    assert (result.tasks, result.makespan_s, result.throughput, result.efficiency) == (0, 0.0, 0.0, 0.0)
