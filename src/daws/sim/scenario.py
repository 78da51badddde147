"""Scenarios: a small cluster, a small graph, a strategy and a plan of faults, all drawn from one number.

`run_scenario(seed)` either returns what happened or raises a Violation that names the seed; the same number gives the
same run.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct, structs

from daws.core.effects import StartRun
from daws.core.node import NodeCore
from daws.model.cluster import ExecutorClass
from daws.model.context import Label, parse_context
from daws.model.graph import Graph, GraphBuilder, Growth, TaskHandle
from daws.model.states import CANCELLED, FAILED
from daws.model.task import NODE_INDEX_MASK, NodeId
from daws.sim.checkers import Checker, Violation
from daws.sim.cluster import Cluster, NodeGroup
from daws.sim.faults import FaultPlan, Faults, draw_plan
from daws.sim.kernel import FATE, STORE, Kernel
from daws.sim.simulate import Settings, make_kernel
from daws.strategy import PRESETS, parse_strategy
from daws.strategy.decisions import Strategy
from daws.strategy.rng import Rng
from daws.wire.store import Claim, Satisfy, TakeOver
from daws.workloads import parse_workload

MS = 1_000_000
LEASE_S = 1.0
LIVENESS_NS = 120_000 * MS
"""After the world has healed, everything must have ended within this time."""
EVENTS_MAX = 300_000
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
    return _draw_special(seed) if seed % 7 in (2, 3) else _draw_plain(seed)


def _draw_plain(seed: int) -> Scenario:
    """A preset on one of the workloads, or on a graph with contexts, wide tasks or tasks that spawn tasks."""
    rng = Rng(seed * 0x5851F42D4C957F2D + 1442695040888963407)
    nodes = 2 + rng.below(6)
    cores = 1 + rng.below(3)
    names = list(PRESETS)
    strategy = parse_strategy(names[rng.below(len(names))])
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


ALTERED = (
    "flds:balance=none",
    "mlb:cache=none",
    "mlb:assign=one,share=0.9",
    "mdl:order=critical-path",
    "rlds:t=0.01,balance=random-steal,count=3",
    "daws:place=random,tt=0.01",
    "daws:assign=data,order=submission",
    "adage:copies=3,period-ms=1,period-max-ms=20",
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


def _draw_special(seed: int) -> Scenario:
    """What presets and plain clusters do not meet: several shards, strategies that were altered, little memory, unlike
    nodes, nodes that are cut off for long, many cancels, tasks that are sent ahead behind others that wait, tasks that
    kill their nodes."""
    rng = Rng(seed * 0x2545F4914F6CDD1D + 7046029254386353131)
    nodes = 2 + rng.below(5)
    cores = 1 + rng.below(3)
    strategy = parse_strategy(ALTERED[rng.below(len(ALTERED))])
    plan, shards = draw_plan(rng), 1 + rng.below(4)
    executors = (ExecutorClass(cores),)
    cluster = Cluster((NodeGroup(nodes, executors),))
    kind = rng.below(14)
    if kind < 10:
        workload = parse_workload(SPECIAL[rng.below(len(SPECIAL))])
        graph = workload.build(nodes, cores, seed)
        if kind < 2:
            return Scenario(seed, workload.name, graph, cluster, strategy, plan, shards)
        if kind == 2:
            memory_bytes = (1 + rng.below(8)) * 1_000_000
            return Scenario(seed, "little memory", graph, cluster, strategy, plan, shards, memory_bytes)
        if kind == 3:
            unlike = Cluster((NodeGroup(nodes, executors, 0.5), NodeGroup(2, (ExecutorClass(4),), 2.0, 1)))
            return Scenario(seed, "unlike nodes", graph, unlike, strategy, plan, shards)
        if kind < 8:
            lonely = Cluster((NodeGroup(nodes + 1, (ExecutorClass(1),)),))
            if kind == 4:
                plan = structs.replace(plan, partitions=2 + rng.below(4), horizon_ns=5_000 * MS)
                return Scenario(seed, "cut off", graph, lonely, strategy, plan, shards)
            heirs = rng.below(3)
            plan = FaultPlan(
                horizon_ns=5_000 * MS, delay=0.3 + 0.5 * rng.unit(), delay_ns_max=1_500 * MS, restart_ns_max=500 * MS
            )
            return Scenario(
                seed, "last words", graph, lonely, strategy, plan, shards, words=2 + rng.below(5), heirs=heirs
            )
        plan = structs.replace(
            plan,
            cancels=2 + rng.below(6),
            crashes_at_store=2 + rng.below(4),
            loss=0.1 * rng.unit(),
            horizon_ns=800 * MS,
        )
        return Scenario(seed, "cancelled", graph, cluster, strategy, plan, shards)
    if kind == 10:
        return Scenario(seed, "sent ahead", _hasty_graph(rng), cluster, strategy, plan, shards)
    if kind < 13:
        # Long children: those of an attempt that was lost would be seen to end long after it.
        graph = growing_graph(rng, waits=rng.below(2) == 0, longer=100)
        plan = structs.replace(plan, crashes=1 + rng.below(3), horizon_ns=2_000 * MS)
        return Scenario(seed, "long children", graph, cluster, strategy, plan, shards)
    # Whoever runs beside a killer is lost as often as the killer itself: one executor each, and no other crashes.
    plan = FaultPlan(horizon_ns=MS, duplication=plan.duplication)
    small = Cluster((NodeGroup(nodes + 1, (ExecutorClass(1),)),))
    graph, killer = _deadly_graph(rng, alone=rng.below(2) == 0)
    return Scenario(seed, "deadly", graph, small, strategy, plan, shards, killers=(killer,))


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


def growing_graph(rng: Rng, waits: bool, roots: int = 4, longer: int = 1) -> Graph:
    """Roots that spawn tasks that spawn tasks, and at the end a task that reads what the roots made."""
    kinds = ("root", "middle", "leaf", "end")
    growth = (
        Growth(0, 1, 1 + rng.below(3), _lengths(rng) * longer, waits),
        Growth(1, 2, 1 + rng.below(2), _lengths(rng), waits),
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
    """Many tasks so short that they are sent ahead, among them some that spawn such tasks and wait for them."""
    short, waiting, spawned = 0, 1, 2
    kinds = [waiting if number % 12 == 7 else short for number in range(90)]
    lengths = [(1 + rng.below(20)) * MS if kind == waiting else (30 + rng.below(400)) * 1000 for kind in kinds]
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


class _LastWords(Faults):
    """Faults that also let nodes die just after they told or claimed something, or began to take over from another: the
    store hears of it much later."""

    words = 0
    heirs = 0

    def send(self, kernel: Kernel, sender: NodeId, to: int, at_ns: int, event: Any) -> None:
        if (self.words or self.heirs) and to == STORE and sender >= 0 and kernel.now_ns < self.plan.horizon_ns:
            rows = event[1].rows
            if self.words and any(isinstance(row, Satisfy | Claim) for row in rows) and self.rng.below(8) == 0:
                self.words -= 1
                self._speak(kernel, sender, 0, at_ns, event)
                return
            if self.heirs and any(isinstance(row, TakeOver) for row in rows) and self.rng.below(3) == 0:
                self.heirs -= 1
                self._speak(kernel, sender, self.rng.below(6) * MS, at_ns, event)
                return
        super().send(kernel, sender, to, at_ns, event)

    def _speak(self, kernel: Kernel, sender: NodeId, lives_ns: int, at_ns: int, event: Any) -> None:
        self.note("last words")
        kernel.push(at_ns + (900 + self.rng.below(1_200)) * MS, STORE, event)
        kernel.push(kernel.now_ns + lives_ns, FATE, lambda kernel: self._kill(kernel, sender))


class _Deadly(Checker):
    """A checker that also lets some tasks kill the node that runs them (the kernel has no idea what tasks do)."""

    killers: tuple[int, ...] = ()

    def on_start(self, node: NodeId, effect: StartRun, begin_ns: int) -> None:
        super().on_start(node, effect, begin_ns)
        if effect.ready.spec.id in self.killers:
            half_ns = self.kernel.lengths[effect.ready.spec.id] // 2
            self.kernel.push(begin_ns + half_ns, FATE, lambda kernel: self._strike(kernel, node))

    def _strike(self, kernel: Kernel, node: NodeId) -> None:
        if kernel.kill(node):
            kernel.faults.note("killed by a task")
            kernel.push(kernel.now_ns + 300 * MS, FATE, lambda kernel: kernel.revive(node & NODE_INDEX_MASK))


def make_scenario_kernel(scenario: Scenario, deep: Callable[[NodeCore], None] | None = None) -> Kernel:
    settings = Settings(
        seed=scenario.seed,
        shards=scenario.shards,
        lease_s=LEASE_S,
        audit_s=4.0,
        freed_batch=4096 if scenario.seed % 3 == 0 else 2,
        memory_bytes=scenario.memory_bytes,
        digest=True,
        direct=scenario.seed % 2 == 0,
    )
    kernel = make_kernel(scenario.graph, scenario.cluster, scenario.strategy, settings)
    kernel.checker = checker = _Deadly(kernel, deep)
    checker.killers = scenario.killers
    kernel.faults = faults = _LastWords(kernel, scenario.plan, scenario.seed)
    faults.words, faults.heirs = scenario.words, scenario.heirs

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
    checker = kernel.checker
    # Let leases, acknowledgements and audits settle, then look at what is left.
    kernel.run_on(end_ns + 20_000 * MS)
    checker.finish(killers_allowed=True)
    checker.check_freed()
    checker.check_grown()
    checker.check_settled()
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


def _check_ends(scenario: Scenario, ended: dict[int, tuple[int, str]]) -> None:
    """No task can fail by itself, and none is cancelled unless somebody asked for it."""
    for task, (state, error) in ended.items():
        if state == FAILED and "nodes when they died" not in error:
            raise Violation(f"seed {scenario.seed}: task {task} failed although nothing in it can fail: {error}")
        if state == CANCELLED and not scenario.plan.cancels and task < scenario.graph.task_count:
            raise Violation(f"seed {scenario.seed}: task {task} was cancelled although nobody asked for it")
    for killer in scenario.killers:
        if killer not in ended:
            raise Violation(f"seed {scenario.seed}: task {killer} kills its nodes and was not found out")


def _stuck(kernel: Kernel) -> str:
    """The first few tasks that hang, and where."""
    found = []
    for shard in kernel.store.shards:
        for task, record in shard.records.items():
            if record is not None and record.state not in (6, 7, 8):
                found.append(
                    f"task {task} state {record.state} owner {record.owner} move {record.move} edges {record.edges}"
                )
    return "; ".join(found[:4]) or "all records are final, but the client has not heard of it"
