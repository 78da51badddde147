"""All-pairs: every file of one set against every file of another; each task reads two large files from outside.

The tasks are independent; what matters is which of the files a node already has.
"""

import numpy as np

from daws.model.graph import Graph
from daws.workloads.parameters import Real, Whole
from daws.workloads.workload import BYTES_PER_MB, Kind, WorkloadPlan, draw_keys

FILES = Whole("files", 500, "files in each of the two sets; there are files * files tasks", "files", high=14_000)
FILE_MB = Real("file-mb", 12.0, "size of each file", "MB", high=1e6)


def make(plan: WorkloadPlan) -> Graph:
    files = plan.values.whole("files")
    count = plan.bounded(files * files)
    outputs = plan.outputs_bytes(count) if plan.values.real("output-mb") > 0 else np.zeros(0, np.int64)
    sizes = np.full(2 * files, round(plan.values.real("file-mb") * BYTES_PER_MB), np.int64)
    inputs = np.empty((files, files, 2), np.int64)
    inputs[:, :, 0] = len(outputs) + np.arange(files)[:, np.newaxis]
    inputs[:, :, 1] = len(outputs) + files + np.arange(files)
    return Graph(
        kinds=["compare"],
        kind=np.zeros(count, np.int32),
        length_ns=plan.lengths_ns(count),
        input_start=np.arange(0, 2 * count + 1, 2),
        inputs=inputs.reshape(-1),
        output_start=np.arange(count + 1) if len(outputs) else np.zeros(count + 1, np.int64),
        object_bytes=np.concatenate([outputs, sizes]),
    )


KIND = Kind(
    "all-pairs",
    "every file of one set compared with every file of another",
    (FILES, FILE_MB, *draw_keys(length_ms=100.0, output_mb=0.0, spread="constant")),
    make,
)
