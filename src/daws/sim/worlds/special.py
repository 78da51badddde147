"""Special worlds: clusters and moments of death that presets on plain clusters do not meet."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct, structs

from daws.model.cluster import ExecutorClass
from daws.model.graph import Graph
from daws.sim.cluster import NodeGroup, SimulatedCluster
from daws.sim.faults import FaultPlan, draw_plan
from daws.sim.worlds.graphs import LARGE, MS, deadly_graph, growing_graph, short_graph
from daws.sim.worlds.scenario import Scenario
from daws.sim.worlds.strategies import ALTERED
from daws.strategy import parse_strategy
from daws.strategy.decisions import Strategy
from daws.strategy.rng import SplitMix64
from daws.workloads import parse_workload

IN_SEVERAL_SHARDS = (
    "fan-in:tasks=150,degree=12,output-mb=1,length-ms=20",
    "fan-out:tasks=150,degree=3,output-mb=1,length-ms=20",
    "random:tasks=150,layers=8,degree=4,output-mb=1,length-ms=20",
    "pipeline:tasks=140,size=12,output-mb=2,length-ms=20",
    "image-stacking:tasks=130,degree=10,locality=5,file-mb=1,output-mb=0.1,length-ms=20",
    "all-pairs:files=12,file-mb=2,length-ms=20",
)
"""Workloads with so many tasks that their records lie in several shards. The first has records with so many edges that
the store keeps them in another form."""


class SpecialDraft(Struct):
    """The part that all special worlds have in common, and the generator for the rest."""

    seed: int
    rng: SplitMix64
    nodes: int
    cores: int
    strategy: Strategy
    plan: FaultPlan
    shards: int

    def scenario(self, kind: str, graph: Graph, cluster: SimulatedCluster | None = None, **more: Any) -> Scenario:
        usual = Scenario(
            self.seed, kind, graph, cluster or self.cluster(self.nodes), self.strategy, self.plan, self.shards
        )
        return structs.replace(usual, **more)

    def cluster(self, nodes: int, cores: int = 0) -> SimulatedCluster:
        return SimulatedCluster((NodeGroup(nodes, (ExecutorClass(cores or self.cores),)),))

    def single_cores(self, more: int = 1) -> SimulatedCluster:
        """A cluster of nodes with one executor each: a node that dies loses one run."""
        return self.cluster(self.nodes + more, 1)

    def plan_with(self, **more: Any) -> FaultPlan:
        return structs.replace(self.plan, **more)

    def graph(self) -> Graph:
        return self.workload()[1]

    def workload(self) -> tuple[str, Graph]:
        workload = parse_workload(IN_SEVERAL_SHARDS[self.rng.below(len(IN_SEVERAL_SHARDS))])
        return workload.name, workload.build(self.nodes, self.cores, self.seed)


def draw_special(seed: int) -> Scenario:
    rng = SplitMix64(seed * 0x2545F4914F6CDD1D + 7046029254386353131)
    nodes, cores = 2 + rng.below(5), 1 + rng.below(3)
    strategy = parse_strategy(ALTERED[rng.below(len(ALTERED))])
    draft = SpecialDraft(seed, rng, nodes, cores, strategy, draw_plan(rng), 1 + rng.below(4))
    number = rng.below(sum(share for share, _ in SPECIAL_WORLDS))
    for share, draw in SPECIAL_WORLDS:
        if number < share:
            return draw(draft)
        number -= share
    raise AssertionError


def _several_shards(draft: SpecialDraft) -> Scenario:
    name, graph = draft.workload()
    return draft.scenario(name, graph)


def _little_memory(draft: SpecialDraft) -> Scenario:
    graph = draft.graph()
    return draft.scenario("little memory", graph, memory_bytes=(1 + draft.rng.below(8)) * 1_000_000)


def _unlike_nodes(draft: SpecialDraft) -> Scenario:
    slow = NodeGroup(draft.nodes, (ExecutorClass(draft.cores),), 0.5)
    return draft.scenario(
        "unlike nodes", draft.graph(), SimulatedCluster((slow, NodeGroup(2, (ExecutorClass(4),), 2.0, 1)))
    )


def _cut_off(draft: SpecialDraft) -> Scenario:
    graph = draft.graph()
    plan = draft.plan_with(partitions=2 + draft.rng.below(4), horizon_ns=5_000 * MS)
    return draft.scenario("cut off", graph, draft.single_cores(), plan=plan, late_clears=2)


def _exiled(draft: SpecialDraft) -> Scenario:
    draft.rng.below(len(IN_SEVERAL_SHARDS))  # not used, but the numbers that follow depend on it
    graph = parse_workload(LARGE[0]).build(draft.nodes, 1, draft.seed)
    return draft.scenario("exiled", graph, draft.single_cores(), store_cuts=1 + draft.rng.below(2))


def _last_words(draft: SpecialDraft) -> Scenario:
    graph, rng = draft.graph(), draft.rng
    deaths_in_takeover, late_clears = rng.below(3), 1 + rng.below(2)
    plan = FaultPlan(
        horizon_ns=5_000 * MS, delay=0.3 + 0.5 * rng.unit(), delay_ns_max=1_500 * MS, restart_ns_max=500 * MS
    )
    return draft.scenario(
        "last words",
        graph,
        draft.single_cores(),
        plan=plan,
        shards=max(2, draft.shards),
        deaths_after_call=2 + rng.below(5),
        deaths_in_takeover=deaths_in_takeover,
        late_clears=late_clears,
    )


def _many_cancels(draft: SpecialDraft) -> Scenario:
    graph, rng = draft.graph(), draft.rng
    plan = draft.plan_with(
        cancels=2 + rng.below(6), crashes_at_store=2 + rng.below(4), loss=0.1 * rng.unit(), horizon_ns=800 * MS
    )
    return draft.scenario("cancelled", graph, plan=plan)


def _sent_ahead(draft: SpecialDraft) -> Scenario:
    return draft.scenario("sent ahead", short_graph(draft.rng))


def _long_children(draft: SpecialDraft) -> Scenario:
    """Tasks create long tasks: those of an attempt that was lost would be seen to end long after it."""
    graph = growing_graph(draft.rng, waits=draft.rng.below(2) == 0, longer=100)
    plan = draft.plan_with(crashes=1 + draft.rng.below(3), horizon_ns=2_000 * MS)
    return draft.scenario("long children", graph, plan=plan)


def _deadly(draft: SpecialDraft) -> Scenario:
    """A task kills its node. A run beside it would be lost as often: one executor each, and no other crashes."""
    plan = FaultPlan(horizon_ns=MS, duplication=draft.plan.duplication)
    graph, killer = deadly_graph(draft.rng, alone=draft.rng.below(2) == 0)
    return draft.scenario("deadly", graph, draft.single_cores(), plan=plan, killers=(killer,))


def _heirs(draft: SpecialDraft) -> Scenario:
    """Nodes die while they take over from others, before they have everything."""
    rng = draft.rng
    plan = draft.plan_with(crashes=2 + rng.below(3), partitions=0, horizon_ns=4_000 * MS)
    graph = parse_workload(LARGE[rng.below(len(LARGE))]).build(draft.nodes, 1, draft.seed)
    shards, partial_takeovers = 2 + rng.below(3), 1 + rng.below(3)
    return draft.scenario(
        "heirs", graph, draft.single_cores(2), plan=plan, shards=shards, partial_takeovers=partial_takeovers
    )


SPECIAL_WORLDS: tuple[tuple[int, Callable[[SpecialDraft], Scenario]], ...] = (
    (1, _several_shards),
    (2, _little_memory),
    (1, _unlike_nodes),
    (1, _cut_off),
    (1, _exiled),
    (2, _last_words),
    (2, _many_cancels),
    (1, _sent_ahead),
    (2, _long_children),
    (1, _deadly),
    (2, _heirs),
)
"""How many of sixteen special worlds are of which kind. The table is closed."""
