"""Plain worlds whose store loses what it has acknowledged. Many of them have a graph that grows, or many tasks."""

from msgspec import structs

from daws.model.cluster import ExecutorClass
from daws.sim.cluster import NodeGroup, SimulatedCluster
from daws.sim.servers import draw_failovers
from daws.sim.worlds.graphs import LARGE, growing_graph
from daws.sim.worlds.plain import draw_plain
from daws.sim.worlds.scenario import Scenario
from daws.strategy.rng import SplitMix64
from daws.workloads import parse_workload

HELD = (3, 4, 7)
"""The seeds (modulo 8) in which tasks that were created belong to their creators."""


def draw_failover(seed: int) -> Scenario:
    rng = SplitMix64(seed * 0x5DEECE66D + 13)
    servers = draw_failovers(rng)
    scenario = draw_plain(seed)
    kind = rng.below(4)
    if kind == 0:
        graph = growing_graph(rng, waits=rng.below(3) > 0, held=seed % 8 in HELD)
        scenario = structs.replace(scenario, graph=graph)
    elif kind == 1:
        graph = parse_workload(LARGE[rng.below(len(LARGE))]).build(scenario.cluster.node_count, 1, seed)
        scenario = structs.replace(
            scenario, graph=graph, cluster=SimulatedCluster((NodeGroup(4, (ExecutorClass(2),)),))
        )
    shards = max(scenario.shards, 1 + seed % 3)
    return structs.replace(scenario, kind="failover", servers=servers, shards=shards)
