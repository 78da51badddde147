"""Run a graph on a simulated cluster and say how it went."""

import gc
import math
import resource
import time
from collections.abc import Callable

import numpy as np
from msgspec import Struct, structs

from daws.core import view
from daws.core.journal import Journal
from daws.core.node import SECOND_NS, NodeConfig
from daws.model.cluster import Members
from daws.model.columns import Int64s
from daws.model.context import matches
from daws.model.errors import ContextError, InternalError, UsageError
from daws.model.graph import Graph
from daws.model.html import table
from daws.model.states import CANCELLED, FAILED
from daws.model.task import CLIENT, Needs, NodeId
from daws.sim.checkers import Checker
from daws.sim.cluster import SimulatedCluster
from daws.sim.fair import FairNetwork
from daws.sim.graph_user import GraphUser
from daws.sim.holding import peak_of
from daws.sim.kernel import Kernel
from daws.sim.profiles import Costs
from daws.sim.watch import StallWatch
from daws.store.memory import MemoryStore
from daws.strategy.decisions import Site, Strategy
from daws.strategy.fitting import check_fitting
from daws.strategy.rng import hash_u64

CORES_PER_SHARD = 1024
SHARDS_MAX = 65_536
LEASE_NS = 10 * SECOND_NS
AUDIT_NS, AUDIT_NS_MAX = 600 * SECOND_NS, 1 << 62
LEASE_S_MIN = 0.001
LEASES_PER_RUN = 100
"""Leases that are never lost need not be short: where tasks run for hours or days, renewals would be all there is."""
LEASE_NS_PER_NODE = SECOND_NS // 1000
"""Renewals, four per lease, all go to one shard: 40,000 of them per second would keep it busy all the time."""

SIMPLE, FAIR = "simple", "fair"
NETWORKS = (SIMPLE, FAIR)
"""Links that carry one transfer after the other, or links that all transfers share."""
SHUFFLED, IN_ORDER, SCATTERED = "shuffled", "in-order", "scattered"
FILES = (SHUFFLED, IN_ORDER, SCATTERED)
"""Files from outside are dealt to nodes in an order that the seed decides, or in their own; or each goes anywhere."""


class Settings(Struct, frozen=True):
    """The settings of a simulation beside the workload, the cluster and the strategy."""

    costs: Costs = Costs()
    seed: int = 0
    shards: int = 0  # 0: one for every 1,024 cores
    lease_s: float = 0.0  # 0: ten seconds, but at least a millisecond for each node and a hundredth of the run
    freed_batch: int = 4096  # releases that a node collects before it tells the store
    audit_s: float = 0.0  # what waits so long for its readers is looked up; 0: ten minutes, but less often in long runs
    memory_bytes: int = 1 << 62
    check: bool = False
    journal: bool = False  # `kernel.journals` has one for each node
    digest: bool = False
    history: bool = False
    direct: bool = True  # a commit satisfies children in its own shard in the same update
    network: str = SIMPLE  # how transfers that meet at a node's link share it
    fetches_ahead: bool = True  # else executors fetch what their tasks read themselves, as those of MATRIX
    files: str = SHUFFLED  # which nodes have the files from outside
    retired_max: int = 0  # as live stores have it: tasks retire as soon as they can, and are forgotten after so many
    replicated: bool = False  # nodes take into account that the store may lose what it has acknowledged

    def __post_init__(self) -> None:
        if self.shards not in range(SHARDS_MAX + 1):
            raise UsageError(f"shards={self.shards}: a store has 1 to {SHARDS_MAX} shards; 0 leaves the number to daws")
        if self.lease_s != 0 and not LEASE_S_MIN <= self.lease_s < math.inf:
            raise UsageError(
                f"lease_s={self.lease_s:g}: a lease takes at least {LEASE_S_MIN:g} seconds; 0 leaves it to daws"
            )
        if not 0 <= self.audit_s < math.inf:
            raise UsageError(f"audit_s={self.audit_s:g}: a number of seconds above 0 is needed; 0 leaves it to daws")
        if self.network not in NETWORKS:
            raise UsageError(f"network={self.network}: there are {', '.join(NETWORKS)}")
        if self.files not in FILES:
            raise UsageError(f"files={self.files}: there are {', '.join(FILES)}")
        if self.freed_batch < 1:
            raise UsageError(f"freed_batch={self.freed_batch}: at least one release goes to the store at a time")
        if self.memory_bytes < 0:
            raise UsageError(f"memory_bytes={self.memory_bytes}: memory cannot be negative")


DEFAULTS = Settings()


SHOWN = ("tasks", "cores_total", "makespan_s", "throughput", "efficiency", "utilization", "bytes_moved", "steals")
"""The fields of a result that notebooks show."""


class Result(Struct, frozen=True):
    """The result of a simulation. Times are in seconds of simulated time unless they say `wall`.

    `efficiency` is the time that all cores would need if nothing ever waited, divided by `makespan_s`. `utilization` is
    the share of the cores' time in which they ran anything, replicas and lost runs included. A task counts with all the
    cores that it needs.

    Where tasks need different numbers of cores, `utilization` counts each run with their mean, weighted by length. That
    is exact if nodes are equally fast and each task ran once. Tasks that a graph grows while it runs count in
    `utilization` alone, not in `tasks`, `throughput` and `efficiency`.
    """

    tasks: int
    edges: int
    nodes: int
    cores: int  # of each node; 0 where nodes differ
    cores_total: int
    strategy: str
    seed: int
    makespan_s: float
    throughput: float
    efficiency: float
    utilization: float
    bytes_moved: int
    peak_bytes: int  # held at once by all nodes: objects from when they were made until their readers have ended
    peak_node_bytes: int  # ... by one node
    peak_objects: int
    local_hits: int
    cache_hits: int
    pushes: int
    steals: int
    failed_steals: int
    gives: int
    replicas: int
    messages: int
    store_calls: int
    store_records: int
    events: int
    failed: int
    cancelled: int
    wall_s: float
    peak_rss_mb: float
    digest: str = ""

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [(name.replace("_", " "), getattr(self, name)) for name in SHOWN]
        return table(f"{self.strategy} on {self.nodes:,} nodes", rows)


def check_runnable(graph: Graph, members: Members) -> None:
    """Refuse a graph with a task that no executor of the cluster may run, naming what is missing."""
    pairs = set(zip(graph.context.tolist(), graph.cores.tolist(), strict=True)) if graph.task_count else set()
    for context, cores in sorted(pairs):
        wanted = graph.contexts[context]
        needs = None if wanted is None and cores == 1 else Needs(cores, wanted)
        if able := members.capable(needs):
            if graph.memory_bytes is not None and members.memory_limits:
                _check_memory(graph, members, able, np.flatnonzero((graph.context == context) & (graph.cores == cores)))
            continue
        task = int(np.nonzero((graph.context == context) & (graph.cores == cores))[0][0])
        offered = sorted({str(group.context or "any") for info in members.infos for group in info.executors})
        most = max(group.count for info in members.infos for group in info.executors)
        if cores > 1 and members.capable(Needs(1, wanted)):
            widest = max(
                group.count for info in members.infos for group in info.executors if matches(wanted, group.context)
            )
            label = "" if wanted is None else f" with context {str(wanted)!r}"
            raise ContextError(
                f"task {task} ({graph.kinds[graph.kind[task]]}) needs {cores} cores of one node{label}, "
                f"but no node has more than {widest}"
            )
        raise ContextError(
            f"task {task} ({graph.kinds[graph.kind[task]]}) needs {cores} core(s) with context "
            f"{str(wanted or 'any')!r}, which no executor offers: there are {', '.join(offered)}, "
            f"with up to {most} cores"
        )


def _check_memory(graph: Graph, members: Members, able: tuple[NodeId, ...], tasks: Int64s) -> None:
    """Refuse the task of these that needs most, if it needs more than any of the nodes that could run it has."""
    assert graph.memory_bytes is not None
    task = int(tasks[graph.memory_bytes[tasks].argmax()])
    wanted = int(graph.memory_bytes[task])
    infos = [info for info in map(members.info, able) if info is not None]
    if all(wanted > info.memory_bytes > 0 for info in infos):
        most = max(info.memory_bytes for info in infos)
        raise ContextError(
            f"{graph.name_of(task)} needs {wanted / 1e9:g} GB of memory, "
            f"but no node that could run it has more than {most / 1e9:g} GB"
        )


def lease_ns_of(settings: Settings, node_count: int, least_run_ns: int = 0) -> int:
    """The lease of the settings, or else one that a cluster of this size can renew, and not too often in a run of this
    length."""
    if settings.lease_s:
        return int(settings.lease_s * SECOND_NS)
    return max(LEASE_NS, LEASE_NS_PER_NODE * node_count, least_run_ns // LEASES_PER_RUN)


def audit_ns_of(settings: Settings, graph: Graph, cluster: SimulatedCluster) -> int:
    """The time after which a node asks the store for the readers of an object.

    Messages about readers are seldom lost. Most objects wait for hours in a run that takes days, and such questions
    would be most of the calls to the store. Therefore no node asks before one core could have run everything.
    """
    slowest = min(group.speed for group in cluster.groups)
    return int(settings.audit_s * SECOND_NS) or max(AUDIT_NS, min(int(graph.total_core_ns / slowest), AUDIT_NS_MAX))


def least_run_ns(graph: Graph, cluster: SimulatedCluster) -> int:
    """The least length of a run: that of its longest task, or of all tasks spread evenly over all cores."""
    longest_ns = int(graph.length_ns.max()) if graph.task_count else 0
    fastest = max(group.speed for group in cluster.groups)
    return int(max(graph.total_core_ns / cluster.capacity, longest_ns / fastest))


def check_renewals(costs: Costs, lease_ns: int) -> None:
    """Refuse costs with which the answer to every renewal comes too late: past half of its lease a node starts nothing.

    The time of a renewal in the queues of its node and its shard cannot be known before; see `daws.sim.watch`.
    """
    parts = {
        "latency-us": 2 * costs.latency_ns,
        "step-us": costs.step_ns,
        "message-us": costs.message_ns,
        "store-call-us": costs.store_call_ns,
        "store-row-us": costs.store_row_ns,
    }
    trip_ns = sum(parts.values())
    if 2 * trip_ns >= lease_ns:
        enough_s = (20 * trip_ns // SECOND_NS + 1) / 10
        raise UsageError(
            f"renewing a lease takes {trip_ns / SECOND_NS:g} s there and back, but nodes start nothing past half of "
            f"their lease of {lease_ns / SECOND_NS:g} s: set lease-s to {enough_s:g} or more, or lower "
            f"{max(parts, key=parts.__getitem__)}"
        )


class Opening(Struct, frozen=True):
    """The nodes that are there when the session begins: the first `present` nodes of the cluster.

    The others join later. The first `planned` nodes may be homes of tasks already. Files from outside lie with the
    client.
    """

    present: int
    planned: int
    stay_s: float  # no node is there for less


def places_of(count: int, nodes: int, settings: Settings) -> Int64s:
    """The node of each file from outside."""
    number = np.arange(count, dtype=np.int64)
    if settings.files == IN_ORDER:
        return number % nodes
    drawn = hash_u64(number, settings.seed + 1)
    if settings.files == SCATTERED:
        return (drawn % np.uint64(nodes)).astype(np.int64)
    places = np.empty(count, np.int64)
    places[np.argsort(drawn, kind="stable")] = number % nodes
    return places


def make_kernel(
    graph: Graph, cluster: SimulatedCluster, strategy: Strategy, settings: Settings, opening: Opening | None = None
) -> Kernel:
    """A cluster that is about to start."""
    graph.check()
    check_fitting(strategy)
    everybody = cluster.infos()
    infos = everybody if opening is None else everybody[: opening.present]
    shards = settings.shards or max(1, cluster.core_count // CORES_PER_SHARD)
    least_ns = least_run_ns(graph, cluster) if opening is None else int(opening.stay_s * SECOND_NS)
    lease_ns = lease_ns_of(settings, cluster.node_count, least_ns)
    check_renewals(settings.costs, lease_ns)
    copies = strategy.replicate.copies_max
    store = MemoryStore(shards, lease_ns, copies, settings.history, settings.direct, settings.retired_max)
    members = store.join(infos)
    if opening is not None:
        members = Members(0, everybody[: opening.planned])
    check_runnable(graph, members)
    config = NodeConfig(
        shard_count=shards,
        lease_ns=lease_ns,
        net_bytes_per_s=settings.costs.net_bytes_per_s,
        memory_bytes=settings.memory_bytes,
        audit_ns=audit_ns_of(settings, graph, cluster),
        freed_batch=settings.freed_batch,
        fetches_ahead=settings.fetches_ahead,
        replicated=settings.replicated,
    )
    if opening is None:
        places = places_of(graph.external_count, len(infos), settings)
    else:
        places = np.full(graph.external_count, CLIENT, np.int64)
    client = GraphUser(graph, strategy, Site(members, config.net_bytes_per_s, places, settings.seed), config)
    kernel = Kernel(graph, infos, strategy, store, client, config, settings.costs, settings.seed)
    for info in everybody[len(infos) :]:
        kernel.expect(info)
    if settings.network == FAIR:
        kernel.transfers.network = FairNetwork(settings.costs.net_bytes_per_s, kernel.push)
    if settings.digest:
        kernel.start_digest()
    if settings.journal:
        kernel.journals = {info.id: Journal(info, strategy, config, settings.seed) for info in infos}
    return kernel


def _collect_later() -> None:
    """Let the collector go on, without one pass over everything that was made meanwhile: all of it counts as old."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
    gc.enable()


def simulate(
    graph: Graph,
    cluster: SimulatedCluster,
    strategy: Strategy,
    settings: Settings = DEFAULTS,
    progress: Callable[[int], None] | None = None,
    prepare: Callable[[Kernel], None] | None = None,
    opening: Opening | None = None,
    owns_process: bool = True,
) -> tuple[Result, Kernel]:
    """Run to the end; `progress` is told now and then how many tasks have ended. InternalError if there is no end.

    In a process of ours (`owns_process`) the garbage collector is off meanwhile: the kernel makes no cycles, and a pass
    over millions of tasks is slow. In a user's process it stays as it is.
    """
    began = time.perf_counter()
    collecting = owns_process and gc.isenabled()
    if collecting:
        gc.disable()
    try:
        kernel = make_kernel(graph, cluster, strategy, settings, opening)
        kernel.progress = progress
        if settings.check:
            kernel.checker = Checker(kernel)
        if prepare is not None:
            prepare(kernel)
        kernel.start()
        StallWatch(kernel)
        kernel.run()
        if kernel.client.waiting_for:
            raise InternalError(
                f"nothing is left to happen, but {kernel.client.waiting_for} of {graph.task_count} tasks have not ended"
            )
        if settings.check:
            kernel.checker.finish()
    finally:
        if collecting:
            _collect_later()
    return summarise(kernel, cluster, settings, time.perf_counter() - began), kernel


def summarise(kernel: Kernel, cluster: SimulatedCluster, settings: Settings, wall_s: float) -> Result:
    cores = [*(machine.core for machine in kernel.seats.values()), *kernel.departed]
    end_ns = max(kernel.ends, default=0)
    makespan_s = end_ns / SECOND_NS
    length_ns, core_ns = kernel.graph.total_length_ns, kernel.graph.total_core_ns
    width = core_ns / length_ns if length_ns else 1.0
    slots = cluster.core_count
    unended = len(kernel.starts) - len(kernel.ends)  # copies, or tasks that run again, which nobody waits for any more
    late_ns = sum([start_ns - end_ns for start_ns in kernel.starts if start_ns > end_ns]) if unended else 0
    busy_s = (sum(kernel.ends) + unended * end_ns - sum(kernel.starts) + kernel.runs.unbegun_ns + late_ns) / SECOND_NS
    states = [state for state, _ in kernel.client.ended.values()]
    peak = peak_of(kernel.graph, *kernel.ended)

    totals = dict.fromkeys(view.NodeCounts.__struct_fields__, 0)
    for core in cores:
        for name, count in structs.asdict(view.counts(core)).items():
            totals[name] += count

    return Result(
        tasks=kernel.graph.task_count,
        edges=kernel.graph.edge_count,
        nodes=cluster.node_count,
        cores=cluster.cores_per_node,
        cores_total=slots,
        strategy=kernel.strategy.name,
        seed=settings.seed,
        makespan_s=makespan_s,
        throughput=kernel.graph.task_count / makespan_s if makespan_s else 0.0,
        efficiency=core_ns / SECOND_NS / cluster.capacity / makespan_s if makespan_s else 0.0,
        utilization=busy_s * width / slots / makespan_s if makespan_s else 0.0,
        bytes_moved=kernel.transfers.fetched_bytes,
        peak_bytes=peak.total_bytes,
        peak_node_bytes=peak.node_bytes,
        peak_objects=peak.objects,
        local_hits=totals["local_hits"],
        cache_hits=totals["cache_hits"],
        pushes=totals["pushes"],
        steals=totals["steals"],
        failed_steals=totals["failed_steals_total"],
        gives=totals["gives"],
        replicas=totals["replicas"],
        messages=kernel.message_count,
        store_calls=kernel.store.calls,
        store_records=kernel.store.touched,
        events=kernel.event_count,
        failed=states.count(FAILED),
        cancelled=states.count(CANCELLED),
        wall_s=wall_s,
        peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        digest=kernel.digest.hexdigest() if kernel.digest is not None else "",
    )
