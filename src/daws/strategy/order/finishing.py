"""Ranks with which nodes finish work that was begun, if that takes no longer.

By upward rank alone, a graph of chains runs breadth-first: no chain continues before all of them have begun, and the
outputs of the first tasks are held all the time. A depth-first run finishes what was begun, but it ends badly. The last
chain to begin has its whole length before it, and most cores have nothing else to do.

The solution is to simulate a run *backwards*, depth-first, from the last tasks of the graph to the first. In the
backward run all cores are busy from the beginning, which is the end of the real run. The backward run is uneven at its
own end; that does no harm, because a real run begins with many ready tasks. The rank of a task becomes the time from
its start to the end of that run. The last tasks keep their upward ranks, which are best when little is left to do. Two
more simulations, forwards, show how much is held and how long the run takes with these ranks and with the upward ranks.
The simulations know cores and lengths, but neither nodes nor transfers.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from daws.model.task import INLINE_BYTES, RAISED
from daws.strategy.order.depth_first import backward_turns

if TYPE_CHECKING:
    import numpy as np

    from daws.model.cluster import Members
    from daws.model.graph import Graph

LEAST_BYTES = 32_000_000
"""A graph that makes fewer bytes than this keeps its upward ranks."""
TURN_NS = 300_000
"""The time from the end of a task until its children are ready. A free core takes another task meanwhile."""
LAST, LAST_APART = 1.25, 3.0
"""How long before the end of the run the last tasks begin, on one node and on several, as a part of the longest path
through the graph. Several nodes have transfers and uneven queues, which the simulations do not know."""
RUN_APART = 12.0
"""The smallest length of a run on several nodes, as a multiple of the longest path through the graph. Nodes of a
shorter run have no more tasks at different times, and the last nodes of a depth-first run have little to choose
from."""
WORTH = ((0.8, 1.0005), (0.7, 1.003), (0.25, 1.01))
"""Pairs of limits on the bytes held and on the time, as parts of their values by upward rank. One pair is enough."""


def finishing_ranks(graph: Graph, ranks: np.ndarray, members: Members, room_bytes: float) -> np.ndarray:
    """The ranks of a depth-first run, raised except for the last tasks.

    The upward ranks, which are given, are returned if they hold at most `room_bytes` per core at once, or if
    depth-first would hold hardly less or take longer.
    """
    cores = sum(info.cores for info in members.infos)
    wide = graph.total_core_ns / graph.total_length_ns if graph.total_length_ns else 1.0
    cores = max(1, round(cores / wide))
    sizes = _held_sizes(graph)
    if sizes.sum() <= max(room_bytes * cores, LEAST_BYTES):
        return ranks
    forwards = graph.planned_ns, graph.child_start, graph.children
    by_rank = _play(*forwards, -ranks, cores, TURN_NS)
    held = _most_held(graph, sizes, by_rank)
    is_apart = len(members.infos) > 1
    if held <= room_bytes * cores or (is_apart and by_rank.max() < RUN_APART * ranks.max()):
        return ranks

    # On one node twice as much would be in flight if turns took time here, to save two tasks' time at the end.
    last, turn_ns = (LAST_APART, TURN_NS) if is_apart else (LAST, 0)
    turns = backward_turns(graph, ranks, _read_bytes(graph, sizes))
    found = _play(graph.planned_ns, graph.parent_start, graph.parents, turns, cores, turn_ns)
    is_last = found <= last * ranks.max()
    found[is_last] = ranks[is_last]
    depth_first = _play(*forwards, -found, cores, TURN_NS)
    less, longer = _most_held(graph, sizes, depth_first) / held, depth_first.max() / by_rank.max()
    if not any(less <= most and longer <= longest for most, longest in WORTH):
        return ranks
    found[~is_last] += RAISED
    return found


def _held_sizes(graph: Graph) -> np.ndarray:
    """The size of each object that one task makes and another reads, unless it travels inside records; else 0."""
    import numpy as np

    sizes = np.zeros(graph.object_count, np.int64)
    sizes[graph.inputs] = graph.object_bytes[graph.inputs]
    sizes[graph.external_start :] = 0
    sizes[sizes <= INLINE_BYTES] = 0
    return sizes


def _read_bytes(graph: Graph, sizes: np.ndarray) -> np.ndarray:
    """The number of held bytes that each task reads."""
    import numpy as np

    sums = np.concatenate([[0], np.cumsum(sizes[graph.inputs])])
    return np.diff(sums[graph.input_start])


def _play(
    lengths: np.ndarray, next_start: np.ndarray, nexts: np.ndarray, keys: np.ndarray, cores: int, turn_ns: int
) -> np.ndarray:
    """The end of each task, on equal cores that take the ready task with the smallest key whenever they are free.

    `nexts` are the tasks that wait for a task: its children, or backwards its parents.
    """
    import numpy as np

    length, key, start, after = lengths.tolist(), keys.tolist(), next_start.tolist(), nexts.tolist()
    counts = np.bincount(nexts, minlength=len(lengths))
    waits_for = counts.tolist()
    ready = [(key[task], task) for task in np.flatnonzero(counts == 0).tolist()]
    heapify(ready)
    running: list[tuple[int, int]] = []
    ended: deque[tuple[int, int]] = deque()  # with the time at which that is known
    ended_at = np.zeros(len(lengths), np.int64)
    now = 0
    while ready or running or ended:
        while ready and len(running) < cores:
            task = heappop(ready)[1]
            heappush(running, (now + length[task], task))
        now = running[0][0] if running and not (ended and ended[0][0] < running[0][0]) else ended[0][0]
        while running and running[0][0] == now:
            task = heappop(running)[1]
            ended_at[task] = now
            ended.append((now + turn_ns, task))
        while ended and ended[0][0] == now:
            task = ended.popleft()[1]
            for one in after[start[task] : start[task + 1]]:
                waits_for[one] -= 1
                if not waits_for[one]:
                    heappush(ready, (key[one], one))
    return ended_at


def _most_held(graph: Graph, sizes: np.ndarray, ended_at: np.ndarray) -> int:
    """How many bytes are held at once: each object from the end of its maker to that of its last reader."""
    import numpy as np

    objects = np.flatnonzero(sizes)
    gone_at = np.zeros(graph.object_count, np.int64)
    np.maximum.at(gone_at, graph.inputs, np.repeat(ended_at, np.diff(graph.input_start)))
    times = np.concatenate([ended_at[graph.producer[objects]], gone_at[objects]])
    changes = np.concatenate([sizes[objects], -sizes[objects]])
    return int(np.cumsum(changes[np.argsort(times, kind="stable")]).max(initial=0))
