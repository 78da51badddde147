"""The amount of data that a run held at once, computed after it has ended.

An object is held from the end of the task that made it until all tasks that read it have ended. Copies that were
fetched and files from outside do not count: a node drops copies when it needs room, and files are there anyway.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daws.model.columns import Int64s
from daws.model.graph import Graph
from daws.model.task import INLINE_BYTES


class Peak(NamedTuple):
    """The most that was held at once: in the whole cluster (and how many objects that were), and on one node."""

    total_bytes: int = 0
    node_bytes: int = 0
    objects: int = 0


def has_large_objects(graph: Graph) -> bool:
    """Does any task make an object that does not travel inside records?"""
    return bool((graph.object_bytes[: graph.external_start] > INLINE_BYTES).any())


def peak_of(graph: Graph, tasks: Sequence[int], ends_ns: Sequence[int], nodes: Sequence[int]) -> Peak:
    """The peak of a simulation, from the task, time and node of each run, in the order in which the runs ended.

    An object that was made more than once counts from the first time, on the node where that was.
    """
    task, end_ns, node = (np.array(one, np.int64) for one in (tasks, ends_ns, nodes))
    known = task < graph.task_count  # tasks that were created while the graph ran make nothing large
    task, end_ns, node = task[known], end_ns[known], node[known]
    if not len(task):
        return Peak()
    never = int(end_ns[-1]) + 1
    first_ns = np.full(graph.task_count, never)
    first_ns[task[::-1]] = end_ns[::-1]
    where = np.zeros(graph.task_count, np.int64)
    where[task[::-1]] = node[::-1]
    last_ns = np.full(graph.task_count, never)
    last_ns[task] = end_ns

    reader = np.repeat(np.arange(graph.task_count), np.diff(graph.input_start))
    read_ns = np.zeros(graph.object_count, np.int64)
    np.maximum.at(read_ns, graph.inputs, last_ns[reader])
    made = np.flatnonzero(graph.object_bytes[: graph.external_start] > INLINE_BYTES)
    made = made[first_ns[graph.producer[made]] < never]
    born_ns = first_ns[graph.producer[made]]
    gone_ns = np.maximum(born_ns, read_ns[made])
    size, place = graph.object_bytes[made], where[graph.producer[made]]
    time_ns = np.concatenate([born_ns, gone_ns])
    change = np.concatenate([size, -size])
    freed = np.repeat([0, 1], len(made))  # what a task makes is there before what it has read is gone
    return Peak(
        _most(change[np.lexsort((freed, time_ns))]),
        _most(change[np.lexsort((freed, time_ns, np.tile(place, 2)))]),
        _most(np.sign(change[np.lexsort((freed, time_ns))])),
    )


def _most(changes: npt.NDArray[np.int64] | Int64s) -> int:
    """The highest sum along the way. (Each node's changes add up to nothing, so the next one begins at 0.)"""
    return int(np.cumsum(changes).max(initial=0))
