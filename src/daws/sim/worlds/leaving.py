"""A world whose nodes are told to leave, though never all of them. In one of three nothing else goes wrong."""

from msgspec import structs

from daws.core.events import NEVER_NS
from daws.model.cluster import ExecutorClass
from daws.sim.cluster import NodeGroup, SimulatedCluster
from daws.sim.faults import FaultPlan
from daws.sim.worlds.graphs import LARGE, MS, short_graph
from daws.sim.worlds.plain import draw_plain
from daws.sim.worlds.scenario import Scenario
from daws.strategy.rng import SplitMix64
from daws.workloads import parse_workload


def draw_leaving(seed: int) -> Scenario:
    rng = SplitMix64(seed * 0x369DEA0F31A53F85 + 1181783497276652981)
    scenario = draw_plain(seed)
    if rng.below(8) == 0:
        scenario = structs.replace(
            scenario, graph=short_graph(rng), cluster=SimulatedCluster((NodeGroup(3, (ExecutorClass(2),)),))
        )
    elif rng.below(4) == 0:
        graph = parse_workload(LARGE[rng.below(len(LARGE))]).build(3, 1, seed)
        scenario = structs.replace(
            scenario, graph=graph, cluster=SimulatedCluster((NodeGroup(4, (ExecutorClass(2),)),))
        )
    return structs.replace(
        scenario,
        kind="leaving",
        leaves=_draw_leaves(rng, scenario.cluster.node_count),
        plan=scenario.plan if rng.below(3) else FaultPlan(horizon_ns=MS),
        # If all nodes that can run some of the tasks leave, one of them has to come back.
        returns=seed % 2 == 0 or bool(scenario.graph.context.any()),
    )


def _draw_leaves(rng: SplitMix64, count: int) -> tuple[tuple[int, int, int], ...]:
    """A draw of the nodes that leave, with the time and the deadline of each."""
    indices = list(range(count))
    leaves = []
    hurried = rng.below(2)
    for _ in range(1 + rng.below(count - 1)):
        index = indices.pop(rng.below(len(indices)))
        at_ns = rng.below(1_500 * MS if rng.below(3) else 3 * MS)  # or before the client has handed out everything
        leaves.append((index, at_ns, at_ns + rng.below(2_000 * MS) if hurried and rng.below(2) else NEVER_NS))
    return tuple(leaves)
