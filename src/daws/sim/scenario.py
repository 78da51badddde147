"""Scenarios: a small cluster, a small graph, a strategy and a plan of faults, all drawn from one number.

`run_scenario(seed)` either returns what happened or raises a Violation that names the seed; the same number gives the
same run.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct, structs

from daws.core import view
from daws.core.effects import CallStore, EffectType, StartRun
from daws.core.events import NEVER_NS, EventType, RunEnded
from daws.core.node import NodeCore
from daws.model.cluster import ExecutorClass
from daws.model.context import Label, parse_context
from daws.model.graph import Graph, GraphBuilder, Growth, TaskHandle
from daws.model.states import CANCELLED, FAILED, FINAL
from daws.model.task import NODE_INDEX_MASK, NodeId
from daws.sim.checkers import Checker, Violation
from daws.sim.checkers.remembered import check_remembered
from daws.sim.cluster import Cluster, NodeGroup
from daws.sim.faults import FaultPlan, Faults, draw_plan
from daws.sim.kernel import Kernel
from daws.sim.machine import FATE, STORE
from daws.sim.servers import ServerPlan, Servers, draw_failovers, draw_server_plan
from daws.sim.simulate import FAIR, SIMPLE, Settings, make_kernel
from daws.store.log.logged import StoreSettings
from daws.strategy import parse_strategy
from daws.strategy.decisions import Strategy
from daws.strategy.rng import Rng
from daws.wire.store import (
    REMAKE_FOR,
    SATISFY,
    AnswerType,
    Claim,
    Clear,
    Finish,
    Row,
    Satisfy,
    Suspend,
    TakeOver,
    Unready,
    outbox_key,
)
from daws.workloads import parse_workload

MS = 1_000_000
LEASE_S = 1.0
LIVENESS_NS = 120_000 * MS
"""After the world has healed, everything must have ended within this time."""
KILLS = 3
"""A task under which so many nodes died is not tried again."""
RETIRED_MAX = 1 << 20
"""None is forgotten for good: messages come very late here."""
EVENTS_MAX = 250_000
"""Many times what any of these small runs needs: nodes that never come to rest are caught at the same event."""


class Scenario(Struct, frozen=True):
    """Everything that a seed decides."""

    seed: int
    kind: str  # of the graph
    graph: Graph
    cluster: Cluster
    strategy: Strategy
    plan: FaultPlan
    shards: int
    memory_bytes: int = 1 << 62  # for copies, of each node
    killers: tuple[int, ...] = ()  # tasks that take their node down each time they run
    words: int = 0  # so many nodes die while a call of theirs is on its way for long
    heirs: int = 0  # so many die while they take over from another
    echoes: int = 0  # so many die when they intend something again, and their word that it was done comes twice
    exiles: int = 0  # so many lose sight of the store for longer than a lease, while they have much to do
    torn: int = 0  # so many die when one shard has let them take over, and the others have not heard of it
    deserted: int = 0  # so many runs lose their worker while they wait for tasks, or are about to
    lease_s: float = LEASE_S
    cancelled: tuple[tuple[int, int], ...] = ()  # tasks that the client cancels, and when
    leaves: tuple[tuple[int, int, int], ...] = ()  # which nodes are told to leave, when, and with which deadline
    servers: ServerPlan | None = None  # what happens to the store

    @property
    def is_forgetful(self) -> bool:
        """The store may lose what it has acknowledged."""
        return self.servers is not None and self.servers.failovers > 0

    @property
    def is_peaceful(self) -> bool:
        """Nodes leave when they are ready to, and that is all that happens."""
        plan = FaultPlan(horizon_ns=self.plan.horizon_ns)
        hurried = any(deadline != NEVER_NS for _, _, deadline in self.leaves)
        return bool(self.leaves) and self.plan == plan and self.servers is None and not hurried


class Outcome(Struct, frozen=True):
    """What happened: which faults struck and how the tasks ended."""

    seed: int
    kind: str
    strategy: str
    tasks: int
    failed: int
    cancelled: int
    end_ns: int
    faults: dict[str, int]
    digest: str


def draw_scenario(seed: int) -> Scenario:
    # Which seeds are special must not change: some of the others once brought a bug to light and are run for ever.
    if seed >= GROWN:
        return _draw_grown(seed)
    scenario = _draw_unplanned(seed)
    if seed % 31 in BY_DEFAULT:
        scenario = structs.replace(scenario, strategy=parse_strategy(PLANNED[seed // 31 % len(PLANNED)]))
    return scenario


BY_DEFAULT = (0, 10, 13, 20, 28, 29)
"""Of 31 seeds in a row, those that run the default strategy or something near it; none of them was special before."""


def _draw_unplanned(seed: int) -> Scenario:
    if seed % 43 in DESERTED:
        return _draw_deserted(seed)
    if seed % 23 in REPLICATED:
        return _draw_failover(seed)
    scenario = _draw_first(seed)
    if seed % 19 in (3, 12, 15):
        scenario = structs.replace(scenario, strategy=parse_strategy(LATER[seed // 19 % len(LATER)]))
    if seed % 23 in SERVED:
        scenario = structs.replace(scenario, servers=draw_server_plan(Rng(seed * 0x5DEECE66D + 11)))
    return scenario


DESERTED = (29, 38)
"""Of 43 seeds in a row, those in which workers die whose runs wait; in the second the store forgets as well."""
SERVED = (0, 8, 10)
"""Of 23 seeds in a row, those whose store may fail; whatever else happens in such a world."""
REPLICATED = (3, 6)
"""... and those whose store forgets what it has acknowledged."""
HELD = (3, 4, 7)
"""Of 8 seeds in a row, those in which tasks that were created belong to their creators, if the store forgets."""
GROWN = 1_000_000
"""From here on all seeds are of one sort, which is rare before: the store forgets, and the graph grows."""

UNDIVIDED = (3, 10)
"""Of 16 of these in a row, those whose store has one shard."""


def _draw_first(seed: int) -> Scenario:
    if seed % 29 == 4:
        return _draw_born_late(seed)
    if seed % 29 == 9:
        return _draw_rush(seed)
    if seed % 17 in (6, 12):
        return _draw_leaving(seed)
    return _draw_special(seed) if seed % 7 in (2, 3) else _draw_plain(seed)


def _draw_plain(seed: int) -> Scenario:
    """A preset on one of the workloads, or on a graph with contexts, wide tasks or tasks that spawn tasks."""
    rng = Rng(seed * 0x5851F42D4C957F2D + 1442695040888963407)
    nodes = 2 + rng.below(6)
    cores = 1 + rng.below(3)
    strategy = parse_strategy(FIRST[rng.below(len(FIRST))])
    kind = rng.below(10)
    groups: tuple[NodeGroup, ...] = (NodeGroup(nodes, (ExecutorClass(cores),)),)
    if kind < 6:
        texts = (
            "bot:tasks=60,length-ms=40",
            "fan-out:tasks=60,degree=4,output-mb=1,length-ms=40",
            "fan-in:tasks=60,degree=4,output-mb=1,length-ms=40",
            "pipeline:tasks=60,size=6,output-mb=1,length-ms=40",
            "random:tasks=60,output-mb=1,length-ms=40",
            "all-pairs:files=7,file-mb=2,length-ms=40",
        )
        workload = parse_workload(texts[kind])
        name, graph = workload.name, workload.build(nodes, cores, seed)
    elif kind == 6:
        name, graph = "labelled", _labelled_graph(rng)
        groups = (
            NodeGroup(nodes, (ExecutorClass(cores, parse_context("cpu>any")),)),
            NodeGroup(1, (ExecutorClass(1, Label("gpu")),)),
            NodeGroup(1, (ExecutorClass(2, Label("gpu")), ExecutorClass(2))),
        )
    elif kind == 7:
        name, graph = "wide", _wide_graph(rng)
        groups = (NodeGroup(nodes, (ExecutorClass(4),)),)
    else:
        name, graph = "growing", growing_graph(rng, waits=kind == 8 or rng.below(2) == 0)
    return Scenario(seed, name, graph, Cluster(groups), strategy, draw_plan(rng), 1 + rng.below(4))


FIRST = ("mlb", "mdl", "rlds", "flds", "matrix", "adage", "constellation", "master-worker", "random")
"""The presets that were there when seeds began to be remembered."""
LATER = (
    "albatross",
    "sparrow",
    "data-diffusion",
    "heft",
    "data-diffusion:policy=max-cache-hit,cache=none",
    "sparrow:probes=1,count=3,assign=one",
    "albatross:overload=0.5,probes=2",
    "flds:place=earliest,balance=lifelines,cache=lru,lru-gb=0.003",
    "matrix:replicate=stragglers,seen=2,quantile=0.5,slack=1,least-ms=1",
    "constellation:replicate=stragglers,seen=1,quantile=0.1,slack=1,least-ms=0,copies=2,delay-ms=5",
    "mlb:balance=lifelines,tries=0,replicate=stragglers,seen=1,slack=1,least-ms=1",
)
PLANNED = (
    "daws",
    "daws:settle=0,tt=0,t=inf",
    "daws:replicate=stragglers,seen=2,quantile=0.5,slack=1,least-ms=1",
    "daws:balance=give,replicate=given,period-ms=4,period-max-ms=20,validate-s=0.3",
    "daws",
    "daws:t=0,relax=never",
    "daws:balance=lifelines,cache=lru,lru-gb=0.003",
)
ALTERED = (
    "flds:balance=none",
    "mlb:cache=none",
    "mlb:assign=one,share=0.9",
    "mdl:order=critical-path",
    "rlds:t=0.01,balance=random-steal,count=3",
    "matrix:place=random,tt=0.01",
    "matrix:assign=data,order=submission",
    "adage:copies=3,period-ms=4,period-max-ms=20",
    "adage:replicate=never,period-max-ms=20",
    "constellation:delay-ms=10,count=4",
    "flds:place=home,assign=hashed",
)
# So many tasks that their records lie in several shards; in the first, so many edges that they are kept another way.
SPECIAL = (
    "fan-in:tasks=150,degree=12,output-mb=1,length-ms=20",
    "fan-out:tasks=150,degree=3,output-mb=1,length-ms=20",
    "random:tasks=150,layers=8,degree=4,output-mb=1,length-ms=20",
    "pipeline:tasks=140,size=12,output-mb=2,length-ms=20",
    "image-stacking:tasks=130,degree=10,locality=5,file-mb=1,output-mb=0.1,length-ms=20",
    "all-pairs:files=12,file-mb=2,length-ms=20",
)
# So many tasks are ready at once that whoever dies leaves some in every shard.
ESTATES = (
    "bot:tasks=250,length-ms=80",
    "fan-out:tasks=250,degree=6,output-mb=1,length-ms=60",
    "random:tasks=250,layers=4,degree=3,output-mb=1,length-ms=60",
)


class _Draft(Struct):
    """What special scenarios have in common, and where the numbers come from that are still to be drawn."""

    seed: int
    rng: Rng
    nodes: int
    cores: int
    strategy: Strategy
    plan: FaultPlan
    shards: int

    def scenario(self, kind: str, graph: Graph, cluster: Cluster | None = None, **more: Any) -> Scenario:
        usual = Scenario(
            self.seed, kind, graph, cluster or self.cluster(self.nodes), self.strategy, self.plan, self.shards
        )
        return structs.replace(usual, **more)

    def cluster(self, nodes: int, cores: int = 0) -> Cluster:
        return Cluster((NodeGroup(nodes, (ExecutorClass(cores or self.cores),)),))

    def lonely(self, more: int = 1) -> Cluster:
        """One executor each: who dies has lost one run."""
        return self.cluster(self.nodes + more, 1)

    def plan_with(self, **more: Any) -> FaultPlan:
        return structs.replace(self.plan, **more)

    def graph(self) -> Graph:
        return self.workload()[1]

    def workload(self) -> tuple[str, Graph]:
        workload = parse_workload(SPECIAL[self.rng.below(len(SPECIAL))])
        return workload.name, workload.build(self.nodes, self.cores, self.seed)


def _draw_special(seed: int) -> Scenario:
    """What presets and plain clusters do not meet."""
    rng = Rng(seed * 0x2545F4914F6CDD1D + 7046029254386353131)
    nodes, cores = 2 + rng.below(5), 1 + rng.below(3)
    strategy = parse_strategy(ALTERED[rng.below(len(ALTERED))])
    draft = _Draft(seed, rng, nodes, cores, strategy, draw_plan(rng), 1 + rng.below(4))
    number = rng.below(sum(share for share, _ in SPECIAL_WORLDS))
    for share, draw in SPECIAL_WORLDS:
        if number < share:
            return draw(draft)
        number -= share
    raise AssertionError


def _several_shards(draft: _Draft) -> Scenario:
    name, graph = draft.workload()
    return draft.scenario(name, graph)


def _little_memory(draft: _Draft) -> Scenario:
    graph = draft.graph()
    return draft.scenario("little memory", graph, memory_bytes=(1 + draft.rng.below(8)) * 1_000_000)


def _unlike_nodes(draft: _Draft) -> Scenario:
    slow = NodeGroup(draft.nodes, (ExecutorClass(draft.cores),), 0.5)
    return draft.scenario("unlike nodes", draft.graph(), Cluster((slow, NodeGroup(2, (ExecutorClass(4),), 2.0, 1))))


def _cut_off(draft: _Draft) -> Scenario:
    graph = draft.graph()
    plan = draft.plan_with(partitions=2 + draft.rng.below(4), horizon_ns=5_000 * MS)
    return draft.scenario("cut off", graph, draft.lonely(), plan=plan, echoes=2)


def _exiled(draft: _Draft) -> Scenario:
    draft.rng.below(len(SPECIAL))  # for nothing: what these seeds draw must not change
    graph = parse_workload(ESTATES[0]).build(draft.nodes, 1, draft.seed)
    return draft.scenario("exiled", graph, draft.lonely(), exiles=1 + draft.rng.below(2))


def _last_words(draft: _Draft) -> Scenario:
    graph, rng = draft.graph(), draft.rng
    heirs, echoes = rng.below(3), 1 + rng.below(2)
    plan = FaultPlan(
        horizon_ns=5_000 * MS, delay=0.3 + 0.5 * rng.unit(), delay_ns_max=1_500 * MS, restart_ns_max=500 * MS
    )
    words, shards = 2 + rng.below(5), max(2, draft.shards)
    return draft.scenario(
        "last words", graph, draft.lonely(), plan=plan, shards=shards, words=words, heirs=heirs, echoes=echoes
    )


def _many_cancels(draft: _Draft) -> Scenario:
    graph, rng = draft.graph(), draft.rng
    plan = draft.plan_with(
        cancels=2 + rng.below(6), crashes_at_store=2 + rng.below(4), loss=0.1 * rng.unit(), horizon_ns=800 * MS
    )
    return draft.scenario("cancelled", graph, plan=plan)


def _sent_ahead(draft: _Draft) -> Scenario:
    return draft.scenario("sent ahead", _hasty_graph(draft.rng))


def _long_children(draft: _Draft) -> Scenario:
    """Those of an attempt that was lost would be seen to end long after it."""
    graph = growing_graph(draft.rng, waits=draft.rng.below(2) == 0, longer=100)
    plan = draft.plan_with(crashes=1 + draft.rng.below(3), horizon_ns=2_000 * MS)
    return draft.scenario("long children", graph, plan=plan)


def _deadly(draft: _Draft) -> Scenario:
    """Whoever runs beside a killer is lost as often as the killer itself: one executor each, and no other crashes."""
    plan = FaultPlan(horizon_ns=MS, duplication=draft.plan.duplication)
    graph, killer = _deadly_graph(draft.rng, alone=draft.rng.below(2) == 0)
    return draft.scenario("deadly", graph, draft.lonely(), plan=plan, killers=(killer,))


def _heirs(draft: _Draft) -> Scenario:
    """Heirs that die before they have it all."""
    rng = draft.rng
    plan = draft.plan_with(crashes=2 + rng.below(3), partitions=0, horizon_ns=4_000 * MS)
    graph = parse_workload(ESTATES[rng.below(len(ESTATES))]).build(draft.nodes, 1, draft.seed)
    shards, torn = 2 + rng.below(3), 1 + rng.below(3)
    return draft.scenario("heirs", graph, draft.lonely(2), plan=plan, shards=shards, torn=torn)


SPECIAL_WORLDS: tuple[tuple[int, Callable[[_Draft], Scenario]], ...] = (
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
"""How many of sixteen special worlds are of which sort."""


def _draw_leaving(seed: int) -> Scenario:
    """Nodes that are told to leave, never all of them: in one world of three nothing else goes wrong."""
    rng = Rng(seed * 0x369DEA0F31A53F85 + 1181783497276652981)
    scenario = _draw_plain(seed)
    if rng.below(8) == 0:
        scenario = structs.replace(
            scenario, graph=_hasty_graph(rng), cluster=Cluster((NodeGroup(3, (ExecutorClass(2),)),))
        )
    elif rng.below(4) == 0:
        graph = parse_workload(ESTATES[rng.below(len(ESTATES))]).build(3, 1, seed)
        scenario = structs.replace(scenario, graph=graph, cluster=Cluster((NodeGroup(4, (ExecutorClass(2),)),)))
    count = scenario.cluster.node_count
    indices = list(range(count))
    leaves = []
    hurried = rng.below(2)
    for _ in range(1 + rng.below(count - 1)):
        index = indices.pop(rng.below(len(indices)))
        at_ns = rng.below(1_500 * MS if rng.below(3) else 3 * MS)  # or before the client has handed out everything
        leaves.append((index, at_ns, at_ns + rng.below(2_000 * MS) if hurried and rng.below(2) else NEVER_NS))
    plan = scenario.plan if rng.below(3) else FaultPlan(horizon_ns=MS)
    return structs.replace(scenario, kind="leaving", plan=plan, leaves=tuple(leaves))


def _draw_deserted(seed: int) -> Scenario:
    """Graphs whose tasks wait for tasks that they have created, on workers that die."""
    rng = Rng(seed * 0x2545F4914F6CDD1D + 17)
    scenario = _draw_plain(seed)
    graph = growing_graph(rng, waits=True, roots=3 + rng.below(12)) if rng.below(3) else _hasty_graph(rng)
    groups = (NodeGroup(1 + rng.below(4), (ExecutorClass(1 + rng.below(3)),)),)
    plan = scenario.plan if rng.below(2) else FaultPlan(delay=0.3 * rng.unit(), delay_ns_max=(1 + rng.below(60)) * MS)
    return structs.replace(
        scenario,
        kind="deserted",
        graph=graph,
        cluster=Cluster(groups),
        plan=plan,
        deserted=1 + rng.below(12),
        servers=draw_failovers(rng) if seed % 43 == DESERTED[1] else None,
    )


def _draw_failover(seed: int) -> Scenario:
    """Plain worlds whose store forgets; in many of them the graph grows, or there is much to do."""
    rng = Rng(seed * 0x5DEECE66D + 13)
    servers = draw_failovers(rng)
    scenario = _draw_plain(seed)
    kind = rng.below(4)
    if kind == 0:
        graph = growing_graph(rng, waits=rng.below(3) > 0, held=seed % 8 in HELD)
        scenario = structs.replace(scenario, graph=graph)
    elif kind == 1:
        graph = parse_workload(ESTATES[rng.below(len(ESTATES))]).build(scenario.cluster.node_count, 1, seed)
        scenario = structs.replace(scenario, graph=graph, cluster=Cluster((NodeGroup(4, (ExecutorClass(2),)),)))
    shards = max(scenario.shards, 1 + seed % 3)
    return structs.replace(scenario, kind="failover", servers=servers, shards=shards)


def _draw_grown(seed: int) -> Scenario:
    """Plain worlds whose store forgets, mostly of several shards, with tasks that create tasks."""
    rng = Rng(seed * 0x5DEECE66D + 13)
    scenario = _draw_plain(seed)
    strategy = parse_strategy(PLANNED[rng.below(len(PLANNED))]) if rng.below(3) == 0 else scenario.strategy
    return structs.replace(
        scenario,
        kind="grown",
        strategy=strategy,
        servers=draw_failovers(rng),
        graph=growing_graph(rng, waits=rng.below(3) > 0, held=rng.below(2) == 0),
        shards=1 if seed % 16 in UNDIVIDED else 2 + rng.below(3),
    )


def _draw_born_late(seed: int) -> Scenario:
    """Tasks spawn tasks that wait for another task too, which has often been cancelled by then."""
    rng = Rng(seed * 0x9FB21C651E98DF25 + 3037000493)
    nodes, cores = 2 + rng.below(4), 1 + rng.below(3)
    strategies = (*FIRST, *ALTERED)
    strategy = parse_strategy(strategies[rng.below(len(strategies))])
    roots = 3 + rng.below(4)
    growth = Growth(1, 2, 1 + rng.below(3), _lengths(rng), waits=rng.below(2) == 0, after=0)
    graph = Graph(
        kinds=("needed", "root", "spawned", "end"),
        kind=np.array([0, *[1] * roots, 3]),
        length_ns=np.array([_lengths(rng) * 5, *(_lengths(rng) * 5 for _ in range(roots)), _lengths(rng)]),
        input_start=np.array([0] * (roots + 2) + [roots + 1]),  # the last task reads what all others make
        inputs=np.arange(roots + 1),
        output_start=np.arange(roots + 3),
        object_bytes=np.array([30_000] * (roots + 2)),
        growth=(growth,),
    )
    plan = draw_plan(rng) if rng.below(2) else FaultPlan(horizon_ns=MS)
    cancelled = ((0, rng.below(200 * MS)),) if rng.below(3) else ()
    cluster = Cluster((NodeGroup(nodes, (ExecutorClass(cores),)),))
    return Scenario(seed, "born late", graph, cluster, strategy, plan, 1 + rng.below(4), cancelled=cancelled)


def _draw_rush(seed: int) -> Scenario:
    """Leases so short that heirs get what the dead left while they have much to do themselves: tasks that are sent
    ahead, or many tasks of which some read what is lost."""
    rng = Rng(seed * 0xD6E8FEB86659FD93 + 2862933555777941757)
    nodes = 3 + rng.below(2)
    cluster, shards = Cluster((NodeGroup(nodes, (ExecutorClass(1),)),)), 1 + rng.below(3)
    if rng.below(3) == 0:
        strategy = parse_strategy(FIRST[rng.below(len(FIRST))])
        graph = parse_workload("bot:tasks=700,length-ms=0.4").build(nodes, 1, seed)
        plan = FaultPlan(horizon_ns=60 * MS, crashes=1 + rng.below(2), restart_ns_max=20 * MS)
        return Scenario(seed, "rush", graph, cluster, strategy, plan, shards, lease_s=0.04)
    strategy = parse_strategy(("mlb", "mdl", "flds", "matrix")[rng.below(4)] + ":order=critical-path")
    plan = FaultPlan(horizon_ns=1_000 * MS, restart_ns_max=50 * MS)
    words = 2 + rng.below(4)
    return Scenario(seed, "rush", _twofold_graph(), cluster, strategy, plan, shards, words=words, lease_s=0.4)


def _twofold_graph() -> Graph:
    """Each of some tasks makes something large, which can get lost, and something small, which cannot. Whoever reads
    the small thing is still waiting for its turn when the large one has been made again."""
    builder = GraphBuilder()
    for _ in range(6):
        maker = builder.add_task("make", 10 * MS, (), (200_000, 100))
        for number in range(24):
            builder.add_task("read", 10 * MS, [maker.outputs[number % 2]])
    return builder.build()


def _lengths(rng: Rng) -> int:
    return (1 + rng.below(80)) * MS


def _labelled_graph(rng: Rng) -> Graph:
    builder = GraphBuilder()
    handles: list[TaskHandle] = []
    for number in range(40):
        context = (None, Label("gpu"), Label("cpu"), parse_context("gpu|cpu"))[rng.below(4)]
        inputs = [handles[rng.below(len(handles))]] if handles and rng.below(2) else []
        handles.append(builder.add_task("step", _lengths(rng), inputs, (20_000,), context, priority=number % 3))
    return builder.build()


def _wide_graph(rng: Rng) -> Graph:
    builder = GraphBuilder()
    handles: list[TaskHandle] = []
    for _ in range(40):
        inputs = list({handles[rng.below(len(handles))] for _ in range(2)}) if handles and rng.below(3) else []
        handles.append(builder.add_task("step", _lengths(rng), inputs, (50_000,), cores=1 + rng.below(4)))
    return builder.build()


def growing_graph(rng: Rng, waits: bool, roots: int = 4, longer: int = 1, held: bool = False) -> Graph:
    """Roots that spawn tasks that spawn tasks, and at the end a task that reads what the roots made."""
    kinds = ("root", "middle", "leaf", "end")
    growth = (
        Growth(0, 1, 1 + rng.below(3), _lengths(rng) * longer, waits, held=held),
        Growth(1, 2, 1 + rng.below(2), _lengths(rng), waits, held=held),
    )
    lengths = [_lengths(rng) for _ in range(roots + 1)]
    return Graph(
        kinds=kinds,
        kind=np.array([0] * roots + [3]),
        length_ns=np.array(lengths),
        input_start=np.array([0] * (roots + 1) + [roots]),
        inputs=np.arange(roots),
        output_start=np.arange(roots + 2),
        object_bytes=np.array([30_000] * (roots + 1)),
        growth=growth,
    )


def _hasty_graph(rng: Rng) -> Graph:
    """Many tasks so short that they are sent ahead, among them some that spawn such tasks and wait for them.

    Nothing is sent behind what is not known to be short: in every other world those that wait are many, and short too.
    """
    short, waiting, spawned = 0, 1, 2
    every, unit_ns = (12, MS) if rng.below(2) else (3, 10_000)
    kinds = [waiting if number % every == 1 else short for number in range(90)]
    lengths = [(1 + rng.below(20)) * unit_ns if kind == waiting else (30 + rng.below(400)) * 1000 for kind in kinds]
    count = len(kinds)
    return Graph(
        kinds=("short", "waiting", "spawned"),
        kind=np.array(kinds),
        length_ns=np.array(lengths),
        input_start=np.zeros(count + 1, np.int64),
        inputs=np.zeros(0, np.int64),
        output_start=np.zeros(count + 1, np.int64),
        object_bytes=np.zeros(0, np.int64),
        growth=(Growth(waiting, spawned, 1 + rng.below(3), (30 + rng.below(400)) * 1000, True),),
    )


def _deadly_graph(rng: Rng, alone: bool) -> tuple[Graph, int]:
    """One task takes its node down each time, and with it what it reads; it comes up last, or among others."""
    builder = GraphBuilder()
    count = 20
    killer = count - 1 if alone else rng.below(count)
    handles: list[TaskHandle] = []
    for number in range(count):
        inputs = [handles[-1 if alone else rng.below(number)]] if number > 3 and (alone or number < killer) else []
        handles.append(builder.add_task("killer" if number == killer else "step", _lengths(rng), inputs, (20_000,)))
    return builder.build(), killer


class _Aimed(Faults):
    """Faults that also let nodes die at the worst moment: just after they told, claimed or finished something, of which
    the store hears much later or right after their funeral; or while they take over from another, of which some shards
    never hear."""

    words = 0
    heirs = 0
    echoes = 0
    torn = 0
    deserted = 0
    returns = False  # whoever has left comes back, as a new incarnation

    def __init__(self, kernel: Kernel, plan: FaultPlan, seed: int) -> None:
        super().__init__(kernel, plan, seed)
        self.unheard: dict[NodeId, Any] = {}  # the last call of a dead node, which comes when its shard has struck it
        self.cleared: dict[tuple[NodeId, int], Any] = {}  # who has said that an intent was carried out, in which call
        self.doomed: dict[NodeId, int] = {}  # who is about to die -> the only shard that it may take over

    def send(self, kernel: Kernel, sender: NodeId, to: int, at_ns: int, event: Any) -> None:
        if to != STORE or sender < 0 or not self._meddles(kernel, sender, at_ns, event):
            super().send(kernel, sender, to, at_ns, event)

    def _meddles(self, kernel: Kernel, sender: NodeId, at_ns: int, event: Any) -> bool:
        """Whether this call was dealt with."""
        call: CallStore = event[1]
        shard, rows = call.shard, call.rows
        if self.unheard:
            for row in rows:
                if isinstance(row, TakeOver) and row.dead in self.unheard:
                    self._bury(kernel, row.dead, shard, at_ns, event)
                    return True
        if kernel.now_ns >= self.plan.horizon_ns:
            return False
        if self.deserted:
            for row in rows:
                if isinstance(row, Suspend):
                    self._desert(kernel, sender, row)
        if self.echoes and self._is_echoed(kernel, sender, at_ns, event):
            return True
        if self.words and self._is_weighty(kernel, rows):
            self.words -= 1
            self._speak(kernel, sender, 0, at_ns, event)
            return True
        if (self.heirs or self.torn or self.doomed) and any(isinstance(row, TakeOver) for row in rows):
            if self.heirs and self.rng.below(3) == 0:
                self.heirs -= 1
                self._speak(kernel, sender, self.rng.below(6) * MS, at_ns, event)
                return True
            if self.torn and sender not in self.doomed:
                self.torn -= 1
                self._doom(kernel, sender)
            return self.doomed.get(sender, shard) != shard
        return False

    def _is_weighty(self, kernel: Kernel, rows: Sequence[Row]) -> bool:
        """Above all what would make a task ready; there are many more claims, and still more runs that end."""
        if any(isinstance(row, Satisfy) and _is_last_edge(kernel, row) for row in rows):
            return self.rng.below(3) > 0
        if any(isinstance(row, Satisfy | Claim) for row in rows):
            return self.rng.below(12) == 0
        return any(isinstance(row, Finish) for row in rows) and self.rng.below(80) == 0

    def _is_echoed(self, kernel: Kernel, sender: NodeId, at_ns: int, event: Any) -> bool:
        """Of each intent there may be a newer one of the same kind: what was said of the old one comes again then."""
        for row in event[1].rows:
            if isinstance(row, Clear):
                self.cleared.update({(sender, key): event for key in row.keys})
            elif isinstance(row, Finish | Unready):
                key = outbox_key(row.task, SATISFY if isinstance(row, Finish) else REMAKE_FOR)
                if said := self.cleared.pop((sender, key), None):
                    self.echoes -= 1
                    self.note("echoed")
                    kernel.push(at_ns, STORE, event)
                    kernel.push(at_ns + 1, STORE, said)
                    kernel.push(at_ns + 2, FATE, lambda kernel: self.kill(kernel, sender))
                    return True
        return False

    def _speak(self, kernel: Kernel, sender: NodeId, lives_ns: int, at_ns: int, event: Any) -> None:
        self.note("last words")
        fate = self.rng.below(5)
        if fate < 2:
            self.unheard[sender] = event
        elif fate < 4:  # else nobody ever hears it
            kernel.push(at_ns + (900 + self.rng.below(1_200)) * MS, STORE, event)
        kernel.push(kernel.now_ns + lives_ns, FATE, lambda kernel: self.kill(kernel, sender))

    def _desert(self, kernel: Kernel, node: NodeId, row: Suspend) -> None:
        """Soon after a run has said that it waits; often before the store has heard for what."""
        at_ns = kernel.now_ns + self.rng.below(2 if self.rng.below(2) else 40) * MS + self.rng.below(MS)
        kernel.push(at_ns, FATE, lambda kernel: self._leave_alone(kernel, node, row.task, row.attempt))

    def _leave_alone(self, kernel: Kernel, node: NodeId, task: int, attempt: int) -> None:
        machine = kernel.seats.get(node)
        run = machine.core.running.get(task) if machine is not None else None
        if run is not None and run.suspended and run.ready.attempt == attempt and self.deserted:
            self.deserted -= 1
            self.note("worker died")
            kernel.push(kernel.now_ns, node, RunEnded(task, run.number, 0, (), "its worker died", True, (), True))

    def _bury(self, kernel: Kernel, dead: NodeId, shard: int, at_ns: int, event: Any) -> None:
        """The shard that was spoken to hears first who is dead, then what it said; the others hear of it later."""
        if self.unheard[dead][1].shard == shard:
            kernel.push(at_ns, STORE, event)
            kernel.push(at_ns + 1, STORE, self.unheard.pop(dead))
        else:
            kernel.push(at_ns + self.rng.below(200) * MS, STORE, event)

    def tell_to_leave(self, kernel: Kernel, index: int, deadline_ns: int) -> None:
        if kernel.leave(index, deadline_ns):
            self.note("told to leave")

    def left(self, kernel: Kernel, node: NodeId) -> None:
        self.note("left")
        if self.returns:
            back_ns = kernel.now_ns + self.rng.below(self.plan.restart_ns_max)
            kernel.push(back_ns, FATE, lambda kernel: kernel.revive(node & NODE_INDEX_MASK))

    def exile(self, kernel: Kernel) -> None:
        living = self._living(kernel)
        index = living[self.rng.below(len(living))] & NODE_INDEX_MASK
        self.cut_from_store.add(index)
        self.note("exiled")
        until_ns = kernel.now_ns + (1_200 + self.rng.below(1_500)) * MS
        kernel.push(until_ns, FATE, lambda kernel: self.cut_from_store.discard(index))

    def _doom(self, kernel: Kernel, heir: NodeId) -> None:
        """Long enough to hear from one shard and to act on it, not long enough to ask the others again."""
        self.doomed[heir] = self.rng.below(kernel.store.shard_count)
        kernel.push(kernel.now_ns + (1 + self.rng.below(20)) * MS, FATE, lambda kernel: self._fell(kernel, heir))

    def _fell(self, kernel: Kernel, heir: NodeId) -> None:
        del self.doomed[heir]
        if self.kill(kernel, heir):
            self.note("crashed as an heir")


def _is_last_edge(kernel: Kernel, row: Satisfy) -> bool:
    record = kernel.store.record(row.task)
    return record is not None and record.edges in ((row.parent,), {row.parent})


class _WithKillers(Checker):
    """A checker that also lets some tasks kill the node that runs them (the kernel has no idea what tasks do)."""

    killers: tuple[int, ...] = ()
    kills = 0

    def on_start(self, node: NodeId, effect: StartRun, begin_ns: int) -> None:
        super().on_start(node, effect, begin_ns)
        if effect.ready.spec.id in self.killers:
            half_ns = self.kernel.lengths[effect.ready.spec.id] // 2
            self.kernel.push(begin_ns + half_ns, FATE, lambda kernel: self._strike(kernel, node))

    def _strike(self, kernel: Kernel, node: NodeId) -> None:
        if kernel.kill(node):
            self.kills += 1
            kernel.faults.note("killed by a task")
            kernel.push(kernel.now_ns + 300 * MS, FATE, lambda kernel: kernel.revive(node & NODE_INDEX_MASK))


class _Within(_WithKillers):
    """Where the store forgets, what it has answered proves nothing: only the inside of nodes is looked at."""

    def on_store(self, caller: NodeId, rows: Sequence[Row], answers: Sequence[AnswerType], now_ns: int) -> None: ...

    def on_start(self, node: NodeId, effect: StartRun, begin_ns: int) -> None: ...

    def on_step(self, core: NodeCore, now_ns: int, batch: Sequence[EventType], out: Sequence[EffectType]) -> None:
        if self.deep is not None and not view.is_restarting(core):
            self.deep(core)


def make_scenario_kernel(scenario: Scenario, deep: Callable[[NodeCore], None] | None = None) -> Kernel:
    settings = Settings(
        seed=scenario.seed,
        shards=scenario.shards,
        lease_s=scenario.lease_s,
        audit_s=4.0,
        freed_batch=4096 if scenario.seed % 3 == 0 else 2,
        memory_bytes=scenario.memory_bytes,
        digest=True,
        direct=scenario.seed % 2 == 0,
        network=FAIR if scenario.seed % 19 == 1 else SIMPLE,
        retired_max=RETIRED_MAX if scenario.seed % 4 == 0 else 0,
        replicated=scenario.is_forgetful,
    )
    kernel = make_kernel(scenario.graph, scenario.cluster, scenario.strategy, settings)
    kernel.faults = faults = _Aimed(kernel, scenario.plan, scenario.seed)
    kernel.checker = checker = _Within(kernel, deep) if scenario.is_forgetful else _WithKillers(kernel, deep)
    checker.killers = scenario.killers
    faults.words, faults.heirs = scenario.words, scenario.heirs
    faults.echoes, faults.torn, faults.deserted = scenario.echoes, scenario.torn, scenario.deserted
    if scenario.servers is not None:
        store = kernel.store
        made = StoreSettings(
            store.shard_count, store.lease_ns, store.replicas_max, store.history, store.direct, store.retired_max
        )
        kernel.servers = Servers(kernel, scenario.servers, made, scenario.plan.horizon_ns, scenario.seed)
    for _ in range(scenario.exiles):
        kernel.push(faults.rng.below(1_000 * MS), FATE, faults.exile)

    for task, at_ns in scenario.cancelled:
        kernel.push(at_ns, FATE, partial(faults.cancel, task=task))
    for index, at_ns, deadline_ns in scenario.leaves:
        kernel.tracks_runs = True  # what was sent ahead is recalled
        # If all who can run some tasks leave, somebody has to come back.
        faults.returns = scenario.seed % 2 == 0 or bool(scenario.graph.context.any())
        told = partial(faults.tell_to_leave, index=index, deadline_ns=deadline_ns)
        kernel.push(at_ns, FATE, told)

    def never_rests(done: int) -> None:
        if kernel.event_count > EVENTS_MAX:
            raise Violation(
                f"seed {scenario.seed}: {kernel.client.waiting_for} tasks have not ended at event {kernel.event_count}"
            )

    kernel.progress = never_rests
    return kernel


def run_scenario(seed: int, deep: Callable[[NodeCore], None] | None = None) -> Outcome:
    """One run with faults, then without, until everything has ended; raises a Violation if anything is wrong."""
    scenario = draw_scenario(seed)
    kernel = make_scenario_kernel(scenario, deep)
    kernel.start()
    kernel.run(scenario.plan.horizon_ns + LIVENESS_NS)
    if kernel.client.waiting_for:
        raise Violation(
            f"seed {seed}: {kernel.client.waiting_for} tasks have not ended long after the last fault: {_stuck(kernel)}"
        )
    end_ns = kernel.now_ns
    # Let leases, acknowledgements and audits settle, then look at what is left.
    kernel.run_on(end_ns + 20_000 * MS)
    if scenario.is_forgetful:
        check_remembered(kernel)
    else:
        _check_all(scenario, kernel)
    _check_ends(scenario, kernel.client.ended)
    ended = [state for state, _ in kernel.client.ended.values()]
    return Outcome(
        seed=seed,
        kind=scenario.kind,
        strategy=scenario.strategy.name,
        tasks=scenario.graph.task_count,
        failed=ended.count(FAILED),
        cancelled=ended.count(CANCELLED),
        end_ns=end_ns,
        faults=kernel.faults.injected,
        digest=kernel.digest.hexdigest(),
    )


def _check_all(scenario: Scenario, kernel: Kernel) -> None:
    checker = kernel.checker
    checker.finish(killers_allowed=True)
    checker.objects.check_freed()
    checker.ends.check_grown()
    checker.ends.check_settled()
    checker.leavers.check_left(orderly=scenario.is_peaceful)
    if scenario.is_peaceful and not kernel.faults.returns:  # who has just joined is not known to all others yet
        checker.ends.check_begun_once()
    _check_killers(scenario, kernel.client.ended, checker.kills)


def _check_ends(scenario: Scenario, ended: dict[int, tuple[int, str]]) -> None:
    """No task can fail by itself, and none is cancelled unless somebody asked for it."""
    cancels = scenario.plan.cancels or scenario.cancelled
    for task, (state, error) in ended.items():
        follows = cancels and "which it needs" in error
        if state == FAILED and "nodes when they died" not in error and not follows:
            raise Violation(f"seed {scenario.seed}: task {task} failed although nothing in it can fail: {error}")
        if state == CANCELLED and not cancels and task < scenario.graph.task_count:
            raise Violation(f"seed {scenario.seed}: task {task} was cancelled although nobody asked for it")


def _check_killers(scenario: Scenario, ended: dict[int, tuple[int, str]], kills: int) -> None:
    """A killer takes down as many nodes as it may, and no more; where tasks run twice, a copy may have died besides."""
    for killer in scenario.killers:
        if killer not in ended:
            raise Violation(f"seed {scenario.seed}: task {killer} kills its nodes and was not found out")
        copied = scenario.strategy.replicate.copies_max > 0
        if kills < KILLS or (kills > KILLS and not copied):
            raise Violation(f"seed {scenario.seed}: task {killer} has killed {kills} nodes and not {KILLS}")


def _stuck(kernel: Kernel) -> str:
    """The first few tasks that hang, and where."""
    found = []
    for shard in kernel.store.shards:
        for task, record in shard.records.items():
            if record is not None and record.state not in FINAL:
                found.append(
                    f"task {task} state {record.state} owner {record.owner} move {record.move} edges {record.edges}"
                )
    return "; ".join(found[:4]) or "all records are final, but the client has not heard of it"
