"""One workload on a live cluster, and what the simulator says of the same graph, strategy and nodes."""

import time

from msgspec import Struct
from msgspec.structs import asdict

import daws
from bench.scale.ground import Ground
from daws.bounds import NO_COSTS, AlikeNodes, bound
from daws.client.connect import ConnectedCluster
from daws.model.cluster import ExecutorClass
from daws.model.graph import Graph
from daws.runs.timeline import Timeline
from daws.sim.cluster import cluster_of
from daws.sim.simulate import Settings, simulate
from daws.strategy import parse_strategy
from daws.workflows.emulation import Emulation
from daws.workloads import parse_workload

CONNECT_S = 60.0


class Case(Struct, frozen=True):
    """A workload, at its scale. `aim` is what its efficiency should be, `published` what MATRIX (2015) gives for it:
    the efficiency of the bag and of all-pairs, the share of its own bound for the others. `warm_up` is a workload that
    is carried out before, unmeasured, so that nodes which will have something to say to each other are connected. With
    `off_max`, the live makespan is to be that near to the simulated one."""

    name: str
    workload: str
    strategy: str = "daws"
    time_scale: float = 1.0
    data_scale: float = 1.0
    aim: float = 0.0
    published: str = ""
    warm_up: str = ""
    off_max: float = 0.0

    def graph(self, nodes: int, executors: int) -> Graph:
        return self._graph(self.workload, nodes, executors)

    def warming_graph(self, nodes: int, executors: int) -> Graph | None:
        return self._graph(self.warm_up, nodes, executors) if self.warm_up else None

    def _graph(self, workload: str, nodes: int, executors: int) -> Graph:
        graph = parse_workload(workload).build(nodes, executors, 0)
        return graph.scaled(self.time_scale, self.data_scale)


class Figures(Struct, frozen=True):
    """What came of it. Times in seconds; `node_us`, `store_us` and `client_us` are microseconds of a processor for each
    task, `busy` is how many processors were busy with anything."""

    name: str
    tasks: int
    makespan_s: float
    efficiency: float
    bound_share: float
    simulated_s: float
    submitted_s: float
    busy: float
    node_us: float
    store_us: float
    client_us: float
    frames: float
    messages: float
    calls: float
    rows: float
    simulated_rows: float
    expiries: int
    stolen: int
    moved_mb: float
    aim: float
    published: str
    off_max: float = 0.0

    @property
    def off(self) -> float:
        """How much longer the live run took than the simulator says."""
        return self.makespan_s / self.simulated_s - 1

    @property
    def is_good(self) -> bool:
        is_near = not self.off_max or abs(self.off) <= self.off_max
        return self.efficiency >= self.aim and is_near and not self.expiries

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "off": self.off}


class Live(Emulation):
    """On nodes that do not tell when their runs began and ended."""

    def __init__(self, cluster: ConnectedCluster, graph: Graph) -> None:
        cluster._timeline = Timeline()
        super().__init__(cluster, graph)

    def _untold(self) -> bool:
        return False


def run(ground: Ground, case: Case) -> Figures:
    graph = case.graph(ground.nodes, ground.executors)
    warm_up(ground, case)
    with daws.connect(ground.cluster, timeout=CONNECT_S, modules=False) as cluster:
        cluster.use_strategy(case.strategy)
        live = Live(cluster, graph)
        live.prepare()
        seen = cluster.counters()
        before = ground.used()
        began_s = time.monotonic()
        live.start()
        submitted_s = time.monotonic() - began_s
        live.wait(lambda: None)
        took_s = time.monotonic() - began_s
        after = ground.used()
        counters = cluster.counters()
    if live.failed is not None:
        raise live.failed[1]
    tasks, counts = graph.task_count, after.counts - before.counts
    cluster_then = cluster_of(ground.nodes, ground.executors)
    simulated, _ = simulate(graph, cluster_then, parse_strategy(case.strategy), Settings())
    us = 1e6 / tasks
    return Figures(
        name=case.name,
        tasks=tasks,
        makespan_s=took_s,
        efficiency=graph.total_length_ns / 1e9 / (ground.nodes * ground.executors) / took_s,
        bound_share=bound_s(graph, ground) / took_s,
        simulated_s=simulated.makespan_s,
        submitted_s=submitted_s,
        busy=(after.machine_s - before.machine_s) / (after.at_s - before.at_s),
        node_us=(after.nodes_s - before.nodes_s) * us,
        store_us=(after.store_s - before.store_s) * us,
        client_us=(after.client_s - before.client_s) * us,
        frames=counts.frames / tasks,
        messages=counts.messages / tasks,
        calls=counts.calls / tasks,
        rows=counts.rows / tasks,
        simulated_rows=simulated.store_records / tasks,
        expiries=after.expiries - before.expiries,
        stolen=sum(one.stolen for one in counters) - sum(one.stolen for one in seen),
        moved_mb=(sum(one.moved_bytes for one in counters) - sum(one.moved_bytes for one in seen)) / 1e6,
        aim=case.aim,
        published=case.published,
        off_max=case.off_max,
    )


def warm_up(ground: Ground, case: Case) -> None:
    graph = case.warming_graph(ground.nodes, ground.executors)
    if graph is None:
        return
    with daws.connect(ground.cluster, timeout=CONNECT_S, modules=False) as cluster:
        cluster.use_strategy(case.strategy)
        live = Live(cluster, graph)
        live.prepare()
        live.start()
        live.wait(lambda: None)
    if live.failed is not None:
        raise live.failed[1]


def bound_s(graph: Graph, ground: Ground) -> float:
    """No schedule is shorter, whatever the engine costs."""
    return bound(graph, [AlikeNodes(ground.nodes, (ExecutorClass(ground.executors),))], NO_COSTS).seconds
