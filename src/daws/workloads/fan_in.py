"""Fan-in: fan-out reversed; a tree numbered from its leaves, in which each task reads the outputs of `degree` others.

Parallelism shrinks level by level to one, so it shows the long tail of a reduction.
"""

import numpy as np

from daws.model.graph import Graph
from daws.workloads.parameters import Whole
from daws.workloads.workload import COUNT_KEYS, Kind, WorkloadPlan, draw_keys

DEGREE = Whole("degree", 10, "outputs read by each task that is not a leaf", high=1_000_000)


def make(plan: WorkloadPlan) -> Graph:
    count = plan.task_count()
    degree = plan.values.whole("degree")
    one_each = np.arange(count + 1, dtype=np.int64)
    # Task t mirrors number count - 1 - t of the fan-out tree. Read in this order, what the tasks take are
    # the outputs 0, 1, 2, … one after the other; only how many each takes has to be worked out.
    mirrored = one_each[:count][::-1]
    takes = np.clip(count - 1 - mirrored * degree, 0, degree)
    return Graph(
        kinds=["fan-in"],
        kind=np.zeros(count, np.int32),
        length_ns=plan.lengths_ns(count),
        input_start=np.concatenate([[0], np.cumsum(takes)]),
        inputs=one_each[: count - 1],
        output_start=one_each,
        object_bytes=plan.outputs_bytes(count),
    )


KIND = Kind("fan-in", "a tree that ends in a single task; fan-out reversed", (*COUNT_KEYS, DEGREE, *draw_keys()), make)
