"""The earliest finishing times of MATRIX (2015), section 3, as published. *Not* a bound: see `docs/bound.md`.

    t_ef(v)   = min(t_ef'(v), t_ef''(v)) + t_exec(v)
    t_ef'(v)  = max over parents u of (t_ef(u) + d(u) / B) + t_qwait
    t_ef''(v) = min over parents u of (max over parents w of (t_ef(w) + (d(w) / B unless w = u)) + size / B) + t_qwait
    t_qwait   = (k - 1) * l / 2

with k tasks per core of l on average. The best `u` in the second case is the parent whose data would arrive last: any
other leaves that arrival as it is. Both cases therefore need only the two latest arrivals, and Θ(np²) becomes Θ(np).

Objects from outside are not part of the paper's model and cost nothing here; neither do needs, contexts and speeds.
"""

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from daws.bounds.sorted_graph import Floats, SortedGraph, SortedStep, by_task
from daws.model.columns import Int64s
from daws.model.errors import UsageError
from daws.model.graph import Graph

NS_PER_S = 1_000_000_000
TASK_BYTES = 64
"""The size of a task in a message; the paper does not give it."""


class Recursion(Struct, frozen=True):
    """The result, and the numbers that it was computed with. `wait_s` is the time in a queue that every task is
    charged."""

    seconds: float
    wait_s: float
    per_core: float
    length_s: float
    bytes_per_s: float
    task_bytes: int

    def throughput(self, tasks: int) -> float:
        return tasks / self.seconds if self.seconds else 0.0


def recursion(
    graph: Graph,
    cores: int,
    bytes_per_s: float,
    per_core: float | None = None,
    length_s: float | None = None,
    task_bytes: int = TASK_BYTES,
    progress: Callable[[int], None] | None = None,
) -> Recursion:
    """The largest t_ef of a graph on this many cores. k and l are those of the graph unless they are given."""
    if cores < 1 or not bytes_per_s > 0 or task_bytes < 0:
        raise UsageError("the recursion needs cores, a link that carries something, and tasks that are not negative")
    if per_core is None:
        per_core = graph.task_count / cores
    if length_s is None:
        length_s = graph.total_length_ns / max(1, graph.task_count) / NS_PER_S
    wait_s = max(0.0, per_core - 1) * length_s / 2  # no negative waits
    walk = _Walk(graph, wait_s * NS_PER_S, bytes_per_s / NS_PER_S, task_bytes)
    last_ns = walk.last_end_ns(progress)
    return Recursion(last_ns / NS_PER_S, wait_s, per_core, length_s, bytes_per_s, task_bytes)


class _Walk:
    def __init__(self, graph: Graph, wait_ns: float, bytes_per_ns: float, task_bytes: int) -> None:
        self.flow = SortedGraph(graph)
        self.wait_ns = wait_ns
        self.bytes_per_ns = bytes_per_ns
        self.move_task_ns = task_bytes / bytes_per_ns
        self.length_ns: Int64s = self.flow.by_position(graph.length_ns)
        # If no task reads anything, no finishing time is used again.
        self.end_ns: Floats = np.zeros(graph.task_count if self.flow.edge_count else 0)

    def last_end_ns(self, progress: Callable[[int], None] | None) -> float:
        last_ns = 0.0
        for step in self.flow.steps:
            ends_ns: Floats = self.length_ns[step.low : step.high] + np.float64(self.wait_ns)
            if step.last > step.first:
                self._add_arrivals(step, ends_ns)
            if len(self.end_ns):
                self.end_ns[step.low : step.high] = ends_ns
            last_ns = max(last_ns, float(ends_ns.max()))
            if progress is not None:
                progress(step.high)
        return last_ns

    def _add_arrivals(self, step: SortedStep, ends_ns: Floats) -> None:
        """When the data of its parents is there, for each task that has some."""
        parent = self.flow.parent[step.first : step.last]
        made_ns = self.end_ns[parent]
        there_ns = made_ns + self.flow.bytes(step.first, step.last) / self.bytes_per_ns
        counts = self.flow.counts(step)
        some, begins = by_task(counts)
        latest_ns = np.maximum.reduceat(there_ns, begins)
        # The edge of the latest arrival: with its data at hand, the second latest is what counts.
        is_latest = there_ns == np.repeat(latest_ns, counts[some])
        edge = np.minimum.reduceat(np.where(is_latest, np.arange(len(there_ns)), len(there_ns)), begins)
        there_ns[edge] = made_ns[edge]
        beside_it_ns = np.maximum.reduceat(there_ns, begins) + self.move_task_ns
        ends_ns[some] += np.minimum(latest_ns, beside_it_ns)
