"""Which nodes may be a task's home: those that have an executor for it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from daws.model.cluster import Members
from daws.model.columns import Int64s
from daws.model.context import format_context
from daws.model.errors import ClusterError, ContextError
from daws.model.graph import Graph
from daws.model.task import Needs


class Capable(NamedTuple):
    """Tasks of one class need the same; `positions[class_of[task]]` are those of the nodes that can run the task."""

    class_of: Int64s
    positions: list[Int64s]
    cores: list[int]


def capable(graph: Graph, members: Members) -> Capable:
    """Group the tasks by what they need; ContextError names a task that no node can run."""
    if not len(members):
        raise ClusterError("tasks cannot be assigned: the cluster has no nodes")
    count = graph.task_count
    # Both numbers fit: there are fewer than 2**31 contexts, and cores are 16 bits.
    needed = graph.context.astype(np.int64) << 16 | graph.cores.astype(np.int64)
    if not count or (needed[0] == needed).all():
        codes, class_of = needed[:1], np.zeros(count, np.int64)
    else:
        codes, class_of = np.unique(needed, return_inverse=True)
    position_of = {node: position for position, node in enumerate(members.nodes)}
    positions, cores = [], []
    for number, code in enumerate(codes.tolist()):
        context, core_count = graph.contexts[code >> 16], code & 0xFFFF
        needs = None if context is None and core_count == 1 else Needs(core_count, context)
        able = [position_of[node] for node in members.capable(needs)]
        if not able:
            task = int(np.argmax(class_of == number))
            wanted = f"context '{format_context(context)}'" if context is not None else "no context"
            raise ContextError(f"{graph.name_of(task)} needs {core_count} cores with {wanted}, which no node offers")
        positions.append(np.array(able, np.int64))
        cores.append(core_count)
    return Capable(class_of.astype(np.int64, copy=False), positions, cores)


def spread(graph: Graph, members: Members, choose: Callable[[Int64s, Int64s], Int64s]) -> Int64s:
    """A home for each task: `choose(tasks, able)` is asked once per class of tasks that need the same."""
    found = capable(graph, members)
    homes = np.empty(graph.task_count, np.int64)
    for number, able in enumerate(found.positions):
        tasks = np.flatnonzero(found.class_of == number)
        homes[tasks] = choose(tasks, able)
    return homes


def in_turn(tasks: Int64s, able: Int64s) -> Int64s:
    """The first task to the first capable node, the second to the second, and so on around."""
    return able[np.arange(len(tasks)) % len(able)]
