"""A world whose tasks wait for tasks that they have created, on workers that die."""

from msgspec import structs

from daws.model.cluster import ExecutorClass
from daws.sim.cluster import NodeGroup, SimulatedCluster
from daws.sim.faults import FaultPlan
from daws.sim.servers import draw_failovers
from daws.sim.worlds.graphs import MS, growing_graph, short_graph
from daws.sim.worlds.plain import draw_plain
from daws.sim.worlds.scenario import Scenario
from daws.strategy.rng import SplitMix64


def draw_lost_workers(seed: int, forgets: bool) -> Scenario:
    """The scenario of a seed. With `forgets`, the store loses what it has acknowledged as well."""
    rng = SplitMix64(seed * 0x2545F4914F6CDD1D + 17)
    scenario = draw_plain(seed)
    graph = growing_graph(rng, waits=True, roots=3 + rng.below(12)) if rng.below(3) else short_graph(rng)
    groups = (NodeGroup(1 + rng.below(4), (ExecutorClass(1 + rng.below(3)),)),)
    plan = scenario.plan if rng.below(2) else FaultPlan(delay=0.3 * rng.unit(), delay_ns_max=(1 + rng.below(60)) * MS)
    return structs.replace(
        scenario,
        kind="deserted",
        graph=graph,
        cluster=SimulatedCluster(groups),
        plan=plan,
        worker_deaths=1 + rng.below(12),
        servers=draw_failovers(rng) if forgets else None,
    )
