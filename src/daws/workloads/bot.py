"""Bag of tasks: independent tasks that read nothing. The baseline, and the shape of parameter sweeps."""

import numpy as np

from daws.model.graph import Graph
from daws.workloads.workload import COUNT_KEYS, Kind, WorkloadPlan, draw_keys


def make(plan: WorkloadPlan) -> Graph:
    count = plan.task_count()
    # Without output a task has no object at all, which keeps the largest bags small.
    outputs = plan.outputs_bytes(count) if plan.values.real("output-mb") > 0 else np.zeros(0, np.int64)
    return Graph(
        kinds=["bot"],
        kind=np.zeros(count, np.int32),
        length_ns=plan.lengths_ns(count),
        input_start=np.zeros(count + 1, np.int64),
        inputs=np.zeros(0, np.int64),
        output_start=np.arange(count + 1) if len(outputs) else np.zeros(count + 1, np.int64),
        object_bytes=outputs,
    )


KIND = Kind("bot", "bag of independent tasks", (*COUNT_KEYS, *draw_keys(output_mb=0.0)), make)
