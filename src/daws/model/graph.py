"""Graphs: tasks and the objects between them, as a value made of numpy columns.

A million tasks cost some 60 bytes each, because there is no Python object per task. The data of task `t` is at index
`t` of each column; lists per task are one long array with start offsets. Objects have ids too. Task `t` makes the
objects `output_start[t] .. output_start[t + 1] - 1`; objects from outside follow after those of the last task. A
control edge, where one task merely waits for another, is an object of 0 bytes.

`length_ns` is how long tasks really run. `estimate_ns` is how long they are expected to run; schedulers see only that.
`memory_bytes` is the memory that tasks declare to need while they run. Either column is None if no task declares it.

This module knows nothing of nodes, states or time: a graph says what is to be done, never what happened.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daws.model.columns import (
    Column,
    Int16s,
    Int32s,
    Int64s,
    check_number,
    check_offsets,
    column,
    distinct,
    frozen,
    offsets,
    optional_column,
    spans,
)
from daws.model.context import Context, check_context
from daws.model.errors import ContextError, GraphError
from daws.model.task import GUESS_NS

TASK_COUNT_MAX = 2**31 - 1
CYCLE_SHOWN_MAX = 5
# Sums of lengths and sizes must stay exact in int64 wherever they are added up.
TOTAL_MAX = 2**62
# Below this many tasks a plain loop beats a dozen numpy calls; long chains live from it.
NARROW = 32


class Growth(NamedTuple):
    """Tasks of `kind` create `count` tasks of `child_kind` halfway through, and wait for them if `waits`.

    The created tasks also wait for the task `after` of the graph, if there is one. Some task must still read the
    outputs of `after` by then, or they may be dropped. Tasks that are `held` belong to their creator, as in live
    clusters.
    """

    kind: int
    child_kind: int
    count: int  # type: ignore[assignment]  # a tuple has a method of this name
    child_length_ns: int
    waits: bool = True
    after: int = -1
    held: bool = False


class Graph:
    """An immutable graph. The constructor checks shapes and types; `check()` checks that the graph makes sense.

    `estimate_ns` and `memory_bytes` are None if no task declares a value, and 0 for single tasks without one.
    """

    kinds: tuple[str, ...]
    contexts: tuple[Context | None, ...]
    kind: Int32s
    length_ns: Int64s
    context: Int32s
    priority: Int32s
    cores: Int16s
    input_start: Int64s
    inputs: Int64s
    output_start: Int64s
    object_bytes: Int64s
    estimate_ns: Int64s | None
    memory_bytes: Int64s | None
    growth: tuple[Growth, ...]

    def __init__(
        self,
        *,
        kinds: Sequence[str],
        kind: Column,
        length_ns: Column,
        input_start: Column,
        inputs: Column,
        output_start: Column,
        object_bytes: Column,
        contexts: Sequence[Context | None] = (None,),
        context: Column | None = None,
        priority: Column | None = None,
        cores: Column | None = None,
        growth: Sequence[Growth] = (),
        estimate_ns: Column | None = None,
        memory_bytes: Column | None = None,
    ) -> None:
        self.growth = tuple(growth)
        self.kinds = tuple(kinds)
        self.contexts = tuple(contexts)
        self.kind = column("kind", kind, np.int32)
        count = len(self.kind)
        if count > TASK_COUNT_MAX:
            raise GraphError(f"a graph holds at most {TASK_COUNT_MAX} tasks, not {count}")
        self.length_ns = column("length_ns", length_ns, np.int64, count)
        self.context = column("context", np.zeros(count, np.int32) if context is None else context, np.int32, count)
        self.priority = column("priority", np.zeros(count, np.int32) if priority is None else priority, np.int32, count)
        self.cores = column("cores", np.ones(count, np.int16) if cores is None else cores, np.int16, count)
        self.input_start = column("input_start", input_start, np.int64, count + 1)
        self.inputs = column("inputs", inputs, np.int64)
        self.output_start = column("output_start", output_start, np.int64, count + 1)
        self.object_bytes = column("object_bytes", object_bytes, np.int64)
        self.estimate_ns = optional_column("estimate_ns", estimate_ns, count)
        self.memory_bytes = optional_column("memory_bytes", memory_bytes, count)
        check_offsets("input_start", self.input_start, len(self.inputs), exact=True)
        check_offsets("output_start", self.output_start, len(self.object_bytes), exact=False)

    # -- counts and totals ---------------------------------------------------------------------------------------

    @property
    def task_count(self) -> int:
        return len(self.kind)

    @property
    def object_count(self) -> int:
        return len(self.object_bytes)

    @property
    def external_start(self) -> int:
        """The id of the first object that was put in from outside."""
        return int(self.output_start[-1])

    @property
    def external_count(self) -> int:
        return self.object_count - self.external_start

    @property
    def edge_count(self) -> int:
        """Distinct (parent task, child task) pairs; two objects between the same tasks are one edge."""
        return len(self.children)

    @property
    def total_length_ns(self) -> int:
        return int(self.length_ns.sum())

    @property
    def total_core_ns(self) -> int:
        """The length of all tasks, each counted once per core that it needs. The sum is exact, however large."""
        wide = np.flatnonzero(self.cores > 1)
        lengths, cores = self.length_ns[wide], self.cores[wide]
        widths: list[int] = np.unique(cores).tolist()
        return self.total_length_ns + sum((width - 1) * int(lengths[cores == width].sum()) for width in widths)

    @property
    def input_bytes(self) -> int:
        """Bytes read by all tasks together; an object counts once per reader."""
        return int(self.object_bytes[self.inputs].sum())

    @property
    def output_bytes(self) -> int:
        return int(self.object_bytes[: self.external_start].sum())

    @property
    def external_bytes(self) -> int:
        return int(self.object_bytes[self.external_start :].sum())

    @property
    def nbytes(self) -> int:
        """Memory of the columns, without the columns that are computed on demand."""
        return sum(column.nbytes for column in self._columns() if column is not None)

    # -- single tasks --------------------------------------------------------------------------------------------

    def inputs_of(self, task: int) -> Int64s:
        return self.inputs[self.input_start[task] : self.input_start[task + 1]]

    def outputs_of(self, task: int) -> range:
        return range(int(self.output_start[task]), int(self.output_start[task + 1]))

    def parents_of(self, task: int) -> Int64s:
        return self.parents[self.parent_start[task] : self.parent_start[task + 1]]

    def children_of(self, task: int) -> Int64s:
        return self.children[self.child_start[task] : self.child_start[task + 1]]

    def name_of(self, task: int) -> str:
        """The name of a task in messages."""
        kind = int(self.kind[task])
        return f"task {task} ({self.kinds[kind]})" if 0 <= kind < len(self.kinds) else f"task {task}"

    # -- computed on demand, then kept ---------------------------------------------------------------------------

    @cached_property
    def producer(self) -> Int64s:
        """The task that makes each object; -1 for objects from outside."""
        producer = np.full(self.object_count, -1, np.int64)
        makers = np.arange(self.task_count, dtype=np.int64)
        producer[: self.external_start] = np.repeat(makers, np.diff(self.output_start))
        return frozen(producer)

    @property
    def parent_start(self) -> Int64s:
        return self._parent_lists[0]

    @property
    def parents(self) -> Int64s:
        """Parents of task `t`, ascending, at `parent_start[t] .. parent_start[t + 1] - 1`."""
        return self._parent_lists[1]

    @property
    def child_start(self) -> Int64s:
        return self._child_lists[0]

    @property
    def children(self) -> Int64s:
        """Children of task `t`, ascending, at `child_start[t] .. child_start[t + 1] - 1`."""
        return self._child_lists[1]

    def levels(self) -> Int32s:
        """The number of edges on the longest path that leads to each task; GraphError if there is a cycle."""
        return self._levels

    def upward_rank_ns(self) -> Int64s:
        """The length of each task plus the longest path from its end to the end of the graph."""
        return self._upward_rank_ns

    def critical_path_ns(self) -> int:
        return int(self._upward_rank_ns.max(initial=0))

    @cached_property
    def planned_ns(self) -> Int64s:
        """The lengths that planners use: estimates, with a guess for tasks that have none.

        If the graph has no estimates at all, planners get the true lengths, as in the papers that describe them.
        """
        if self.estimate_ns is None:
            return self.length_ns
        return frozen(np.where(self.estimate_ns > 0, self.estimate_ns, GUESS_NS))

    def planned_rank_ns(self) -> Int64s:
        """The upward rank of each task, computed from the lengths that planners use."""
        return self._planned_rank_ns

    @cached_property
    def task_input_bytes(self) -> Int64s:
        """The number of bytes that each task reads."""
        self._check_inputs_exist()
        upto = np.zeros(len(self.inputs) + 1, np.int64)
        np.cumsum(self.object_bytes[self.inputs], out=upto[1:])
        return frozen(upto[self.input_start[1:]] - upto[self.input_start[:-1]])

    # -- as a value ----------------------------------------------------------------------------------------------

    def scaled(self, time: float = 1.0, data: float = 1.0) -> "Graph":
        """The same graph with all lengths multiplied by `time` and all sizes by `data`, both rounded."""
        if time == data == 1.0:
            return self
        return self.changed(
            length_ns=_scaled("lengths", self.length_ns, time),
            estimate_ns=None if self.estimate_ns is None else _scaled("estimates", self.estimate_ns, time),
            object_bytes=_scaled("sizes", self.object_bytes, data),
            growth=[
                growth._replace(child_length_ns=int(_scaled("lengths", np.array([growth.child_length_ns]), time)[0]))
                for growth in self.growth
            ],
        )

    def changed(self, **columns: Any) -> "Graph":
        """The same graph with other columns, named as for the constructor."""
        return Graph(**{name: getattr(self, name) for name in _PARTS} | columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return (
            self.kinds == other.kinds
            and self.contexts == other.contexts
            and self.growth == other.growth
            and all(map(_equal, self._columns(), other._columns()))
        )

    __hash__ = None  # type: ignore[assignment]  # compared by content; hashing millions of numbers would surprise

    def __repr__(self) -> str:
        return f"<Graph of {self.task_count} tasks, {len(self.inputs)} inputs, {self.object_count} objects>"

    def check(self) -> None:
        """Refuse a graph that cannot run, in one line that names the task."""
        self._check_vocabulary()
        self._check_tasks()
        self._check_objects()
        self._check_growth()
        self.levels()

    # -- inside --------------------------------------------------------------------------------------------------

    def _columns(self) -> tuple[npt.NDArray[Any] | None, ...]:
        per_task = (self.kind, self.length_ns, self.context, self.priority, self.cores)
        if_said = (self.estimate_ns, self.memory_bytes)
        return (*per_task, *if_said, self.input_start, self.inputs, self.output_start, self.object_bytes)

    @cached_property
    def _parent_lists(self) -> tuple[Int64s, Int64s]:
        self._check_inputs_exist()
        count = self.task_count
        child = np.repeat(np.arange(count, dtype=np.int64), np.diff(self.input_start))
        parent = self.producer[self.inputs]
        inside = parent >= 0
        # One number per edge sorts by child, then parent; it fits because there are fewer than 2**31 tasks.
        edges = distinct(child[inside] * count + parent[inside])
        return frozen(offsets(edges // max(count, 1), count)), frozen(edges % max(count, 1))

    @cached_property
    def _child_lists(self) -> tuple[Int64s, Int64s]:
        count = self.task_count
        child = np.repeat(np.arange(count, dtype=np.int64), np.diff(self.parent_start))
        edges = self.parents * count + child
        edges.sort()
        return frozen(offsets(edges // max(count, 1), count)), frozen(edges % max(count, 1))

    @cached_property
    def _levels(self) -> Int32s:
        levels = np.zeros(self.task_count, np.int32)
        missing = np.diff(self.parent_start)
        front = np.flatnonzero(missing == 0)
        level = 0
        while len(front):
            levels[front] = level
            if len(front) < NARROW:
                front, level = self._walk_narrow(front.tolist(), level, levels, missing)
            else:
                front, level = self._next_front(front, missing), level + 1
        if missing.any():
            raise GraphError(self._describe_cycle(missing))
        return frozen(levels)

    def _next_front(self, front: Int64s, missing: Int64s) -> Int64s:
        """Remove the edges that leave `front`, and return the tasks that now wait for nothing."""
        starts = self.child_start[front]
        touched = self.children[spans(starts, self.child_start[front + 1] - starts)]
        np.subtract.at(missing, touched, 1)
        return distinct(touched[missing[touched] == 0])

    def _walk_narrow(self, front: list[int], level: int, levels: Int32s, missing: Int64s) -> tuple[Int64s, int]:
        """The steps of `_next_front` in plain Python, for as long as the front stays narrow."""
        start, children = self.child_start.data, self.children.data
        level_of, left = levels.data, missing.data
        while 0 < len(front) < NARROW:
            level += 1
            after = []
            for task in front:
                for child in children[start[task] : start[task + 1]]:
                    left[child] -= 1
                    if not left[child]:
                        level_of[child] = level
                        after.append(child)
            front = after
        return np.array(front, np.int64), level

    def _describe_cycle(self, missing: Int64s) -> str:
        # Each task left over waits for another one left over: walking towards parents must come back.
        task = int(np.flatnonzero(missing > 0)[0])
        seen: dict[int, int] = {}
        while task not in seen:
            seen[task] = len(seen)
            task = next(int(parent) for parent in self.parents_of(task) if missing[parent] > 0)
        cycle = list(seen)[seen[task] :][::-1]
        cut = " -> ..." if len(cycle) > CYCLE_SHOWN_MAX else ""
        shown = " -> ".join(self.name_of(member) for member in cycle[:CYCLE_SHOWN_MAX])
        return f"the graph has a cycle of {len(cycle)} tasks: {shown}{cut} -> {self.name_of(cycle[0])}"

    @cached_property
    def _upward_rank_ns(self) -> Int64s:
        return self._ranks_of(self.length_ns)

    @cached_property
    def _planned_rank_ns(self) -> Int64s:
        return self._upward_rank_ns if self.estimate_ns is None else self._ranks_of(self.planned_ns)

    def _ranks_of(self, lengths_ns: Int64s) -> Int64s:
        rank = lengths_ns.copy()
        levels = self._levels
        order = np.argsort(levels, kind="stable")
        bounds = np.searchsorted(levels[order], np.arange(int(levels.max(initial=-1)) + 2)).tolist()
        level = len(bounds) - 3  # the last level has no children by definition
        while level >= 0:
            end = bounds[level + 1]
            if end - bounds[level] >= NARROW:
                self._add_ranks(order[bounds[level] : end], rank)
            else:
                # Later levels come first in a reversed run, so one loop serves a whole run of narrow levels.
                while level > 0 and bounds[level] - bounds[level - 1] < NARROW:
                    level -= 1
                self._add_ranks_narrow(order[bounds[level] : end][::-1].tolist(), rank)
            level -= 1
        return frozen(rank)

    def _add_ranks(self, tasks: Int64s, rank: Int64s) -> None:
        starts = self.child_start[tasks]
        counts = self.child_start[tasks + 1] - starts
        some = counts > 0  # reduceat cannot take an empty span
        tasks, starts, counts = tasks[some], starts[some], counts[some]
        if len(tasks):
            below = rank[self.children[spans(starts, counts)]]
            rank[tasks] += np.maximum.reduceat(below, np.cumsum(counts) - counts)

    def _add_ranks_narrow(self, tasks: list[int], rank: Int64s) -> None:
        start, children, rank_of = self.child_start.data, self.children.data, rank.data
        for task in tasks:
            longest = 0
            for child in children[start[task] : start[task + 1]]:
                if rank_of[child] > longest:
                    longest = rank_of[child]
            rank_of[task] += longest

    def _check_vocabulary(self) -> None:
        if not self.contexts or self.contexts[0] is not None:
            raise GraphError("the first of a graph's contexts must be None, which stands for no context")
        for context in self.contexts:
            try:
                check_context(context)
            except ContextError as error:
                raise GraphError(f"the graph has a bad context: {error}") from error
        self._refuse((self.kind < 0) | (self.kind >= len(self.kinds)), "has unknown kind number", self.kind)
        self._refuse(
            (self.context < 0) | (self.context >= len(self.contexts)), "has unknown context number", self.context
        )

    def _check_tasks(self) -> None:
        self._refuse(self.length_ns < 0, "has a negative length in ns:", self.length_ns)
        self._refuse(self.cores < 1, "needs at least one core, not", self.cores)
        if float(self.length_ns.sum(dtype=np.float64)) > TOTAL_MAX:
            task = int(self.length_ns.argmax())
            raise GraphError(f"the lengths add up to more than 2**62 ns; the longest is that of {self.name_of(task)}")
        if self.estimate_ns is not None:
            self._refuse(self.estimate_ns < 0, "has a negative estimate in ns:", self.estimate_ns)
            if float(self.planned_ns.sum(dtype=np.float64)) > TOTAL_MAX:
                task = int(self.estimate_ns.argmax())
                raise GraphError(f"the estimates add up to more than 2**62 ns; the longest is for {self.name_of(task)}")
        if self.memory_bytes is not None:
            self._refuse(self.memory_bytes < 0, "needs a negative number of bytes:", self.memory_bytes)

    def _check_objects(self) -> None:
        self._check_inputs_exist()
        negative = np.flatnonzero(self.object_bytes < 0)
        if len(negative):
            thing = int(negative[0])
            maker = int(self.producer[thing])
            source = "from outside" if maker < 0 else f"made by {self.name_of(maker)}"
            raise GraphError(f"object {thing} {source} has a negative size: {self.object_bytes[thing]} bytes")
        # At most all inputs are moved, so both totals have to be safe.
        read = self.object_bytes[self.inputs].sum(dtype=np.float64)
        if float(self.object_bytes.sum(dtype=np.float64)) > TOTAL_MAX or float(read) > TOTAL_MAX:
            raise GraphError(
                f"the sizes add up to more than 2**62 bytes; the largest object is {self.object_bytes.argmax()}"
            )

    def _check_growth(self) -> None:
        children: dict[int, int] = {}
        for growth in self.growth:
            for kind in growth.kind, growth.child_kind:
                if not 0 <= kind < len(self.kinds):
                    raise GraphError(f"{growth}: there is no kind {kind}; the graph has {len(self.kinds)} kinds")
            check_number(f"{growth} has a count", growth.count, 0, TASK_COUNT_MAX)
            check_number(f"{growth} has a length in ns", growth.child_length_ns, 0, TOTAL_MAX)
            if not -1 <= growth.after < self.task_count:
                raise GraphError(f"{growth}: there is no task {growth.after}; the graph has {self.task_count} tasks")
            if growth.kind in children:
                raise GraphError(f"{growth}: tasks of kind {self.kinds[growth.kind]} already grow in another way")
            children[growth.kind] = growth.child_kind
            kind = growth.child_kind
            while kind in children:
                if kind == growth.kind:
                    raise GraphError(f"{growth}: tasks of kind {self.kinds[kind]} would create others without end")
                kind = children[kind]

    def _check_inputs_exist(self) -> None:
        bad = (self.inputs < 0) | (self.inputs >= self.object_count)
        if bad.any():
            at = int(bad.argmax())
            task = int(np.searchsorted(self.input_start, at, side="right")) - 1
            raise GraphError(
                f"{self.name_of(task)} reads object {self.inputs[at]}, which does not exist "
                f"(the graph has {self.object_count} objects)"
            )

    def _refuse(self, bad: npt.NDArray[np.bool_], what: str, values: npt.NDArray[Any]) -> None:
        if bad.any():
            task = int(bad.argmax())
            raise GraphError(f"{self.name_of(task)} {what} {values[task]}")


# The columns of a graph, by the names that its constructor knows.
_PARTS = tuple(Graph.__annotations__)


def _equal(one: npt.NDArray[Any] | None, other: npt.NDArray[Any] | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def _scaled(what: str, values: Int64s, factor: float) -> Int64s:
    if not 0 <= factor < float("inf"):
        raise GraphError(f"{what} cannot be multiplied by {factor}; a finite number from 0 on is needed")
    if factor == 1.0:
        return values
    with np.errstate(over="ignore"):  # values that become infinite are refused below, without a warning before
        scaled = np.rint(values * factor)
        total = float(scaled.sum())
    if total > TOTAL_MAX:
        raise GraphError(f"{what} multiplied by {factor:g} add up to more than 2**62")
    result: Int64s = scaled.astype(np.int64)
    return result
