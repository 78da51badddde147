"""Simulation and analysis: any number of simulations, twice, then an analysis of them all, then a last task.

This is the workflow of AIMES (2016), figure 7. The second stage continues the first, the third is one wide task that
reads the output of every simulation of the second, and the fourth reads the output of the third. The length of each
stage was not published, only that all four take 870 s.
"""

import numpy as np

from daws.model.graph import Graph
from daws.workloads.parameters import Real, Whole
from daws.workloads.workload import Kind, WorkloadPlan

NS_PER_S = 1_000_000_000
BYTES_PER_KB = 1000

KEYS = (
    Whole("simulations", 256, "of each of the first two stages", "tasks"),
    Whole("analysis-cores", 16, "of the wide analysis", "cores", high=10_000),
    Real("simulation-s", 300.0, "length of a task of the first two stages", "s", high=1e6),
    Real("analysis-s", 200.0, "length of the wide analysis", "s", high=1e6),
    Real("last-s", 70.0, "length of the last task", "s", high=1e6),
    Real("file-kb", 300.0, "of each file", "kB", high=1e9),
)


def make(plan: WorkloadPlan) -> Graph:
    values = plan.values
    width = values.whole("simulations")
    count = plan.bounded(2 * width + 2)
    first, shared = np.arange(width), count  # the file from outside that all read
    lengths_s = [values.real(key) for key in ("simulation-s", "simulation-s", "analysis-s", "last-s")]
    each = np.array([width, width, 1, 1])
    reads = np.array([1, 2, width + 1, 2])
    second = np.column_stack([first, np.full(width, shared)]).ravel()
    return Graph(
        kinds=["simulate", "continue", "analyse", "last"],
        kind=np.repeat(np.arange(4, dtype=np.int32), each),
        length_ns=np.rint(np.repeat(lengths_s, each) * NS_PER_S).astype(np.int64),
        input_start=np.concatenate([[0], np.cumsum(np.repeat(reads, each))]),
        inputs=np.concatenate(
            [np.full(width, shared), second, width + first, [shared], [2 * width], [shared]],
        ),
        output_start=np.arange(count + 1),
        object_bytes=np.full(count + 1, round(values.real("file-kb") * BYTES_PER_KB), np.int64),
        cores=np.repeat(np.array([1, 1, values.whole("analysis-cores"), 1], np.int32), each),
    )


KIND = Kind("ensemble", "two rounds of simulations, a wide analysis of them all and a last task", KEYS, make)
