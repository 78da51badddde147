"""The nodes that may be a task's home, because they have an executor for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from daws.model.cluster import Members
from daws.model.context import format_context
from daws.model.errors import ClusterError, ContextError
from daws.model.task import INLINE_BYTES, Needs, NodeId
from daws.strategy.decisions import Newcomer

if TYPE_CHECKING:
    from daws.model.columns import Int64s
    from daws.model.graph import Graph


class Capable(NamedTuple):
    """Classes of tasks with equal needs. `positions[class_of[task]]` are the positions of the nodes that can run a
    task."""

    class_of: Int64s
    positions: list[Int64s]
    cores: list[int]


def capable(graph: Graph, members: Members) -> Capable:
    """Group the tasks by their needs; ContextError names a task that no node can run.

    Memory needs that the same nodes satisfy count as equal, so there are few classes even if tasks declare many
    amounts.
    """
    import numpy as np

    if not len(members):
        raise ClusterError("tasks cannot be assigned: the cluster has no nodes")
    # Both numbers fit: there are fewer than 2**31 contexts, and cores are 16 bits.
    needed = graph.context.astype(np.int64) << 16 | graph.cores.astype(np.int64)
    memory = graph.memory_bytes if members.memory_limits else None
    if memory is not None:
        steps = np.searchsorted(np.array(members.memory_limits), memory)
        needed = np.unique(needed, return_inverse=True)[1] * (len(members.memory_limits) + 1) + steps
    if (needed[:1] == needed).all():
        firsts, class_of = np.arange(len(needed[:1])), np.zeros(len(needed), np.int64)
    else:
        _, firsts, class_of = np.unique(needed, return_index=True, return_inverse=True)
    position_of = {node: position for position, node in enumerate(members.nodes)}
    positions, cores = [], []
    for task in firsts.tolist():
        context, core_count = graph.contexts[graph.context[task]], int(graph.cores[task])
        memory_bytes = 0 if memory is None else members.memory_step(int(memory[task]))
        plain = context is None and core_count == 1 and not memory_bytes
        needs = None if plain else Needs(core_count, context, memory_bytes)
        able = [position_of[node] for node in members.capable(needs)]
        if not able:
            wanted = f"context '{format_context(context)}'" if context is not None else "no context"
            if memory is not None and memory[task]:
                wanted += f" and {memory[task]} bytes of memory"
            raise ContextError(f"{graph.name_of(task)} needs {core_count} cores with {wanted}, which no node offers")
        positions.append(np.array(able, np.int64))
        cores.append(core_count)
    return Capable(class_of.astype(np.int64, copy=False), positions, cores)


def spread(graph: Graph, members: Members, choose: Callable[[Int64s, Int64s], Int64s]) -> Int64s:
    """A home for each task. `choose(tasks, able)` is called once per class of tasks with equal needs."""
    import numpy as np

    found = capable(graph, members)
    homes = np.empty(graph.task_count, np.int64)
    for number, able in enumerate(found.positions):
        tasks = np.flatnonzero(found.class_of == number)
        homes[tasks] = choose(tasks, able)
    return homes


def in_turn(tasks: Int64s, able: Int64s) -> Int64s:
    """Round robin: the first task goes to the first capable node, the second to the second, and so on."""
    import numpy as np

    return able[np.arange(len(tasks)) % len(able)]


def next_in_turn(newcomer: Newcomer, members: Members) -> NodeId:
    """Round robin for a task that comes by itself. Unlike in `in_turn`, not every class of tasks begins at the first
    node."""
    able = members.capable(newcomer.needs)
    return able[newcomer.turn % len(able)]


def where_most_is(newcomer: Newcomer, members: Members) -> NodeId:
    """The node with most input bytes of the task, among those that can run it; in turn if none has any."""
    if not newcomer.inputs:
        return next_in_turn(newcomer, members)
    held: dict[NodeId, int] = {}
    for one in newcomer.inputs:
        if one.size_bytes > INLINE_BYTES:
            for place in one.places:
                held[place] = held.get(place, 0) + one.size_bytes
    able = members.capable(newcomer.needs)
    best = max(held, key=lambda node: (held[node] if node in able else 0, -node), default=-1)
    return best if best in able else next_in_turn(newcomer, members)
