"""Lower bounds on the makespan that hold for every schedule, in the model that the simulator runs in.

The bounds count only costs that no strategy can avoid. Every task runs once on as many cores as it needs, on a node
that may run it. It begins after its parents have ended and the store has said so. A node has its inputs because it made
them or because they came over its link. Nothing is assumed about who decides, about caches, or about data that is sent
ahead.
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from daws.bounds.capacity import (
    capacity,
    fastest_cores,
    memory_bound_ns,
    needs_bound_ns,
    shortest_ns,
    sure_work_ns,
)
from daws.bounds.ground import CostModel, Nodes, edge_ns, first_start_ns, link_bytes_per_ns
from daws.bounds.paths import add_parents, late_work_ns, longest_ns, ramps_ns, tails_ns
from daws.bounds.sorted_graph import SortedGraph
from daws.bounds.transfers import add_transfers, shared_input_ns
from daws.model.columns import Int16s, Int64s
from daws.model.graph import Graph
from daws.model.task import INLINE_BYTES

NS_PER_S = 1_000_000_000
EXACT_MAX = 2.0**53
"""Sums of whole numbers are exact in floats up to here."""


class BoundPart(Struct, frozen=True):
    """One reason for the bound."""

    name: str
    seconds: float
    meaning: str


class Bound(Struct, frozen=True):
    """No schedule is shorter than any of its parts."""

    parts: tuple[BoundPart, ...]

    @property
    def seconds(self) -> float:
        return self.binding.seconds

    @property
    def binding(self) -> BoundPart:
        """The largest part; the first of those that are equal."""
        return max(self.parts, key=lambda part: part.seconds)

    def part(self, name: str) -> float:
        """The seconds of a part, 0 if this graph has no such part."""
        return next((part.seconds for part in self.parts if part.name == name), 0.0)

    def share_of(self, makespan_s: float) -> float:
        """The share of a makespan that no schedule could have saved."""
        return self.seconds / makespan_s if makespan_s else 0.0


def bound(graph: Graph, groups: Sequence[Nodes], costs: CostModel, evenly: bool = True) -> Bound:
    """The bounds on running a graph on these groups of nodes. Objects from outside lie `evenly` on all of them, or else
    anywhere: then all that a task reads may lie together."""
    work_ns = sure_work_ns(graph, groups)
    start_ns = first_start_ns(costs) if graph.task_count else 0
    power = capacity(groups)
    found: list[tuple[str, float, str]] = []
    total = _core_work(graph, work_ns)
    found.append(("work", total / power, "all tasks, shared by all cores"))
    if needs_ns := needs_bound_ns(graph, groups, work_ns):
        found.append(("needs", start_ns + needs_ns, "tasks shared by the cores that may run them, as wide as they are"))
    if memory_ns := memory_bound_ns(graph, groups, work_ns):
        found.append(("memory", start_ns + memory_ns, "tasks shared by the memory of the nodes"))
    found += _ways(graph, groups, costs, work_ns, total, power, evenly)
    # Something always ends at a whole nanosecond; what floats are off by must not lift a bound to the next one.
    off = 1e-12 if total < EXACT_MAX else 1e-8
    return Bound(
        tuple(BoundPart(name, math.ceil(took_ns * (1 - off)) / NS_PER_S, meaning) for name, took_ns, meaning in found)
    )


def _ways(
    graph: Graph, groups: Sequence[Nodes], costs: CostModel, work_ns: Int64s, total: float, power: float, evenly: bool
) -> list[tuple[str, float, str]]:
    """The parts that come from the order in which tasks run."""
    start_ns, between_ns, link = first_start_ns(costs), edge_ns(costs), link_bytes_per_ns(groups, costs)
    flow = SortedGraph(graph, INLINE_BYTES)
    duration_ns = flow.by_position(shortest_ns(graph, groups))
    if not flow.edge_count and not graph.external_count:
        critical_ns = int(duration_ns.max(initial=0))
        first_ns = start_ns if graph.task_count else 0
        return [
            ("critical path", critical_ns, "the longest task"),
            ("work and paths", first_ns + max(critical_ns, total / power), "after the first task could begin"),
        ]
    work_ns = flow.by_position(work_ns)
    cores = flow.by_position(graph.cores)
    head_ns = np.zeros(graph.task_count, np.int64)
    add_parents(flow, head_ns, duration_ns, 0)
    critical_ns = longest_ns(head_ns, duration_ns)
    head_ns[:] = start_ns
    add_transfers(flow, head_ns, groups, start_ns, link, work_ns, evenly)
    add_parents(flow, head_ns, duration_ns, between_ns)
    tail_ns = tails_ns(flow, duration_ns, between_ns)
    path_ns = longest_ns(head_ns, duration_ns, tail_ns)
    late_ns = max(
        late_work_ns(head_ns, tail_ns, work_ns, cores, power),
        late_work_ns(tail_ns, head_ns, work_ns, cores, power),
    )
    parts: list[tuple[str, float, str]] = [
        ("critical path", critical_ns, "the longest way through the graph"),
        ("path with costs", path_ns, "the same with what lies between tasks, and data that cannot be on one node"),
    ]
    if shared_ns := _shared_ns(flow, groups, link, work_ns, cores, head_ns, tail_ns):
        parts.append(("shared input", shared_ns, "the readers of one object, wherever else it has to go first"))
    least_ns = max(late_ns, path_ns, total / power)
    all_ns = ramps_ns(head_ns, tail_ns, cores, total, fastest_cores(groups), least_ns)
    parts.append(("work and paths", all_ns, "work that has to wait for its parents, or be followed by its children"))
    return parts


def _shared_ns(
    flow: SortedGraph,
    groups: Sequence[Nodes],
    link: float,
    work_ns: Int64s,
    cores: Int16s,
    head_ns: Int64s,
    tail_ns: Int64s,
) -> float:
    """The columns are by position; what reads from outside is known by task."""
    graph = flow.graph
    if not graph.external_count:
        return 0.0
    core_work = work_ns.astype(np.float64) * cores
    if flow.order is not None:
        position = np.empty(flow.task_count, np.int64)
        position[flow.order] = np.arange(flow.task_count)
        core_work, head_ns, tail_ns = core_work[position], head_ns[position], tail_ns[position]
    return shared_input_ns(graph, groups, link, core_work, head_ns, tail_ns)


def _core_work(graph: Graph, work_ns: Int64s) -> float:
    """The work of all tasks, counted once per core that they need."""
    wide = np.flatnonzero(graph.cores > 1)
    extra = (work_ns[wide] * (graph.cores[wide] - 1).astype(np.float64)).sum() if len(wide) else 0.0
    return float(work_ns.sum(dtype=np.float64)) + float(extra)
