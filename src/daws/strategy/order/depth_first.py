"""The order in which one core would finish what was begun before it begins something new."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from daws.model.graph import Graph


def depth_first_turns(graph: Graph) -> np.ndarray:
    """The turn of each task. After a task come those that it made ready, the ones that make least first; tasks without
    parents come in the order of `_sources`."""
    import numpy as np

    child_start, children = graph.child_start.tolist(), graph.children.tolist()
    waits_for = np.diff(graph.parent_start).tolist()
    sums = np.concatenate([[0], np.cumsum(graph.object_bytes)])
    made = (sums[graph.output_start[1:]] - sums[graph.output_start[:-1]]).tolist()
    turns = np.empty(graph.task_count, np.int64)
    number = 0
    for source in _sources(graph):
        stack = [source]
        while stack:
            task = stack.pop()
            turns[task] = number
            number += 1
            ready = []
            for child in children[child_start[task] : child_start[task + 1]]:
                waits_for[child] -= 1
                if not waits_for[child]:
                    ready.append(child)
            if len(ready) > 1:
                ready.sort(key=lambda one: (made[one], one), reverse=True)
            stack += ready
    return turns


def _sources(graph: Graph) -> list[int]:
    """Tasks without parents, such that those for which one descendant waits stand together: as they are met on the ways
    back from the last tasks of the graph, the longest way first."""
    import numpy as np

    levels = graph.levels()
    level, parent_start, parents = levels.tolist(), graph.parent_start.tolist(), graph.parents.tolist()
    seen = bytearray(graph.task_count)
    last = np.flatnonzero(np.diff(graph.child_start) == 0)
    found: list[int] = []
    for task in last[np.argsort(-levels[last], kind="stable")].tolist():
        stack = [task]
        while stack:
            one = stack.pop()
            before = [parent for parent in parents[parent_start[one] : parent_start[one + 1]] if not seen[parent]]
            for parent in before:
                seen[parent] = 1
            if len(before) > 1:
                before.sort(key=lambda parent: (level[parent], -parent))
            if parent_start[one] == parent_start[one + 1]:
                found.append(one)
            stack += before
    return found
