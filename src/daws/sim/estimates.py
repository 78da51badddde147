"""What nodes are told about the lengths of tasks before they run: nothing, the truth, or something near it.

The truth is `Graph.length_ns`, which in a workflow file is the recorded runtime. Estimates that are off are drawn by
the seed, each for itself, so that one task's never depends on how many others there are.
"""

import re

import numpy as np

from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.strategy.rng import hash_u64

NONE = "none"
EXACT = "exact"
SALT = 0x5EED_E571
"""Keeps these draws apart from others of the same seed."""

_ERROR = re.compile(r"(?:±|\+-|\+/-)?(?P<percent>\d{1,3}(?:\.\d{1,6})?)%", re.ASCII)


def parse_estimates(text: str) -> float | None:
    """How far off estimates are at most, as a share of the true length; None if there are none."""
    text = text.strip()
    if text == NONE:
        return None
    if text == EXACT:
        return 0.0
    found = _ERROR.fullmatch(text)
    if found is None or float(found["percent"]) > 100:
        shown = repr(text if len(text) <= 60 else text[:57] + "...")
        raise UsageError(f"estimates {shown}: expected '{NONE}', '{EXACT}', or how far off they are, from 0% to 100%")
    return float(found["percent"]) / 100


def with_estimates(graph: Graph, error: float | None, seed: int) -> Graph:
    """The graph with estimates between (1 - error) and (1 + error) times the true lengths, uniformly drawn.

    None leaves the graph as it is, with the estimates that it has or has not.
    """
    if error is None:
        return graph
    estimate_ns = graph.length_ns
    if error:
        drawn = hash_u64(np.arange(graph.task_count), seed ^ SALT)
        units = (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53
        estimate_ns = np.rint(estimate_ns * (1 + error * (2 * units - 1))).astype(np.int64)
    # 0 would say that nothing is known.
    return graph.changed(estimate_ns=np.maximum(estimate_ns, 1))
