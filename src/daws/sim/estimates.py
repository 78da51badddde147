"""Estimates of the lengths of tasks before they run: true for planners only, true for nodes as well, or off by an
error.

The true length is `Graph.length_ns`, which in a workflow file is the recorded runtime. Estimates with an error are
drawn by the seed, each for itself: the estimate of one task never depends on the number of other tasks.
"""

import re

import numpy as np

from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.strategy.rng import hash_u64

EXACT = "exact"
"""Planners of a graph know the true lengths. Nodes get no estimates and learn the lengths from the tasks that they
run."""
TOLD = "told"
"""Each task says its true length, so that nodes know it too."""
NONE = "none"
"""The old name of `exact`."""
SALT = 0x5EED_E571
"""Keeps these draws apart from others of the same seed."""

_ERROR = re.compile(r"(?:±|\+-|\+/-)?(?P<percent>\d{1,3}(?:\.\d{1,6})?)%", re.ASCII)


def parse_estimates(text: str) -> float | None:
    """The greatest error of an estimate, as a share of the true length. None if tasks have no estimates: then planners
    know the true lengths, and nodes know nothing."""
    text = text.strip()
    if text == EXACT:
        return None
    if text == TOLD:
        return 0.0
    if text == NONE:
        raise UsageError(
            f"estimates '{NONE}': planners knew the true lengths under that name; it is '{EXACT}' now (the default)"
        )
    found = _ERROR.fullmatch(text)
    if found is None or float(found["percent"]) > 100:
        shown = repr(text if len(text) <= 60 else text[:57] + "...")
        raise UsageError(f"estimates {shown}: expected '{EXACT}', '{TOLD}', or how far off they are, from 0% to 100%")
    return float(found["percent"]) / 100


def with_estimates(graph: Graph, error: float | None, seed: int) -> Graph:
    """The graph with estimates between (1 - error) and (1 + error) times the true lengths, uniformly drawn.

    None leaves the graph as it is; without any estimates of its own, planners know its true lengths.
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
