"""No schedule beats a bound: random graphs, clusters, costs and strategies, then cases worked out by hand."""

import numpy as np
import pytest

from daws.bounds import NO_COSTS, AlikeNodes, bound, sorted_graph
from daws.model.cluster import ExecutorClass
from daws.model.context import Context, parse_context
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.sim.cluster import NodeGroup, SimulatedCluster, cluster_of, joined, parse_group
from daws.sim.profiles import PROFILES, Costs
from daws.sim.simulate import FILES, NETWORKS, SCATTERED, Settings, simulate
from daws.sim.worlds import draw_scenario
from daws.strategy import PRESETS, parse_strategy
from daws.workloads import KINDS, parse_workload

MS = 1_000_000
MB = 1_000_000
CONTEXTS: tuple[Context | None, ...] = (None, parse_context("gpu"))
NO_LATENCY = Costs(
    latency_ns=0, step_ns=0, message_ns=0, task_ns=0, dispatch_ns=0, store_call_ns=0, store_row_ns=0, task_bytes=0
)


def random_cluster(rng: np.random.Generator) -> SimulatedCluster:
    """Every task that `random_graph` makes can run on its first group."""
    memory = int(rng.choice([0, 4_000 * MB]))
    speeds = [1.0, 1.0, 0.7, 3.0]
    executors = (ExecutorClass(int(rng.integers(2, 5))), ExecutorClass(2, parse_context("gpu")))
    groups = [NodeGroup(int(rng.integers(1, 4)), executors, float(rng.choice(speeds)), 0, memory)]
    for _ in range(rng.integers(0, 3)):
        plain = (ExecutorClass(int(rng.integers(1, 5))),)
        room = int(rng.choice([0, 1_000 * MB]))
        groups.append(NodeGroup(int(rng.integers(1, 5)), plain, float(rng.choice(speeds)), int(rng.integers(2)), room))
    return joined(groups)


def random_graph(rng: np.random.Generator) -> Graph:
    """Tasks of all sorts; in every second graph numbered so that parents come last."""
    count, scale = int(rng.integers(1, 60)), int(rng.choice([1, 10, 100]))
    builder = GraphBuilder()
    objects = [builder.add_external(int(size)) for size in rng.integers(0, 20 * MB, rng.integers(0, 6))]
    shared = float(rng.choice([0.0, 0.3]))
    for _ in range(count):
        wanted = min(len(objects), int(rng.choice([0, 1, 2, 5])))
        pool = objects[-10:] if rng.random() < 0.7 else objects
        twice = bool(rng.random() < 0.1)
        inputs = rng.choice(pool, min(wanted, len(pool)), replace=twice).tolist() if pool else []
        task = builder.add_task(
            "some",
            int(rng.integers(0, scale * MS)),
            inputs=inputs,
            outputs_bytes=[int(rng.integers(0, scale * MB)) for _ in range(rng.integers(0, 3))],
            cores=int(rng.integers(1, 3)) if rng.random() < shared else 1,
            context=CONTEXTS[int(rng.random() < shared)],
            memory_bytes=int(rng.integers(1, 900)) * MB if rng.random() < shared else 0,
        )
        objects += task.outputs
    graph = builder.build()
    return backwards(graph) if rng.random() < 0.5 else graph


def backwards(graph: Graph) -> Graph:
    """The same graph with its tasks numbered from the last to the first."""
    order = np.arange(graph.task_count)[::-1]
    made = [list(graph.outputs_of(task)) for task in order]
    old = np.array([one for some in made for one in some] + list(range(graph.external_start, graph.object_count)), int)
    new = np.empty(len(old), np.int64)
    new[old] = np.arange(len(old))
    reads = [new[graph.inputs_of(task)] for task in order]
    return graph.changed(
        kind=graph.kind[order],
        length_ns=graph.length_ns[order],
        context=graph.context[order],
        priority=graph.priority[order],
        cores=graph.cores[order],
        memory_bytes=None if graph.memory_bytes is None else graph.memory_bytes[order],
        input_start=np.concatenate([[0], np.cumsum([len(one) for one in reads])]).astype(np.int64),
        inputs=np.concatenate(reads).astype(np.int64),
        output_start=np.concatenate([[0], np.cumsum([len(one) for one in made])]).astype(np.int64),
        object_bytes=graph.object_bytes[old],
    )


def random_costs(rng: np.random.Generator) -> Costs:
    costs = [*PROFILES.values(), NO_LATENCY][rng.integers(len(PROFILES) + 1)]
    return costs.changed(
        net_bytes_per_s=float(rng.choice([1e7, 1e8, 1e9])), cluster_bytes_per_s=float(rng.choice([1e7, 2e9]))
    )


@pytest.mark.parametrize("seed", range(240))
def test_no_simulated_run_is_shorter_than_its_bound(seed):
    rng = np.random.default_rng(seed)
    graph, cluster, costs = random_graph(rng), random_cluster(rng), random_costs(rng)
    strategy = parse_strategy(list(PRESETS)[seed % len(PRESETS)])
    settings = Settings(
        costs=costs,
        seed=seed,
        network=NETWORKS[seed // 2 % 2],
        files=FILES[seed // 4 % 3],
        fetches_ahead=bool(seed % 5),
    )
    least = bound(graph, cluster.groups, costs, evenly=settings.files != SCATTERED)
    result, _ = simulate(graph, cluster, strategy, settings)
    assert result.failed == 0
    assert least.seconds <= result.makespan_s, (least, result)


@pytest.mark.parametrize("strategy", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_preset_beats_the_bound_of_a_workload(kind, strategy):
    sizes = {"all-pairs": "files=7", "skeleton": "tasks=60,task-cores=2", "ensemble": "simulations=30,analysis-cores=2"}
    size = sizes.get(kind, "per-core=15")
    graph = parse_workload(f"{kind}:{size}").build(3, 2, 1)
    cluster = cluster_of(3, 2)
    name = list(PROFILES)[(list(KINDS).index(kind) + list(PRESETS).index(strategy)) % len(PROFILES)]
    least = bound(graph, cluster.groups, PROFILES[name])
    result, _ = simulate(graph, cluster, parse_strategy(strategy), Settings(costs=PROFILES[name]))
    assert 0 < least.seconds <= result.makespan_s, (name, least)


@pytest.mark.parametrize("seed", range(40))
def test_no_world_of_the_fault_seeds_beats_its_bound(seed):
    """Contexts, wide tasks, little memory, tasks that create tasks; without the faults."""
    world = draw_scenario(seed)
    least = bound(world.graph, world.cluster.groups, Costs())
    settings = Settings(seed=seed, memory_bytes=world.memory_bytes)
    result, _ = simulate(world.graph, world.cluster, world.strategy, settings)
    assert least.seconds <= result.makespan_s, (least, result)


@pytest.mark.parametrize("seed", range(20))
def test_large_graphs_are_taken_in_pieces_which_changes_nothing(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    graph, cluster, costs = random_graph(rng), random_cluster(rng), random_costs(rng)
    whole = bound(graph, cluster.groups, costs)
    monkeypatch.setattr(sorted_graph, "STEP_TASKS_MAX", 7)
    cut = bound(graph, cluster.groups, costs)
    assert {part.name: part.seconds for part in cut.parts} == pytest.approx(
        {part.name: part.seconds for part in whole.parts}
    )


def parts(graph: Graph, *groups: str, costs: Costs = NO_LATENCY) -> dict[str, float]:
    found = bound(graph, joined([parse_group(text) for text in groups]).groups, costs)
    return {part.name: part.seconds for part in found.parts}


def bag(*lengths_ms: int, **columns: object) -> Graph:
    builder = GraphBuilder()
    for length in lengths_ms:
        builder.add_task("some", length * MS, **columns)  # type: ignore[arg-type]
    return builder.build()


def test_work_is_shared_by_cores_and_fast_ones_take_more_of_it():
    assert parts(bag(10, 10, 10, 10), "1x2")["work and paths"] == pytest.approx(0.02)
    assert parts(bag(10, 10, 10, 10), "1x2", "1x2:speed=3")["work"] == pytest.approx(0.005)


def test_the_longest_task_runs_on_the_fastest_core():
    assert parts(bag(50, 1), "4x2", "1x1:speed=2")["critical path"] == pytest.approx(0.025)


def test_wide_tasks_do_not_share_a_node_that_is_too_narrow_for_two():
    found = parts(bag(10, 10, 10, 10, cores=2), "2x3")
    assert found["work"] == pytest.approx(80 / 6 / 1000)
    assert found["needs"] == pytest.approx(0.02)


def test_tasks_with_a_context_have_only_its_executors():
    assert parts(bag(10, 10, 10, context=CONTEXTS[1]), "2x4", "1x1[gpu]")["needs"] == pytest.approx(0.03)


def test_memory_lets_few_tasks_run_at_a_time():
    found = parts(bag(10, 10, 10, 10, memory_bytes=600 * MB), "1x4:memory-gb=1")
    assert found["memory"] == pytest.approx(0.04)
    assert "memory" not in parts(bag(10, memory_bytes=600 * MB), "1x4")


def test_chains_take_as_long_as_they_are_with_the_way_to_the_store_between():
    builder = GraphBuilder()
    first = builder.add_task("some", 10 * MS, outputs_bytes=[0])
    builder.add_task("some", 20 * MS, [first])
    graph = builder.build()
    assert parts(graph, "4x4")["critical path"] == pytest.approx(0.03)
    slow = NO_LATENCY.changed(latency_ns=MS, dispatch_ns=MS)
    assert parts(graph, "4x4", costs=slow)["path with costs"] == pytest.approx(0.030 + 0.002 + 0.003)


def test_inputs_from_many_nodes_have_to_come_over_one_link():
    """Ten tasks of 100 ms make 100 MB each. On one core they take 1 s; over 1 GB/s their data takes 0.1 s each."""
    builder = GraphBuilder()
    made = [builder.add_task("make", 100 * MS, outputs_bytes=[100 * MB]) for _ in range(10)]
    builder.add_task("take", 0, made)
    graph = builder.build()
    costs = NO_LATENCY.changed(net_bytes_per_s=1e9)
    # From 0.1 s on both go on: 1000 MB = 1000 MB/s * t here + 1000 MB/s * (t - 0.1 s) over the link.
    assert parts(graph, "10x1", costs=costs)["path with costs"] == pytest.approx(0.55)
    # Nothing has to move to the only node.
    assert parts(graph, "1x10", costs=costs)["path with costs"] == pytest.approx(0.1, rel=0.2)


def test_objects_from_outside_that_cannot_lie_together_have_to_move():
    builder = GraphBuilder()
    files = [builder.add_external(100 * MB) for _ in range(4)]
    builder.add_task("take", 0, files)
    graph = builder.build()
    costs = NO_LATENCY.changed(net_bytes_per_s=1e9)
    assert parts(graph, "4x1", costs=costs)["path with costs"] == pytest.approx(0.3)
    assert parts(graph, "2x1", costs=costs)["path with costs"] == pytest.approx(0.2)
    assert parts(graph, "1x1", costs=costs)["path with costs"] == 0


def test_one_file_for_all_keeps_all_nodes_but_one_waiting():
    builder = GraphBuilder()
    file = builder.add_external(1000 * MB)
    for _ in range(100):
        builder.add_task("take", 100 * MS, [file])
    costs = NO_LATENCY.changed(net_bytes_per_s=1e9)
    # 10 s of work: one core from the start, two after 1 s (one has it from the client), four after 2 s, the rest later.
    assert parts(builder.build(), "10x1", costs=costs)["shared input"] == pytest.approx((10 + 2 * 1 + 4 * 2) / 7)


def test_cores_idle_while_few_tasks_could_have_begun():
    """One task of 10 ms, then forty of 10 ms on four cores, then one: 10 + 100 + 10 ms."""
    builder = GraphBuilder()
    root = builder.add_task("some", 10 * MS, outputs_bytes=[0])
    middle = [builder.add_task("some", 10 * MS, [root], [0]) for _ in range(40)]
    builder.add_task("some", 10 * MS, middle)
    found = parts(builder.build(), "1x4")
    assert found["work"] == pytest.approx(0.105)
    assert found["work and paths"] == pytest.approx(0.12)


def test_an_empty_graph_takes_no_time():
    least = bound(GraphBuilder().build(), [AlikeNodes(1, (ExecutorClass(1),))], PROFILES["measured"])
    assert least.seconds == 0 and least.share_of(0.0) == 0


def test_the_largest_part_binds():
    least = bound(bag(10, 10), [AlikeNodes(1, (ExecutorClass(1),))], NO_COSTS)
    assert least.binding.name == "work" and least.part("work") == least.seconds
    assert least.part("no such part") == 0
    assert least.share_of(0.04) == pytest.approx(0.5)
