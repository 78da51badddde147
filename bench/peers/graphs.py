"""Graphs of tiny tasks, as lists of parents in an order in which they can be submitted."""

import random
from collections.abc import Callable

Graph = tuple[list[tuple[int, ...]], list[int]]
"""For each task its parents, and the tasks that nobody reads."""

CHAIN = 50
NEAR = 64
PARENTS_MAX = 3


def pipeline(count: int) -> Graph:
    """Chains of 50, side by side: the first tasks of all of them come first."""
    width = max(1, count // CHAIN)
    return _with_sinks([(task - width,) if task >= width else () for task in range(count)])


def tree(count: int) -> Graph:
    """Pairs are joined until one is left."""
    leaves = (count + 1) // 2
    parents: list[tuple[int, ...]] = [()] * leaves
    waiting = list(range(leaves))
    while len(waiting) > 1:
        joined = list(range(len(parents), len(parents) + len(waiting) // 2))
        parents += [(waiting[2 * index], waiting[2 * index + 1]) for index in range(len(joined))]
        waiting = joined + waiting[2 * len(joined) :]
    return _with_sinks(parents)


def random_graph(count: int) -> Graph:
    """Each task reads up to three of the 64 before it."""
    rng = random.Random(1)
    parents = []
    for task in range(count):
        near = range(max(0, task - NEAR), task)
        parents.append(tuple(sorted(rng.sample(near, min(len(near), rng.randrange(PARENTS_MAX + 1))))))
    return _with_sinks(parents)


GRAPHS: dict[str, Callable[[int], Graph]] = {"pipeline": pipeline, "tree": tree, "random": random_graph}


def depths_of(parents: list[tuple[int, ...]]) -> list[int]:
    depths: list[int] = []
    for above in parents:
        depths.append(max([depths[one] for one in above], default=0) + 1)
    return depths


def _with_sinks(parents: list[tuple[int, ...]]) -> Graph:
    read = {one for above in parents for one in above}
    return parents, [task for task in range(len(parents)) if task not in read]
