"""Plain worlds: a preset on a usual workload, or on a graph with contexts, wide tasks or tasks that create tasks."""

from daws.model.cluster import ExecutorClass
from daws.model.context import Label, parse_context
from daws.sim.cluster import NodeGroup, SimulatedCluster
from daws.sim.faults import draw_plan
from daws.sim.worlds.graphs import growing_graph, labelled_graph, wide_graph
from daws.sim.worlds.scenario import Scenario
from daws.sim.worlds.strategies import FIRST
from daws.strategy import parse_strategy
from daws.strategy.rng import SplitMix64
from daws.workloads import parse_workload

USUAL = (
    "bot:tasks=60,length-ms=40",
    "fan-out:tasks=60,degree=4,output-mb=1,length-ms=40",
    "fan-in:tasks=60,degree=4,output-mb=1,length-ms=40",
    "pipeline:tasks=60,size=6,output-mb=1,length-ms=40",
    "random:tasks=60,output-mb=1,length-ms=40",
    "all-pairs:files=7,file-mb=2,length-ms=40",
)


def draw_plain(seed: int) -> Scenario:
    rng = SplitMix64(seed * 0x5851F42D4C957F2D + 1442695040888963407)
    nodes = 2 + rng.below(6)
    cores = 1 + rng.below(3)
    strategy = parse_strategy(FIRST[rng.below(len(FIRST))])
    kind = rng.below(10)
    groups: tuple[NodeGroup, ...] = (NodeGroup(nodes, (ExecutorClass(cores),)),)
    if kind < len(USUAL):
        workload = parse_workload(USUAL[kind])
        name, graph = workload.name, workload.build(nodes, cores, seed)
    elif kind == 6:
        name, graph = "labelled", labelled_graph(rng)
        groups = (
            NodeGroup(nodes, (ExecutorClass(cores, parse_context("cpu>any")),)),
            NodeGroup(1, (ExecutorClass(1, Label("gpu")),)),
            NodeGroup(1, (ExecutorClass(2, Label("gpu")), ExecutorClass(2))),
        )
    elif kind == 7:
        name, graph = "wide", wide_graph(rng)
        groups = (NodeGroup(nodes, (ExecutorClass(4),)),)
    else:
        name, graph = "growing", growing_graph(rng, waits=kind == 8 or rng.below(2) == 0)
    return Scenario(seed, name, graph, SimulatedCluster(groups), strategy, draw_plan(rng), 1 + rng.below(4))
