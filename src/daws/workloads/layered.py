"""Random layered graphs: each task reads the outputs of some random tasks of the layer before its own.

Layers differ in width (by up to three times) and tasks in the number of inputs (1 to 2 * degree - 1), unless a layer
is too narrow for that. No shape in particular, which makes it the workload to test with.
"""

import numpy as np

from daws.model.columns import Int64s, distinct, offsets
from daws.model.errors import WorkloadError
from daws.model.graph import Graph
from daws.workloads.parameters import Whole
from daws.workloads.workload import COUNT_KEYS, Kind, WorkloadPlan, draw_keys

LAYERS = Whole("layers", 10, "layers of tasks", "layers", high=1_000_000)
WIDTH = Whole("width", None, "mean tasks in a layer; instead of tasks and per-core", "tasks")
DEGREE = Whole("degree", 3, "mean inputs of a task", high=10_000)


def layer_starts(plan: WorkloadPlan) -> Int64s:
    """Offsets of the layers in the numbering of tasks; every layer has at least one task."""
    layers, width = plan.values.whole("layers"), plan.values.whole_or_none("width")
    if width is not None and plan.values.whole_or_none("tasks") is not None:
        raise WorkloadError("workload random: give either tasks or width, not both")
    count = plan.task_count() if width is None else plan.bounded(layers * width)
    if count < layers:
        raise WorkloadError(f"workload random: {count} tasks do not fill {layers} layers; set fewer layers")
    upto = np.cumsum(plan.rng("layers").uniform(0.5, 1.5, layers))
    spare = count - layers
    inner = np.floor(upto * (spare / upto[-1])).astype(np.int64) + np.arange(1, layers + 1)
    inner[-1] = count
    return np.concatenate([[0], inner])


def make(plan: WorkloadPlan) -> Graph:
    starts = layer_starts(plan)
    count, widths = int(starts[-1]), np.diff(starts)
    rng, degree = plan.rng("edges"), plan.values.whole("degree")
    # Everything from the second layer on reads; `behind` is the layer each of those tasks reads from.
    behind = np.repeat(np.arange(len(widths) - 1), widths[1:])
    wanted = np.minimum(rng.integers(1, 2 * degree, len(behind)), widths[behind])
    reader = np.repeat(np.arange(starts[1], count), wanted)
    layer = np.repeat(behind, wanted)
    read = starts[layer] + rng.integers(0, widths[layer])
    # The same output may have been drawn twice for a task; it is read once.
    edges = distinct(reader * count + read)
    return Graph(
        kinds=["random"],
        kind=np.zeros(count, np.int32),
        length_ns=plan.lengths_ns(count),
        input_start=offsets(edges // count, count),
        inputs=edges % count,
        output_start=np.arange(count + 1),
        object_bytes=plan.outputs_bytes(count),
    )


KIND = Kind("random", "random graph in layers", (*COUNT_KEYS, LAYERS, WIDTH, DEGREE, *draw_keys()), make)
