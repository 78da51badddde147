"""Scenarios: a small cluster, a small graph, a strategy and a plan of faults, all drawn from one number.

`run_scenario(seed)` either returns what happened or raises a Violation that names the seed; the same number gives the same run.
"""

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from daws.core.node import NodeCore
from daws.model.cluster import ExecutorClass
from daws.model.context import Label, parse_context
from daws.model.graph import Graph, GraphBuilder, Growth
from daws.model.states import CANCELLED, FAILED
from daws.sim.checkers import Checker, Violation
from daws.sim.cluster import Cluster, NodeGroup
from daws.sim.faults import FaultPlan, Faults, draw_plan
from daws.sim.kernel import Kernel
from daws.sim.profiles import Costs
from daws.sim.simulate import Settings, make_kernel
from daws.strategy import PRESETS, parse_strategy
from daws.strategy.decisions import Strategy
from daws.strategy.rng import Rng
from daws.workloads import parse_workload

MS = 1_000_000
LEASE_S = 1.0
LIVENESS_NS = 120_000 * MS
"""After the world has healed, everything must have ended within this time."""


class Scenario(Struct, frozen=True):
    """Everything that a seed decides."""

    seed: int
    kind: str  # of the graph
    graph: Graph
    cluster: Cluster
    strategy: Strategy
    plan: FaultPlan
    shards: int


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


def _lengths(rng: Rng) -> int:
    return (1 + rng.below(80)) * MS


def _labelled_graph(rng: Rng) -> Graph:
    builder = GraphBuilder()
    handles = []
    for number in range(40):
        context = (None, Label("gpu"), Label("cpu"), parse_context("gpu|cpu"))[rng.below(4)]
        inputs = [handles[rng.below(len(handles))]] if handles and rng.below(2) else []
        handles.append(builder.add_task("step", _lengths(rng), inputs, (20_000,), context, priority=number % 3))
    return builder.build()


def _wide_graph(rng: Rng) -> Graph:
    builder = GraphBuilder()
    handles = []
    for _ in range(40):
        inputs = list({handles[rng.below(len(handles))] for _ in range(2)}) if handles and rng.below(3) else []
        handles.append(builder.add_task("step", _lengths(rng), inputs, (50_000,), cores=1 + rng.below(4)))
    return builder.build()


def growing_graph(rng: Rng, waits: bool, roots: int = 4) -> Graph:
    """Roots that spawn tasks that spawn tasks, and at the end a task that reads what the roots made."""
    kinds = ("root", "middle", "leaf", "end")
    growth = (
        Growth(0, 1, 1 + rng.below(3), _lengths(rng), waits),
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


def make_scenario_kernel(scenario: Scenario, deep: Callable[[NodeCore], None] | None = None) -> Kernel:
    costs = Costs()
    settings = Settings(costs=costs, seed=scenario.seed, shards=scenario.shards, lease_s=LEASE_S, audit_s=4.0, digest=True, direct=scenario.seed % 2 == 0)
    kernel = make_kernel(scenario.graph, scenario.cluster, scenario.strategy, settings)
    kernel.checker = Checker(kernel, deep)
    kernel.faults = Faults(kernel, scenario.plan, scenario.seed)
    return kernel


def run_scenario(seed: int, deep: Callable[[NodeCore], None] | None = None) -> Outcome:
    """One run with faults, then without, until everything has ended; raises a Violation at the first thing that is wrong."""
    scenario = draw_scenario(seed)
    kernel = make_scenario_kernel(scenario, deep)
    kernel.start()
    kernel.run(scenario.plan.horizon_ns + LIVENESS_NS)
    if kernel.client.waiting_for:
        raise Violation(f"seed {seed}: {kernel.client.waiting_for} tasks have not ended long after the last fault: {_stuck(kernel)}")
    end_ns = kernel.now_ns
    checker = kernel.checker
    # Let leases, acknowledgements and audits settle, then look at what is left.
    kernel.run_on(end_ns + 20_000 * MS)
    checker.finish(killers_allowed=True)
    checker.check_freed()
    ended = [state for state, _ in kernel.client.ended.values()]
    for task, (state, error) in kernel.client.ended.items():
        if state == FAILED and "nodes when they died" not in error:
            raise Violation(f"seed {seed}: task {task} failed although nothing in it can fail: {error}")
        if state == CANCELLED and not scenario.plan.cancels and task < scenario.graph.task_count:
            raise Violation(f"seed {seed}: task {task} was cancelled although nobody asked for it")
    return Outcome(
        seed, scenario.kind, scenario.strategy.name, scenario.graph.task_count, ended.count(FAILED), ended.count(CANCELLED), end_ns,
        kernel.faults.injected, kernel.digest.hexdigest(),
    )  # fmt: skip


def _stuck(kernel: Kernel) -> str:
    """The first few tasks that hang, and where."""
    found = []
    for shard in kernel.store.shards:
        for task, record in shard.records.items():
            if record is not None and record.state not in (6, 7, 8):
                found.append(f"task {task} state {record.state} owner {record.owner} move {record.move} edges {record.edges}")
    return "; ".join(found[:4]) or "all records are final, but the client has not heard of it"
