"""Image stacking: many tasks each cut a region out of an image file, and an aggregation adds the cutouts up.

`locality` tasks share each file, in random order. The aggregation is a single task if it has at most `degree` cutouts
to read, as in the original application. A single task that reads a million objects would only measure itself. Beyond
`degree`, cutouts are therefore added up in a tree, whose tasks read up to `degree` outputs each. An aggregation makes
one image of the size of a cutout, and takes as long.
"""

import numpy as np

from daws.model.columns import Int64s
from daws.model.graph import Graph
from daws.workloads.parameters import Real, Whole
from daws.workloads.workload import BYTES_PER_MB, PER_CORE, Kind, WorkloadPlan, draw_keys

CUTOUTS = Whole("tasks", None, "number of cutouts, to which aggregations are added; overrides per-core", "tasks")
LOCALITY = Real("locality", 30.0, "cutouts taken from each file", "tasks", low=1.0, high=1e8)
FILE_MB = Real("file-mb", 2.0, "size of each file", "MB", high=1e6)
DEGREE = Whole("degree", 1000, "outputs that one aggregation reads at most", low=2, high=10_000_000)


def aggregation_starts(cutouts: int, degree: int) -> Int64s:
    """Offsets of what each aggregation reads, counted over all outputs in order; even shares on every level."""
    starts, first, width = [np.zeros(1, np.int64)], 0, cutouts
    while True:
        groups = -(-width // degree)
        starts.append(first + np.arange(1, groups + 1, dtype=np.int64) * width // groups)
        if groups == 1:
            return np.concatenate(starts)
        first, width = first + width, groups


def make(plan: WorkloadPlan) -> Graph:
    cutouts = plan.task_count()
    file_count = max(1, round(cutouts / plan.values.real("locality")))
    reads = aggregation_starts(cutouts, plan.values.whole("degree"))
    aggregations = len(reads) - 1
    count = plan.bounded(cutouts + aggregations)
    file_of = plan.rng("files").permutation(np.arange(cutouts, dtype=np.int64) * file_count // cutouts)
    files = np.full(file_count, round(plan.values.real("file-mb") * BYTES_PER_MB), np.int64)
    return Graph(
        kinds=["cutout", "aggregate"],
        kind=np.repeat(np.array([0, 1], np.int32), [cutouts, aggregations]),
        length_ns=plan.lengths_ns(count),
        input_start=np.concatenate([np.arange(cutouts, dtype=np.int64), cutouts + reads]),
        # Every output but the very last is read exactly once, in the order they are numbered.
        inputs=np.concatenate([count + file_of, np.arange(count - 1, dtype=np.int64)]),
        output_start=np.arange(count + 1),
        object_bytes=np.concatenate([plan.outputs_bytes(count), files]),
    )


KIND = Kind(
    "image-stacking",
    "cutouts from shared image files, then an aggregation of them all",
    (CUTOUTS, PER_CORE, LOCALITY, FILE_MB, DEGREE, *draw_keys(length_ms=158.0, output_mb=0.01, spread="constant")),
    make,
)
