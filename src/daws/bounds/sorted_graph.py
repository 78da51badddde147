"""A graph in the form that bounds need: tasks in an order in which parents come first, cut into steps.

All parents of a step's tasks are in earlier steps, so that a step is a few numpy calls, however many tasks it has. Most
graphs are numbered in such an order already; their columns are used as they are, without a copy, because there may be a
hundred million tasks. Other graphs are sorted by level first.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from daws.model.columns import Int64s, distinct, offsets
from daws.model.graph import Graph

STEP_TASKS_MAX = 1 << 22
"""The largest number of tasks in a step. It limits the memory of a step, unless its tasks have very many parents."""
SEARCH_TASKS_MIN = 64

Floats = npt.NDArray[np.float64]
_Scalar = TypeVar("_Scalar", bound=np.generic)


class SortedStep(NamedTuple):
    """The tasks `low .. high - 1` of a flow, and of its edges those that lead to them."""

    low: int
    high: int
    first: int
    last: int


class SortedGraph:
    """Tasks by position. The edges of the task at position `p` are `start[p] .. start[p + 1] - 1`: one for each parent,
    with the bytes that it reads of it. Objects of up to `inline_bytes` count as nothing."""

    def __init__(self, graph: Graph, inline_bytes: int = 0) -> None:
        self.graph = graph
        self.order: Int64s | None = None
        self._inline_bytes = inline_bytes
        self._edge_bytes: Int64s | None = None
        if _is_simple(graph):
            self.start: Int64s = graph.input_start
            self.parent: Int64s = graph.inputs
        else:
            self._merge_objects()
        if not self._has_parents_first():
            self._sort_by_level()

    @property
    def task_count(self) -> int:
        return self.graph.task_count

    @property
    def edge_count(self) -> int:
        return len(self.parent)

    def by_position(self, column: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
        """A column of the graph in the order of the flow."""
        return column if self.order is None else column[self.order]

    def bytes(self, first: int, last: int) -> Int64s:
        """The sizes of these edges."""
        if self._edge_bytes is not None:
            return self._edge_bytes[first:last]
        return self._counted(self.graph.object_bytes[self.parent[first:last]])

    @cached_property
    def steps(self) -> list[SortedStep]:
        """All tasks, step by step."""
        low, count = 0, self.task_count
        latest = self._latest_parents() if self.edge_count else None
        found = []
        while low < count:
            high = min(count, low + STEP_TASKS_MAX)
            if latest is not None:
                high = _first_at_least(latest, low, high)
            found.append(SortedStep(low, high, int(self.start[low]), int(self.start[high])))
            low = high
        return found

    def counts(self, step: SortedStep) -> Int64s:
        """How many parents each task of a step has."""
        return np.diff(self.start[step.low : step.high + 1])

    def _counted(self, sizes: Int64s) -> Int64s:
        return np.where(sizes > self._inline_bytes, sizes, 0) if self._inline_bytes else sizes

    def _latest_parents(self) -> Int64s:
        """The last of its parents' positions, for each position; -1 if there are none."""
        latest = np.full(self.task_count, -1, np.int64)
        some = self.start[1:] > self.start[:-1]
        latest[some] = np.maximum.reduceat(self.parent, self.start[:-1][some])
        return latest

    def _merge_objects(self) -> None:
        """Objects between the same two tasks become one edge with the bytes of them all; each object counts once."""
        graph = self.graph
        count, objects = graph.task_count, max(1, graph.object_count)
        reader = np.repeat(np.arange(count, dtype=np.int64), np.diff(graph.input_start))
        inside = graph.inputs < graph.external_start
        read = distinct(reader[inside] * objects + graph.inputs[inside])
        reader, object_ = read // objects, read % objects
        edge = reader * max(count, 1) + graph.producer[object_]  # ascending: objects are numbered by their producers
        firsts = np.flatnonzero(np.diff(edge, prepend=-1))
        sizes = self._counted(graph.object_bytes[object_])
        self._edge_bytes = np.add.reduceat(sizes, firsts) if len(firsts) else np.zeros(0, np.int64)
        self.start = offsets(reader[firsts], count)
        self.parent = graph.producer[object_[firsts]]

    def _has_parents_first(self) -> bool:
        for low, high in pieces(self.task_count):
            child = np.repeat(np.arange(low, high), np.diff(self.start[low : high + 1]))
            if (self.parent[self.start[low] : self.start[high]] >= child).any():
                return False
        return True

    def _sort_by_level(self) -> None:
        count = self.task_count
        order = np.argsort(self.graph.levels(), kind="stable").astype(np.int64)
        position = np.empty(count, np.int64)
        position[order] = np.arange(count)
        counts = np.diff(self.start)[order]
        start = np.concatenate([[0], np.cumsum(counts)])
        edges = np.repeat(self.start[:-1][order] - start[:-1], counts) + np.arange(len(self.parent))
        self._edge_bytes = self.bytes(0, self.edge_count)[edges]
        self.parent = position[self.parent[edges]]
        self.start, self.order = start, order


def _is_simple(graph: Graph) -> bool:
    """Does every task that is read make one object, with its own number, and read nothing twice or from outside?"""
    if graph.external_count or len(graph.object_bytes) not in (0, graph.task_count):
        return False
    if not len(graph.inputs):
        return True
    if (np.diff(graph.output_start) != 1).any():
        return False
    rises = np.diff(graph.inputs) > 0
    begins = graph.input_start[1:-1]
    rises[begins[(begins > 0) & (begins < len(graph.inputs))] - 1] = True
    return bool(rises.all())


def _first_at_least(latest: Int64s, low: int, high: int) -> int:
    """The first position after `low` with a parent from `low` on, `high` if there is none before."""
    at, width = low + 1, SEARCH_TASKS_MIN
    while at < high:
        found = latest[at : min(high, at + width)] >= low
        if found.any():
            return at + int(found.argmax())
        at, width = at + width, 2 * width
    return high


def pieces(count: int) -> Iterator[tuple[int, int]]:
    """The tasks in pieces that are small enough for columns."""
    for low in range(0, count, STEP_TASKS_MAX):
        yield low, min(count, low + STEP_TASKS_MAX)


def by_task(counts: Int64s) -> tuple[npt.NDArray[np.bool_], Int64s]:
    """The tasks that have edges, and where the edges of each begin, because `reduceat` cannot take an empty span."""
    some = counts > 0
    return some, (np.cumsum(counts) - counts)[some]
