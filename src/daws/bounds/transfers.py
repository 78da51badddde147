"""Bounds from data that has to move, wherever tasks run and whatever is cached. Times in ns.

Only links are counted: a limited number of bytes arrives at a node in a nanosecond. A transfer can overlap with
anything, and may begin as soon as its object exists. An object that was made on the same node needs none.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daws.bounds.capacity import node_capacity
from daws.bounds.ground import Nodes
from daws.bounds.sorted_graph import Floats, SortedGraph, by_task, pieces
from daws.model.columns import Int64s
from daws.model.graph import Graph
from daws.model.task import INLINE_BYTES


def add_transfers(
    flow: SortedGraph,
    head_ns: Int64s,
    groups: Sequence[Nodes],
    start_ns: int,
    link: float,
    work_ns: Int64s,
    evenly: bool = True,
) -> None:
    """Raise heads, the earliest starts of the tasks by position, to when their inputs can all be on one node.

    An input is there because its producer ran on that node, which takes work of that node's cores, or because it came
    over its link. The fastest way is that the node itself makes the inputs that are large for their work. Taking
    fractions of tasks, as if that were possible, gives a time that no schedule beats.
    """
    outside = _outside_bytes(flow, sum(nodes.count for nodes in groups)) if evenly else None
    fastest, power = max(nodes.speed for nodes in groups), max(node_capacity(nodes) for nodes in groups)
    for low, high in pieces(flow.task_count):
        late = np.diff(flow.start[low : high + 1]) > 1  # the only parent of a task can always run on the same node
        if outside is not None:
            late |= outside[low:high] > 0
        if not late.any():
            continue
        reads = _reads(flow, low, high, late, work_ns)
        # A link saves less than a nanosecond with each transfer, as the simulator cuts off fractions.
        need = np.maximum(np.bincount(reads.child, reads.size, high - low) - reads.counts * link, 0.0)
        first_ns = np.full(high - low, float(start_ns))
        some, begins = by_task(reads.counts)
        if len(begins):
            first_ns[some] += np.minimum.reduceat(reads.cost, begins) / fastest
        if outside is not None:
            need += outside[low:high]
            first_ns[outside[low:high] > 0] = 0.0
        ready_ns = np.floor(_earliest_ns(reads, need, first_ns, start_ns, link, power) * (1 - 1e-12))
        np.maximum(head_ns[low:high], ready_ns.astype(np.int64), out=head_ns[low:high])


class _Reads(NamedTuple):
    """Inputs of a piece of the graph by their readers: bytes, and the work of making them. Inputs that are large for
    their work come first. `counts` is by reader, and 0 for readers that need not be checked."""

    child: Int64s
    size: Floats
    cost: Floats
    counts: Int64s


def _reads(flow: SortedGraph, low: int, high: int, late: npt.NDArray[np.bool_], work_ns: Int64s) -> _Reads:
    counts = np.diff(flow.start[low : high + 1])
    first, last = int(flow.start[low]), int(flow.start[high])
    child = np.repeat(np.arange(high - low), counts)
    kept = late[child]
    child = child[kept]
    size = flow.bytes(first, last)[kept].astype(np.float64)
    cost = work_ns[flow.parent[first:last][kept]].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.where(size > 0, size / cost, 0.0)
    order = np.lexsort((-density, child))
    return _Reads(child[order], size[order], cost[order], np.where(late, counts, 0))


def _earliest_ns(reads: _Reads, need: Floats, first_ns: Floats, start_ns: int, link: float, power: float) -> Floats:
    """When all bytes that are needed are there: over the link, from `first_ns` on, or made by the node itself, one
    input after the other from `start_ns` on."""
    child, size, cost, counts = reads
    result: Floats = first_ns + need / link  # everything over the link
    some, begins = by_task(counts)
    if not len(begins):
        return result
    made, spent = np.cumsum(size), np.cumsum(cost)
    made -= np.repeat(made[begins] - size[begins], counts[some])
    spent -= np.repeat(spent[begins] - cost[begins], counts[some])
    at_ns = start_ns + spent / power  # when an input and all before it could have been made here
    left = need[child] - made - link * (at_ns - first_ns[child])
    edge = np.minimum.reduceat(np.where(left <= 0, np.arange(len(child)), len(child)), begins)
    ends = begins + counts[some]
    found = edge < ends
    which = np.flatnonzero(some)
    # It is enough in the middle of that input, while both go on, the link and the node.
    inside = edge[found]
    before_ns = at_ns[inside] - cost[inside] / power
    left_before = left[inside] + size[inside] + link * cost[inside] / power
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = link + np.where(cost[inside] > 0, power * size[inside] / cost[inside], np.inf)
    result[which[found]] = before_ns + np.maximum(left_before, 0.0) / rate
    # Even with all of them made here, what lies outside has to come over the link.
    last = ends[~found] - 1
    result[which[~found]] = at_ns[last] + np.maximum(left[last], 0.0) / link
    return result


def _outside_bytes(flow: SortedGraph, node_count: int) -> Floats | None:
    """The bytes from outside that cannot be on the task's node, for each position; None if there are none.

    Objects from outside are spread evenly over the nodes, so that a node has at most an even share of them.
    """
    graph = flow.graph
    if not graph.external_count or node_count < 2:
        return None
    reader, size = outside_reads(graph)[::2]
    share = -(-graph.external_count // node_count)
    if not len(reader) or int(np.bincount(reader).max()) <= share:
        return None
    order = np.lexsort((-size, reader))
    reader, size = reader[order], size[order]
    rank = np.arange(len(reader)) - np.searchsorted(reader, reader)
    missing = rank >= share
    total = np.bincount(reader[missing], size[missing] - 1, flow.task_count).astype(np.float64)
    return total if flow.order is None else total[flow.order]


def outside_reads(graph: Graph) -> tuple[Int64s, Int64s, Int64s]:
    """The readers of objects from outside, these objects, and their sizes; objects inside records are left out."""
    reader = np.repeat(np.arange(graph.task_count, dtype=np.int64), np.diff(graph.input_start))
    kept = (graph.inputs >= graph.external_start) & (graph.object_bytes[graph.inputs] > INLINE_BYTES)
    objects = max(1, graph.object_count)
    pairs = np.unique(reader[kept] * objects + graph.inputs[kept])
    return pairs // objects, pairs % objects, graph.object_bytes[pairs % objects]


def shared_input_ns(
    graph: Graph,
    groups: Sequence[Nodes],
    link: float,
    core_work_ns: Floats,
    head_ns: Int64s,
    tail_ns: Int64s,
) -> float:
    """The least time for the readers of one object from outside, which lies on one node. Other nodes can only help once
    they have received it.

    A node that has the object sends it to one other at a time, and passes it on only when it is complete. The number of
    nodes that have it therefore at most doubles with each transfer. The client counts as a node that has it, though it
    runs nothing. The columns are by task: its work on all its cores, its earliest start, and the least time that
    follows it.
    """
    reader, object_, _ = outside_reads(graph)
    if not len(reader):
        return 0.0
    first = graph.external_start
    number, count = object_ - first, graph.external_count
    work = np.bincount(number, core_work_ns[reader], count)
    begins_ns = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(begins_ns, number, head_ns[reader])
    follows_ns = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(follows_ns, number, tail_ns[reader])
    read = work > 0
    work, begins_ns, follows_ns = work[read], begins_ns[read], follows_ns[read]
    transfer_ns = np.maximum(graph.object_bytes[first:][read] / link - 1, 0.0)
    # With those that have it after so many transfers alone, the work would be done by …; with more it is, or it is not.
    done_ns = np.full(len(work), np.inf)
    power, waited = 0.0, np.zeros(len(work))
    for turn, more in enumerate(_joining(groups)):
        power += more
        waited += more * np.maximum(begins_ns, turn * transfer_ns)
        done_ns = np.minimum(done_ns, (work + waited) / power)
    return float((done_ns + follows_ns).max(initial=0.0))


def _joining(groups: Sequence[Nodes]) -> list[float]:
    """The total speed of the nodes that join after 0, 1, 2, … transfers: 1, 2, 4, … of them, the most powerful
    first."""
    sorts = sorted(((node_capacity(nodes), nodes.count) for nodes in groups), reverse=True)
    powers = np.repeat([power for power, _ in sorts], [count for _, count in sorts])
    return [float(powers[2**turn - 1 : 2 ** (turn + 1) - 1].sum()) for turn in range(len(powers).bit_length())]
