"""Bounds from the limited number of cores of each kind, and from limited memory. Times in ns.

A task of length L takes at least ⌊L / speed⌋ on a node, where the simulator cuts off fractions of a nanosecond. That
saving is subtracted from the work, so that sums of millions of tasks stay bounds.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from daws.bounds.ground import Nodes, fastest_for, slots_for
from daws.model.columns import Int64s
from daws.model.graph import Graph

MEMORY_STEPS_MAX = 64


def capacity(groups: Sequence[Nodes]) -> float:
    """Nanoseconds of work that all cores do in a nanosecond."""
    return sum(nodes.count * node_capacity(nodes) for nodes in groups)


def node_capacity(nodes: Nodes) -> float:
    """The same of one of these nodes."""
    return nodes.speed * sum(one.count for one in nodes.executors)


def fastest_cores(groups: Sequence[Nodes]) -> npt.NDArray[np.float64]:
    """The largest total speed of n cores, for n from 0 on: the fastest come first."""
    sorts = sorted((nodes.speed, nodes.count * sum(one.count for one in nodes.executors)) for nodes in groups)[::-1]
    speeds = np.repeat([speed for speed, _ in sorts], [count for _, count in sorts])
    return np.concatenate([[0.0], np.cumsum(speeds)])


def sure_work_ns(graph: Graph, groups: Sequence[Nodes]) -> Int64s:
    """The length of each task, less what cutting off fractions may save."""
    if all(nodes.speed == 1.0 for nodes in groups):
        return graph.length_ns
    slack_ns = int(np.ceil(max(nodes.speed for nodes in groups)))
    return np.maximum(graph.length_ns - slack_ns, 0)


def shortest_ns(graph: Graph, groups: Sequence[Nodes]) -> Int64s:
    """How long each task takes on the fastest node that may run it."""
    if all(nodes.speed == 1.0 for nodes in groups):
        return graph.length_ns
    durations_ns = np.zeros(graph.task_count, np.int64)
    for context, cores, mask in _needs(graph):
        speed = fastest_for(groups, graph.contexts[context], cores)
        if speed:
            durations_ns[mask] = np.floor(graph.length_ns[mask] / speed * (1 - 1e-15)).astype(np.int64)
    return durations_ns


def needs_bound_ns(graph: Graph, groups: Sequence[Nodes], work_ns: Int64s) -> float:
    """Tasks that ask for the same context share the executors that offer it, and those that need k cores or more run
    ⌊n / k⌋ at a time on n of them. 0 if no task asks for anything."""
    most_ns = 0.0
    if not _asks(graph):
        return most_ns
    cores, contexts = graph.cores, graph.context
    for context in np.unique(contexts).tolist():
        of_it = contexts == context
        wanted = graph.contexts[context]
        if slots := slots_for(groups, wanted, 1):
            most_ns = max(most_ns, float((work_ns[of_it] * cores[of_it].astype(np.float64)).sum()) / slots)
        for width in np.unique(cores[of_it]).tolist():
            if slots := slots_for(groups, wanted, width):
                most_ns = max(most_ns, float(work_ns[of_it & (cores >= width)].sum(dtype=np.float64)) / slots)
    return most_ns


def memory_bound_ns(graph: Graph, groups: Sequence[Nodes], work_ns: Int64s) -> float:
    """Tasks that run on a node together fit into its memory. 0 if tasks declare nothing or nodes have no limit."""
    memory = graph.memory_bytes
    if memory is None or not any(nodes.memory_bytes for nodes in groups):
        return 0.0
    most_ns = 0.0
    if all(nodes.memory_bytes for nodes in groups):
        there = sum(nodes.count * nodes.memory_bytes * nodes.speed for nodes in groups)
        most_ns = float((work_ns.astype(np.float64) * memory).sum()) / there
    sizes = np.unique(memory[memory > 0])
    if len(sizes) > MEMORY_STEPS_MAX:
        sizes = sizes[np.linspace(0, len(sizes) - 1, MEMORY_STEPS_MAX).astype(np.int64)]
    for least in sizes.tolist():
        slots = sum(nodes.count * nodes.speed * _holds(nodes, least) for nodes in groups)
        if slots:
            most_ns = max(most_ns, float(work_ns[memory >= least].sum(dtype=np.float64)) / slots)
    return most_ns


def _holds(nodes: Nodes, memory_bytes: int) -> int:
    """How many tasks of such a need one of these nodes can run at a time."""
    cores = sum(one.count for one in nodes.executors)
    return min(cores, nodes.memory_bytes // memory_bytes) if nodes.memory_bytes else cores


def _asks(graph: Graph) -> bool:
    return len(graph.contexts) > 1 or bool((graph.cores > 1).any())


def _needs(graph: Graph) -> list[tuple[int, int, npt.NDArray[np.bool_]]]:
    """Each context and number of cores that tasks ask for, and which tasks those are."""
    if not _asks(graph):
        return [(0, 1, np.ones(graph.task_count, np.bool_))]
    width = int(graph.cores.max()) + 1
    codes = graph.context.astype(np.int64) * width + graph.cores
    return [(code // width, code % width, codes == code) for code in np.unique(codes).tolist()]
