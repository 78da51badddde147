"""A world with leases so short that a node takes over from the dead while it has much to do itself.

It has tasks that are sent ahead, or many tasks of which some read an object that is lost.
"""

from daws.model.cluster import ExecutorClass
from daws.sim.cluster import NodeGroup, SimulatedCluster
from daws.sim.faults import FaultPlan
from daws.sim.worlds.graphs import MS, twofold_graph
from daws.sim.worlds.scenario import Scenario
from daws.sim.worlds.strategies import FIRST
from daws.strategy import parse_strategy
from daws.strategy.rng import SplitMix64
from daws.workloads import parse_workload


def draw_rush(seed: int) -> Scenario:
    rng = SplitMix64(seed * 0xD6E8FEB86659FD93 + 2862933555777941757)
    nodes = 3 + rng.below(2)
    cluster, shards = SimulatedCluster((NodeGroup(nodes, (ExecutorClass(1),)),)), 1 + rng.below(3)
    if rng.below(3) == 0:
        strategy = parse_strategy(FIRST[rng.below(len(FIRST))])
        graph = parse_workload("bot:tasks=700,length-ms=0.4").build(nodes, 1, seed)
        plan = FaultPlan(horizon_ns=60 * MS, crashes=1 + rng.below(2), restart_ns_max=20 * MS)
        return Scenario(seed, "rush", graph, cluster, strategy, plan, shards, lease_s=0.04)
    strategy = parse_strategy(("mlb", "mdl", "flds", "matrix")[rng.below(4)] + ":order=critical-path")
    plan = FaultPlan(horizon_ns=1_000 * MS, restart_ns_max=50 * MS)
    return Scenario(
        seed, "rush", twofold_graph(), cluster, strategy, plan, shards, deaths_after_call=2 + rng.below(4), lease_s=0.4
    )
