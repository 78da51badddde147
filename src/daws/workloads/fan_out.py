"""Fan-out: one tree, numbered from its root level by level; each task reads the output of its parent.

Parallelism starts at one and grows by `degree` with each level, so it shows how fast work spreads.
"""

import numpy as np

from daws.model.graph import Graph
from daws.workloads.parameters import Whole
from daws.workloads.workload import COUNT_KEYS, Kind, WorkloadPlan, draw_keys

DEGREE = Whole("degree", 10, "children of each task that is not a leaf", high=1_000_000)


def make(plan: WorkloadPlan) -> Graph:
    count = plan.task_count()
    one_each = np.arange(count + 1, dtype=np.int64)
    return Graph(
        kinds=["fan-out"],
        kind=np.zeros(count, np.int32),
        length_ns=plan.lengths_ns(count),
        input_start=np.maximum(one_each - 1, 0),
        inputs=one_each[: count - 1] // plan.values.whole("degree"),
        output_start=one_each,
        object_bytes=plan.outputs_bytes(count),
    )


KIND = Kind(
    "fan-out",
    "a tree from a single root; a task reads its parent's output",
    (*COUNT_KEYS, DEGREE, *draw_keys()),
    make,
)
