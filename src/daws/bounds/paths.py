"""Heads and tails: what must have happened before a task begins, and what must follow after it. Times in ns."""

import numpy as np

from daws.bounds.sorted_graph import Floats, SortedGraph, by_task, pieces
from daws.model.columns import Int16s, Int64s

THRESHOLDS = 256
BISECTIONS = 60


def add_parents(flow: SortedGraph, head_ns: Int64s, duration_ns: Int64s, edge_ns: int) -> None:
    """Raise heads, the earliest that the tasks by position can begin, to after the ends of their parents."""
    for step in flow.steps:
        if step.last == step.first:
            continue
        parent = flow.parent[step.first : step.last]
        some, begins = by_task(flow.counts(step))
        latest_ns = np.maximum.reduceat(head_ns[parent] + duration_ns[parent], begins) + edge_ns
        part = head_ns[step.low : step.high]
        part[some] = np.maximum(part[some], latest_ns)


def tails_ns(flow: SortedGraph, duration_ns: Int64s, edge_ns: int) -> Int64s:
    """The least time between the end of a task and the end of everything, by position."""
    tail_ns = np.zeros(flow.task_count, np.int64)
    if not flow.edge_count:
        return tail_ns
    for step in reversed(flow.steps):
        if step.last > step.first:
            part = slice(step.low, step.high)
            after_ns = np.repeat(tail_ns[part] + duration_ns[part] + edge_ns, flow.counts(step))
            np.maximum.at(tail_ns, flow.parent[step.first : step.last], after_ns)
    return tail_ns


def longest_ns(*columns_ns: Int64s) -> int:
    """The largest sum of their rows."""
    longest = 0
    for low, high in pieces(len(columns_ns[0])):
        total = columns_ns[0][low:high].copy()
        for column in columns_ns[1:]:
            total += column[low:high]
        longest = max(longest, int(total.max()))
    return longest


def late_work_ns(early_ns: Int64s, late_ns: Int64s, work_ns: Int64s, cores: Int16s, capacity: float) -> float:
    """Tasks that cannot begin before some time are spread over all cores after it, and the least of what follows them
    comes on top. (With heads and tails swapped: tasks that end before some time.)"""
    if not len(early_ns):
        return 0.0
    sample = np.sort(early_ns[:: max(1, len(early_ns) // 65_536)])
    limits = np.unique(sample[np.linspace(0, len(sample) - 1, THRESHOLDS).astype(np.int64)])
    limits[0] = min(limits[0], early_ns.min())
    work = np.zeros(len(limits))
    least_ns = np.full(len(limits), np.iinfo(np.int64).max)
    for low, high in pieces(len(early_ns)):
        among = np.searchsorted(limits, early_ns[low:high], side="right") - 1
        work += np.bincount(among, work_ns[low:high].astype(np.float64) * cores[low:high], len(limits))
        np.minimum.at(least_ns, among, late_ns[low:high])
    work = work[::-1].cumsum()[::-1]
    least_ns = np.minimum.accumulate(least_ns[::-1])[::-1]
    return float((limits + work / capacity + least_ns).max())


def ramps_ns(head_ns: Int64s, tail_ns: Int64s, cores: Int16s, work: float, speeds: Floats, least_ns: float) -> float:
    """The shortest time from `least_ns` on in which the cores get all the work done; `speeds` are by number of cores.

    No more tasks can run at any time than could have begun, nor more than can be followed by all that must follow.
    """
    begun = _first_cores(head_ns, cores, len(speeds) - 1)
    ended = _first_cores(tail_ns, cores, len(speeds) - 1)

    def is_enough(total_ns: float) -> bool:
        edges = np.concatenate([[0.0], begun[0], total_ns - ended[0], [total_ns]])
        edges = np.unique(np.clip(edges, 0.0, total_ns))
        if len(edges) < 2:
            return work <= 0
        middles = (edges[1:] + edges[:-1]) / 2
        running = np.minimum(_cores_at(begun, middles), _cores_at(ended, total_ns - middles))
        return float((speeds[running] * np.diff(edges)).sum()) >= work

    if is_enough(least_ns):
        return least_ns
    low_ns, high_ns = least_ns, float(head_ns.max() + tail_ns.max()) + work / float(speeds[1]) + 1
    for _ in range(BISECTIONS):
        middle_ns = (low_ns + high_ns) / 2
        if is_enough(middle_ns):
            high_ns = middle_ns
        else:
            low_ns = middle_ns
    return low_ns


def _first_cores(times_ns: Int64s, cores: Int16s, wanted: int) -> tuple[Int64s, Int64s]:
    """The earliest times, and how many cores could be busy from each of them on, until all are."""
    if len(times_ns) > 4 * wanted:
        limit = np.partition(times_ns, wanted)[wanted]  # each task takes one core at least
        kept = times_ns <= limit
        times_ns, cores = times_ns[kept], cores[kept]
    known, which = np.unique(times_ns, return_inverse=True)
    busy = np.bincount(which, cores).cumsum()
    return known, np.minimum(busy, wanted).astype(np.int64)


def _cores_at(ramp: tuple[Int64s, Int64s], at_ns: Floats) -> Int64s:
    known, busy = ramp
    index = np.searchsorted(known, at_ns, side="right") - 1
    result: Int64s = np.where(index >= 0, busy[np.maximum(index, 0)], 0)
    return result
