"""What tests of workflow families ask of a graph: tasks by kind, and which kinds a kind reads from."""

from collections import Counter

import numpy as np

from daws.model.graph import Graph


def counts(graph: Graph) -> dict[str, int]:
    numbers = np.bincount(graph.kind, minlength=len(graph.kinds)).tolist()
    return dict(zip(graph.kinds, numbers, strict=True))


def of_kind(graph: Graph, kind: str) -> list[int]:
    found: list[int] = np.flatnonzero(graph.kind == graph.kinds.index(kind)).tolist()
    return found


def kinds_of(graph: Graph, tasks: list[int]) -> dict[str, int]:
    return dict(Counter(graph.kinds[int(graph.kind[task])] for task in tasks))


def parents(graph: Graph, task: int) -> dict[str, int]:
    """How many parents of each kind a task has."""
    return kinds_of(graph, graph.parents_of(task).tolist())


def edges(graph: Graph) -> set[tuple[str, str]]:
    """Pairs of kinds between which there is any edge."""
    child = np.repeat(np.arange(graph.task_count), np.diff(graph.parent_start))
    pairs = np.unique(np.stack([graph.kind[graph.parents], graph.kind[child]]), axis=1)
    return {(graph.kinds[parent], graph.kinds[reader]) for parent, reader in pairs.T.tolist()}


def mean_s(graph: Graph, kind: str) -> float:
    return float(graph.length_ns[of_kind(graph, kind)].mean()) / 1e9
