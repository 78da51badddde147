"""What is known of the lengths of tasks before they run: the truth by planners, by nodes too, or something near it.

The truth is `Graph.length_ns`, which in a workflow file is the recorded runtime. Estimates that are off are drawn by
the seed, each for itself, so that one task's never depends on how many others there are.
"""

import re

import numpy as np

from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.strategy.rng import hash_u64

EXACT = "exact"
"""Who plans a graph knows the true lengths; nodes are told nothing and learn them from what they run."""
TOLD = "told"
"""Each task says its true length, so that nodes know it too."""
NONE = "none"
"""What `exact` was called once."""
SALT = 0x5EED_E571
"""Keeps these draws apart from others of the same seed."""

_ERROR = re.compile(r"(?:±|\+-|\+/-)?(?P<percent>\d{1,3}(?:\.\d{1,6})?)%", re.ASCII)


def parse_estimates(text: str) -> float | None:
    """How far off estimates are at most, as a share of the true length; None if tasks have none: planners know the true
    lengths then, and nodes nothing."""
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
