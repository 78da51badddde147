"""The common part of the generators of real workflows: their keys, their draws, and a graph that grows by stages.

A family is a workflow that scientists have, at any size. Its module has the published figures as tables. It says with
`Family` which kinds of tasks there are, how many, and which files they read. Everything is numpy columns, never an
object per task, so that a million tasks take a second or two.

A `Normal` is the distribution of the published generators: a normal distribution that is cut off at half of the mean to
either side. Wide ones are nearly even between half and one and a half of the mean.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daws.model.columns import Int64s, offsets
from daws.model.errors import WorkloadError
from daws.model.graph import TOTAL_MAX, Graph
from daws.workloads.parameters import Choice, Parameter, Real, Whole
from daws.workloads.workload import WorkloadPlan

Floats = npt.NDArray[np.float64]

NS_PER_S = 1_000_000_000
TASKS_DEFAULT = 1000
TASKS_MAX = 10_000_000

FAMILY_KEYS: tuple[Parameter, ...] = (
    Whole(
        "tasks",
        None,
        f"number of tasks, {TASKS_DEFAULT} if unset; overrides per-core",
        "tasks",
        high=TASKS_MAX,
    ),
    Whole("per-core", None, "tasks per core of the cluster", "tasks"),
    Real("time-scale", 1.0, "multiplies the lengths of all tasks", high=1e6),
    Real("data-scale", 1.0, "multiplies the sizes of all files", high=1e6),
    Choice("spread", "fitted", "lengths and sizes: as published, or all the mean", ("fitted", "constant")),
)


@dataclass(frozen=True)
class Normal:
    """A normal distribution, cut off at half of its mean to either side; its mean is therefore kept."""

    mean: float
    deviation: float = 0.0

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        values = rng.normal(self.mean, self.deviation, count)
        while True:
            wrong = np.flatnonzero(np.abs(values - self.mean) > self.mean / 2)
            if not len(wrong):
                return values
            values[wrong] = rng.normal(self.mean, self.deviation, len(wrong))


def totals(groups: Int64s, values: Floats) -> Floats:
    """The sum of the values of each group."""
    return np.bincount(groups, values).astype(np.float64)


class GraphStage(NamedTuple):
    """Tasks of one kind that were added together: their ids, and for each of their outputs the ids of those objects."""

    tasks: Int64s
    outputs: tuple[Int64s, ...]


class Family:
    """A graph that is being built. Stages are added so that a task only reads objects that exist already."""

    def __init__(self, plan: WorkloadPlan) -> None:
        self._plan = plan
        self._task_count = 0
        self._object_count = 0
        self._kinds: dict[str, int] = {}
        self._kind: list[npt.NDArray[np.int32]] = []
        self._seconds: list[Floats] = []
        self._output_counts: list[Int64s] = []
        self._output_bytes: list[Floats] = []
        self._outside_bytes: list[Floats] = []
        self._outside_count = 0
        self._readers: list[Int64s] = []
        self._objects: list[Int64s] = []

    # -- sizes and draws -----------------------------------------------------------------------------------------------

    def count(self, smallest: int) -> int:
        """How many tasks are asked for; refuses fewer than the structure needs."""
        plan, values = self._plan, self._plan.values
        count = values.whole_or_none("tasks")
        if count is None:
            per_core = values.whole_or_none("per-core")
            count = TASKS_DEFAULT if per_core is None else per_core * plan.nodes * plan.cores
        if count > TASKS_MAX:
            raise WorkloadError(f"workload {plan.kind} would have {count} tasks; at most {TASKS_MAX} are possible")
        if count < smallest:
            raise WorkloadError(f"workload {plan.kind} has at least {smallest} tasks, not {count}")
        return count

    def draw(self, stream: str, of: Normal, count: int) -> Floats:
        """`count` values; each stream has random numbers of its own."""
        if self._plan.values.word("spread") == "constant" or not of.deviation:
            return np.full(count, of.mean)
        return of.draw(self.rng(stream), count)

    def rng(self, stream: str) -> np.random.Generator:
        return self._plan.rng(stream)

    def shares(self, stream: str, total: int, parts: int, spread: float) -> Int64s:
        """`total` divided into `parts` of at least one, which differ by up to `spread` of their mean either way."""
        upto = np.cumsum(self.rng(stream).uniform(1 - spread, 1 + spread, parts))
        ends = np.floor(upto * ((total - parts) / upto[-1])).astype(np.int64) + np.arange(1, parts + 1)
        ends[-1] = total
        return np.diff(np.concatenate([[0], ends]))

    # -- tasks and objects ---------------------------------------------------------------------------------------------

    def outside(self, sizes_bytes: Floats | float) -> Int64s:
        """Add files that no task writes. Their ids are negative until the graph is complete."""
        sizes = np.atleast_1d(np.asarray(sizes_bytes, np.float64))
        first = self._outside_count + 1
        self._outside_bytes.append(sizes)
        self._outside_count += len(sizes)
        return -np.arange(first, first + len(sizes), dtype=np.int64)

    def stage(self, kind: str, count: int, length_s: Normal | Floats, *outputs_bytes: Normal | Floats) -> GraphStage:
        """Add `count` tasks that make one object for each of `outputs_bytes`; distributions are drawn here.

        A kind may come back in a later stage, with draws of its own.
        """
        sizes = [
            self.draw(f"{kind}/output/{number}/{len(self._kind)}", one, count) if isinstance(one, Normal) else one
            for number, one in enumerate(outputs_bytes)
        ]
        first = self._object_count
        width = len(sizes)
        flat = np.stack(sizes, axis=1).reshape(-1) if sizes else np.zeros(0)
        tasks = self.split(kind, length_s, np.full(count, width, np.int64), flat).tasks
        numbers = np.arange(count, dtype=np.int64) * width + first
        return GraphStage(tasks, tuple(numbers + number for number in range(width)))

    def split(self, kind: str, length_s: Normal | Floats, counts: Int64s, sizes_bytes: Floats) -> GraphStage:
        """Add tasks that make `counts` objects each; the ids of all objects are in one column, task by task."""
        tasks = np.arange(self._task_count, self._task_count + len(counts), dtype=np.int64)
        objects = np.arange(self._object_count, self._object_count + len(sizes_bytes), dtype=np.int64)
        self._task_count += len(tasks)
        self._object_count += len(objects)
        number = self._kinds.setdefault(kind, len(self._kinds))
        self._kind.append(np.full(len(tasks), number, np.int32))
        if isinstance(length_s, Normal):
            length_s = self.draw(f"{kind}/length/{len(self._kind)}", length_s, len(tasks))
        self._seconds.append(length_s)
        self._output_counts.append(counts)
        self._output_bytes.append(sizes_bytes)
        return GraphStage(tasks, (objects,))

    def read(self, readers: Int64s, *objects: Int64s) -> None:
        """Each reader reads the object at its place in every column; a column of a single object is for all of them."""
        for column in objects:
            self._readers.append(readers)
            self._objects.append(np.broadcast_to(column, readers.shape))

    def graph(self) -> Graph:
        plan = self._plan
        lengths = np.concatenate(self._seconds) * (NS_PER_S * plan.values.real("time-scale"))
        sizes = np.concatenate([*self._output_bytes, *self._outside_bytes]) * plan.values.real("data-scale")
        readers, objects = np.concatenate(self._readers), np.concatenate(self._objects)
        objects = np.where(objects < 0, self._object_count - 1 - objects, objects)
        if max(float(lengths.sum()), float(sizes.sum()), float(sizes[objects].sum())) > TOTAL_MAX:
            raise WorkloadError(
                f"workload {plan.kind}: the lengths or sizes of {self._task_count} tasks cannot be added up in 62 bits"
            )
        order = np.argsort(readers, kind="stable")
        output_start = np.zeros(self._task_count + 1, np.int64)
        np.cumsum(np.concatenate(self._output_counts), out=output_start[1:])
        return Graph(
            kinds=tuple(self._kinds),
            kind=np.concatenate(self._kind),
            length_ns=np.rint(lengths).astype(np.int64),
            input_start=offsets(readers[order], self._task_count),
            inputs=objects[order],
            output_start=output_start,
            object_bytes=np.rint(sizes).astype(np.int64),
        )
