"""The order in which one core would go through a graph backwards and depth-first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from daws.model.graph import Graph


def backward_turns(graph: Graph, ranks: np.ndarray, read_bytes: np.ndarray) -> np.ndarray:
    """The turn of each task, after those of all its children. A task is followed by the parents that waited for it
    alone, fewest input bytes first. Tasks without children come in the order of `_sinks`. The last submitted of equal
    tasks comes first, so it comes last in the forward direction."""
    import numpy as np

    parent_start, parents = graph.parent_start.tolist(), graph.parents.tolist()
    waits_for = np.diff(graph.child_start).tolist()
    read = read_bytes.tolist()
    turns = np.empty(graph.task_count, np.int64)
    number = 0
    for sink in _sinks(graph, ranks):
        stack = [sink]
        while stack:
            task = stack.pop()
            turns[task] = number
            number += 1
            ready = []
            for parent in parents[parent_start[task] : parent_start[task + 1]]:
                waits_for[parent] -= 1
                if not waits_for[parent]:
                    ready.append(parent)
            if len(ready) > 1:
                ready.sort(key=lambda one: (-read[one], one))
            stack += ready
    return turns


def _sinks(graph: Graph, ranks: np.ndarray) -> list[int]:
    """The tasks without children, such that those with a common ancestor stand together. They are listed as they are
    found on the paths from the tasks without parents, longest path first."""
    import numpy as np

    rank, child_start, children = ranks.tolist(), graph.child_start.tolist(), graph.children.tolist()
    seen = bytearray(graph.task_count)
    first = np.flatnonzero(np.diff(graph.parent_start) == 0)[::-1]
    found: list[int] = []
    for task in first[np.argsort(-ranks[first], kind="stable")].tolist():
        stack = [task]
        while stack:
            one = stack.pop()
            after = [child for child in children[child_start[one] : child_start[one + 1]] if not seen[child]]
            for child in after:
                seen[child] = 1
            if len(after) > 1:
                after.sort(key=lambda child: (rank[child], child))
            if child_start[one] == child_start[one + 1]:
                found.append(one)
            stack += after
    return found
