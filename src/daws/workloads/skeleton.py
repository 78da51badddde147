"""Application skeletons: bags of tasks as AIMES made them up to study queues, long tasks that each read a file.

Every task takes the same time, or the times are normally distributed within bounds (by default 15 minutes, with a
deviation of 5, between 1 and 30). Each reads a file of its own that comes from outside, and makes a small one.
"""

import numpy as np

from daws.model.columns import Int64s
from daws.model.errors import WorkloadError
from daws.model.graph import TOTAL_MAX, Graph
from daws.workloads.parameters import Choice, Real, Whole
from daws.workloads.workload import Kind, WorkloadPlan

NS_PER_MIN = 60_000_000_000
BYTES_PER_KB = 1000

KEYS = (
    Whole("tasks", 2048, "number of tasks", "tasks"),
    Whole("task-cores", 1, "cores that each task needs", "cores", high=10_000),
    Choice("spread", "constant", "lengths: all the same, or truncated Gaussian", ("constant", "gaussian")),
    Real("length-min", 15.0, "length of a task, or its mean", "min", high=1e6),
    Real("deviation-min", 5.0, "of Gaussian lengths", "min", high=1e6),
    Real("shortest-min", 1.0, "of Gaussian lengths", "min", high=1e6),
    Real("longest-min", 30.0, "of Gaussian lengths", "min", high=1e6),
    Real("input-kb", 1000.0, "file that each task reads; 0 is none", "kB", high=1e9),
    Real("output-kb", 2.0, "file that each task makes; 0 is none", "kB", high=1e9),
)


def make(plan: WorkloadPlan) -> Graph:
    values = plan.values
    count = plan.bounded(values.whole("tasks"))
    made_bytes, read_bytes = (round(values.real(key) * BYTES_PER_KB) for key in ("output-kb", "input-kb"))
    if max(made_bytes, read_bytes) * count > TOTAL_MAX:
        raise WorkloadError(f"workload {plan.kind}: files of {count} tasks cannot be added up in 62 bits")
    return Graph(
        kinds=["skeleton"],
        kind=np.zeros(count, np.int32),
        length_ns=_lengths_ns(plan, count),
        input_start=np.arange(count + 1) * bool(read_bytes),
        inputs=(count * bool(made_bytes) + np.arange(count))[: count * bool(read_bytes)],
        output_start=np.arange(count + 1) * bool(made_bytes),
        object_bytes=np.repeat(np.array([size for size in (made_bytes, read_bytes) if size], np.int64), count),
        cores=np.full(count, values.whole("task-cores"), np.int32),
    )


def _lengths_ns(plan: WorkloadPlan, count: int) -> Int64s:
    values = plan.values
    mean, low, high = (values.real(key) for key in ("length-min", "shortest-min", "longest-min"))
    if values.word("spread") == "constant":
        low = high = mean
    elif not low <= mean <= high:
        raise WorkloadError(f"workload {plan.kind}: length-min={mean:g} lies outside {low:g} and {high:g}")
    if high * NS_PER_MIN * count > TOTAL_MAX:
        raise WorkloadError(f"workload {plan.kind}: lengths of {count} tasks cannot be added up in 62 bits")
    minutes = np.full(count, mean)
    if low < high:
        rng = plan.rng("length")
        minutes = rng.normal(mean, values.real("deviation-min"), count)
        # Those outside are drawn again; the mean is inside, so half of them or more need not be.
        while (outside := (minutes < low) | (minutes > high)).any():
            minutes[outside] = rng.normal(mean, values.real("deviation-min"), int(outside.sum()))
    lengths_ns: Int64s = np.rint(minutes * NS_PER_MIN).astype(np.int64)
    return lengths_ns


KIND = Kind("skeleton", "bag of long tasks, each with a file from outside, as AIMES made them up", KEYS, make)
