"""A world whose tasks create tasks that wait for another task too, which has often been cancelled by then."""

import numpy as np

from daws.model.cluster import ExecutorClass
from daws.model.graph import Graph, Growth
from daws.sim.cluster import NodeGroup, SimulatedCluster
from daws.sim.faults import FaultPlan, draw_plan
from daws.sim.worlds.graphs import MS, draw_length_ns
from daws.sim.worlds.scenario import Scenario
from daws.sim.worlds.strategies import ALTERED, FIRST
from daws.strategy import parse_strategy
from daws.strategy.rng import SplitMix64


def draw_born_late(seed: int) -> Scenario:
    rng = SplitMix64(seed * 0x9FB21C651E98DF25 + 3037000493)
    nodes, cores = 2 + rng.below(4), 1 + rng.below(3)
    strategies = (*FIRST, *ALTERED)
    strategy = parse_strategy(strategies[rng.below(len(strategies))])
    graph = _draw_graph(rng)
    plan = draw_plan(rng) if rng.below(2) else FaultPlan(horizon_ns=MS)
    cancelled = ((0, rng.below(200 * MS)),) if rng.below(3) else ()
    cluster = SimulatedCluster((NodeGroup(nodes, (ExecutorClass(cores),)),))
    return Scenario(seed, "born late", graph, cluster, strategy, plan, 1 + rng.below(4), cancelled=cancelled)


def _draw_graph(rng: SplitMix64) -> Graph:
    roots = 3 + rng.below(4)
    growth = Growth(1, 2, 1 + rng.below(3), draw_length_ns(rng), waits=rng.below(2) == 0, after=0)
    lengths = [draw_length_ns(rng) * 5 for _ in range(1 + roots)]
    return Graph(
        kinds=("needed", "root", "spawned", "end"),
        kind=np.array([0, *[1] * roots, 3]),
        length_ns=np.array([*lengths, draw_length_ns(rng)]),
        input_start=np.array([0] * (roots + 2) + [roots + 1]),  # the last task reads what all others make
        inputs=np.arange(roots + 1),
        output_start=np.arange(roots + 3),
        object_bytes=np.array([30_000] * (roots + 2)),
        growth=(growth,),
    )
