"""Workloads: a kind, the values it was given, and how to make its graph.

The module also has the common part of all kinds: the keys for counts, lengths and sizes, and seeded draws. Each of
lengths, sizes and shape draws from a stream of its own, so that changing `output-mb`, say, leaves the lengths as they
were.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from daws.model.columns import Int64s
from daws.model.errors import WorkloadError
from daws.model.graph import TOTAL_MAX, Graph
from daws.workloads.parameters import TASK_COUNT_MAX, Choice, Parameter, Real, Value, Values, Whole, written

NS_PER_MS = 1_000_000
BYTES_PER_MB = 1_000_000

TASKS = Whole("tasks", None, "number of tasks; overrides per-core", "tasks")
PER_CORE = Whole("per-core", 1000, "tasks per core of the cluster", "tasks")
COUNT_KEYS = (TASKS, PER_CORE)


def draw_keys(length_ms: float = 50.0, output_mb: float = 5.0, spread: str = "uniform") -> tuple[Parameter, ...]:
    """The keys for lengths and output sizes, with a kind's own defaults."""
    return (
        Real("length-ms", length_ms, "mean length of a task", "ms", high=1e9),
        Real("output-mb", output_mb, "mean size of a task's output", "MB", high=1e6),
        Choice("spread", spread, "lengths and sizes: uniform in 0..2*mean, or all the mean", ("uniform", "constant")),
    )


@dataclass(frozen=True)
class WorkloadPlan:
    """The settings from which a kind makes its graph."""

    kind: str
    values: Values
    nodes: int
    cores: int
    seed: int

    def rng(self, stream: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(f"{self.kind}/{stream}".encode())])

    def task_count(self) -> int:
        """The number of tasks: `tasks`, else `per-core` times the cores of the whole cluster."""
        count = self.values.whole_or_none("tasks")
        return self.bounded(count if count is not None else self.values.whole("per-core") * self.nodes * self.cores)

    def bounded(self, count: int) -> int:
        if count > TASK_COUNT_MAX:
            raise WorkloadError(f"workload {self.kind} would have {count} tasks; at most {TASK_COUNT_MAX} are possible")
        return count

    def lengths_ns(self, count: int) -> Int64s:
        return self._draw("length", self.values.real("length-ms") * NS_PER_MS, count)

    def outputs_bytes(self, count: int) -> Int64s:
        return self._draw("output", self.values.real("output-mb") * BYTES_PER_MB, count)

    def _draw(self, stream: str, mean: float, count: int) -> Int64s:
        centre = round(mean)
        if 2 * centre * count > TOTAL_MAX:
            raise WorkloadError(
                f"workload {self.kind}: {count} tasks of this mean {stream} cannot be added up in 62 bits"
            )
        if self.values.word("spread") == "constant":
            return np.full(count, centre, np.int64)
        return self.rng(stream).integers(0, 2 * centre, count, np.int64, endpoint=True)


@dataclass(frozen=True)
class Kind:
    """One kind of workload: its name, its parameters, and how its graph is made."""

    name: str
    help: str
    parameters: tuple[Parameter, ...]
    make: Callable[[WorkloadPlan], Graph]


@dataclass(frozen=True)
class Workload:
    """A kind with its values; `str()` is the text it can be parsed from."""

    kind: Kind
    given: dict[str, Value] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def values(self) -> Values:
        return Values(self.kind.parameters, self.given)

    def build(self, nodes: int, cores: int, seed: int) -> Graph:
        """The graph for a cluster of `nodes` nodes with `cores` cores each; the same for the same seed."""
        if nodes < 1 or cores < 1:
            raise WorkloadError(f"a workload needs at least one node and one core, not {nodes} x {cores}")
        if seed < 0:
            raise WorkloadError(f"a seed must not be negative: {seed}")
        return self.kind.make(WorkloadPlan(self.name, self.values, nodes, cores, seed))

    def describe(self) -> str:
        """One line: the kind, and every value in force."""
        return f"{self.name}: {self.kind.help} ({self.values})"

    def __str__(self) -> str:
        given = ",".join(f"{key}={written(value)}" for key, value in self.given.items())
        return f"{self.name}:{given}" if given else self.name
