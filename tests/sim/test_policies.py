"""What the strategies are for: who beats whom on what, and what nobody may do."""

import pytest

from daws.cli import main
from daws.model.context import Label, matches, parse_context
from daws.model.errors import ClusterError, ContextError, DawsError, GraphError
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder, TaskHandle
from daws.sim.cluster import cluster_of, joined, parse_group
from daws.sim.simulate import Settings, simulate
from daws.strategy import PRESETS, parse_strategy
from daws.workloads import parse_workload


def run(workload, strategy, nodes=64, cores=2, seed=0, check=False):
    graph = parse_workload(workload).build(nodes, cores, seed)
    result, _ = simulate(graph, cluster_of(nodes, cores), parse_strategy(strategy), Settings(seed=seed, check=check))
    assert (result.failed, result.cancelled) == (0, 0)
    return result


# -- who beats whom --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_flds_beats_mdl_and_mlb_on_all_pairs(seed):
    makespan_s = {name: run("all-pairs:files=120", name, seed=seed).makespan_s for name in ("flds", "mdl", "mlb")}
    assert makespan_s["flds"] < makespan_s["mdl"]
    assert makespan_s["flds"] < makespan_s["mlb"]


@pytest.mark.parametrize("seed", [0, 1])
def test_mlb_beats_mdl_on_a_fan_out_with_small_outputs(seed):
    """MDL keeps everything where the root ran."""
    workload = "fan-out:per-core=20,degree=10,output-mb=0.1"
    mlb, mdl = run(workload, "mlb", seed=seed), run(workload, "mdl", seed=seed)
    assert mlb.makespan_s < mdl.makespan_s / 2


@pytest.mark.slow
def test_submission_to_one_node_costs_less_than_three_percent():
    workload = "bot:per-core=200,length-ms=50"
    even, worst = run(workload, "flds"), run(workload, "flds:assign=one")
    assert worst.makespan_s <= 1.03 * even.makespan_s


# -- what the store is asked -----------------------------------------------------------------------------------------

STAYING = (
    "mlb:balance=none",
    "mdl:balance=none",
    "flds:balance=none",
    "daws:balance=none",
    "constellation:balance=none",
)


@pytest.mark.parametrize("strategy", STAYING)
@pytest.mark.parametrize(
    "workload",
    [
        "bot:tasks=300",
        "fan-out:tasks=300,degree=5",
        "fan-in:tasks=300,degree=5",
        "pipeline:tasks=300,size=5",
        "random:tasks=300,degree=4",
        "all-pairs:files=12",
        "image-stacking:tasks=300,degree=20",
        "epigenomics:tasks=100",  # takes days, in which objects wait for hours
    ],
)
def test_one_record_per_edge_and_three_per_task(workload, strategy):
    for nodes in (1, 2, 3, 8):
        result = run(workload, strategy, nodes)
        assert result.steals == 0
        assert result.store_records <= result.edges + 3 * result.tasks, f"{nodes} nodes"


# -- contexts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", list(PRESETS))
def test_every_task_runs_where_its_context_is_offered(preset):
    contexts = (None, Label("gpu"), Label("cpu"), parse_context("gpu|cpu"), parse_context("disk@3"))
    builder = GraphBuilder()
    handles: list[TaskHandle] = []
    for number in range(120):
        inputs = [handles[number // 2]] if number % 3 else []
        handles.append(builder.add_task("step", 5_000_000, inputs, (20_000,), contexts[number % 5]))
    graph = builder.build()
    groups = ("3x2[cpu>any]", "1x2[gpu]", "2x1[gpu]+2", "1x1[disk@1..4]+1[gpu]")
    cluster = joined([parse_group(text) for text in groups])
    offered = [[one.context for one in info.executors for _ in range(one.count)] for info in cluster.infos()]
    seen: dict[int, tuple[int, int]] = {}

    def watch(kernel):
        on_start = kernel.checker.on_start

        def note(node, effect, begin_ns):
            seen[effect.ready.spec.id] = (node, effect.slot)
            on_start(node, effect, begin_ns)

        kernel.checker.on_start = note

    result, _ = simulate(graph, cluster, parse_strategy(preset), Settings(check=True), prepare=watch)
    assert (result.failed, len(seen)) == (0, 120)
    for task, (node, slot) in seen.items():
        assert matches(contexts[task % 5], offered[node][slot]), f"task {task} on executor {slot} of node {node}"


# -- bad input -------------------------------------------------------------------------------------------------------


def one_line(error: DawsError) -> str:
    text = str(error)
    assert text and "\n" not in text
    return text


def test_a_context_that_nobody_offers_is_refused_in_one_line():
    builder = GraphBuilder()
    builder.add_task("render", 1000, context=Label("gpu"))
    with pytest.raises(ContextError) as refused:
        simulate(builder.build(), cluster_of(4), parse_strategy("daws"))
    assert "'gpu', which no executor offers" in one_line(refused.value)


def test_a_cycle_is_refused_in_one_line():
    graph = Graph(
        kinds=("step",),
        kind=[0, 0, 0],
        length_ns=[1000] * 3,
        input_start=[0, 1, 2, 3],
        inputs=[2, 0, 1],
        output_start=[0, 1, 2, 3],
        object_bytes=[10] * 3,
    )

    def runs(done):
        raise AssertionError("a graph with a cycle is being run")

    with pytest.raises(GraphError) as refused:
        simulate(graph, cluster_of(4), parse_strategy("daws"), progress=runs)
    assert "cycle" in one_line(refused.value)


@pytest.mark.parametrize(("nodes", "cores"), [(0, 2), (-1, 2), (4, 0)])
def test_no_nodes_or_cores_are_refused_in_one_line(nodes, cores, capsys):
    with pytest.raises(ClusterError) as refused:
        cluster_of(nodes, cores)
    one_line(refused.value)
    assert main(["sim", "bot:tasks=10", "--nodes", str(nodes), "--cores", str(cores)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
