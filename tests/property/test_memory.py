"""Any mix of tasks that declare memory, on nodes of which some can hold each of them, with nodes that die: all tasks
end, and what runs together never declares more than its node has."""

from hypothesis import given, settings
from hypothesis import strategies as st

from daws.core import invariants
from daws.model.cluster import ExecutorClass
from daws.model.context import parse_context
from daws.model.graph import Graph, Growth
from daws.model.graph_builder import GraphBuilder, TaskHandle
from daws.sim.cluster import NodeGroup, SimulatedCluster
from daws.sim.faults import FaultPlan
from daws.sim.kernel import Kernel
from daws.sim.runlog import RunLog
from daws.sim.simulate import Settings, simulate
from daws.sim.worlds import Scenario, make_scenario_kernel
from daws.sim.worlds.stock import with_setup
from daws.strategy import PRESETS, parse_strategy

MS = 1_000_000
ROOM = 10
"""Bytes that most nodes have, or more."""


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    builder = GraphBuilder()
    made: list[TaskHandle] = []
    for _ in range(draw(st.integers(1, 25))):
        reads = bool(made) and draw(st.booleans())
        inputs = [made[draw(st.integers(0, len(made) - 1))]] if reads else []
        made.append(
            builder.add_task(
                draw(st.sampled_from("ab")),
                draw(st.integers(1, 50)) * MS,
                inputs,
                [20_000],
                parse_context(draw(st.sampled_from(("", "", "gpu|any")))),
                cores=draw(st.sampled_from((1, 1, 1, 2))),
                memory_bytes=draw(st.one_of(st.just(0), st.integers(1, ROOM))),
            )
        )
    return builder.build()


EXECUTORS = (ExecutorClass(2), ExecutorClass(2, parse_context("gpu")))
clusters = st.builds(
    lambda count, room, more: SimulatedCluster(
        (
            NodeGroup(count, (ExecutorClass(4),), memory_bytes=room),
            NodeGroup(1, EXECUTORS, memory_bytes=more),
            NodeGroup(2, (ExecutorClass(1),), memory_bytes=ROOM // 2),
        )
    ),
    st.integers(1, 3),
    st.integers(ROOM, 2 * ROOM),
    st.sampled_from((0, ROOM)),
)


def rests(kernel: Kernel) -> None:
    assert kernel.event_count < 200_000, f"{kernel.client.waiting_for} tasks never end"


@settings(max_examples=80)
@given(graphs(), clusters, st.sampled_from(list(PRESETS)), st.integers(0, 1000))
def test_all_tasks_end_and_no_node_holds_more_than_it_has(
    graph: Graph, cluster: SimulatedCluster, preset: str, seed: int
):
    logs: list[RunLog] = []

    def prepare(kernel: Kernel) -> None:
        kernel.checker.deep = invariants.check
        logs.append(RunLog(kernel))
        kernel.progress = lambda done: rests(kernel)

    result, _ = simulate(graph, cluster, parse_strategy(preset), Settings(seed=seed, check=True), prepare=prepare)
    assert (result.failed, result.cancelled) == (0, 0)
    if result.replicas:
        return  # the log knows one run of each task
    log, rooms = logs[0], [info.memory_bytes for info in cluster.infos()]
    needs = [0] * graph.task_count if graph.memory_bytes is None else graph.memory_bytes.tolist()
    for task in range(graph.task_count):
        node, now_ns = log.node[task], log.start_ns[task]
        together = [
            other
            for other in range(graph.task_count)
            if log.node[other] == node and log.start_ns[other] <= now_ns < log.end_ns[other]
        ]
        assert not rooms[node] or sum(needs[other] for other in together) <= rooms[node]


@settings(max_examples=60)
@given(graphs(), clusters, st.sampled_from(list(PRESETS)), st.integers(0, 1000), st.integers(0, 2))
def test_also_when_nodes_die(graph: Graph, cluster: SimulatedCluster, preset: str, seed: int, crashes: int):
    if graph.task_count > 1 and graph.kinds == ("a", "b"):
        graph = graph.changed(growth=[Growth(0, 1, 2, 5 * MS)])  # tasks that wait hold none meanwhile
    plan = FaultPlan(horizon_ns=400 * MS, crashes=crashes, loss=0.05, duplication=0.05, restart_ns_max=300 * MS)
    scenario = with_setup(Scenario(seed, "memory", graph, cluster, parse_strategy(preset), plan, 2))
    kernel = make_scenario_kernel(scenario, invariants.check)
    kernel.start()
    kernel.run(120_000 * MS)
    assert not kernel.client.waiting_for
    kernel.checker.finish(killers_allowed=True)
