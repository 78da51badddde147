"""Pipeline: many independent pipes; in each, a task reads the output of the one before it.

Tasks are numbered stage by stage, so that the first stage is 0, 1, 2, … and spreads evenly however tasks are dealt out.
"""

import numpy as np

from daws.model.graph import Graph
from daws.workloads.parameters import Whole
from daws.workloads.workload import COUNT_KEYS, Kind, WorkloadPlan, draw_keys

SIZE = Whole("size", 10, "tasks in each pipe; the last pipe gets the rest", high=100_000_000)


def make(plan: WorkloadPlan) -> Graph:
    count = plan.task_count()
    size = plan.values.whole("size")
    pipes = -(-count // size)
    last_size = count - (pipes - 1) * size
    one_each = np.arange(count + 1, dtype=np.int64)
    # Stages are `pipes` wide until the last pipe ends, then one narrower.
    stepped = one_each[pipes:count]
    before = stepped - np.where(stepped < last_size * pipes + pipes - 1, pipes, pipes - 1)
    return Graph(
        kinds=["pipeline"],
        kind=np.zeros(count, np.int32),
        length_ns=plan.lengths_ns(count),
        input_start=np.maximum(one_each - pipes, 0),
        inputs=before,
        output_start=one_each,
        object_bytes=plan.outputs_bytes(count),
    )


KIND = Kind(
    "pipeline", "pipes in which a task reads the output of the one before", (*COUNT_KEYS, SIZE, *draw_keys()), make
)
