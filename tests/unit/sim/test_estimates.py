"""What nodes are told about lengths."""

import numpy as np
import pytest

from daws.model.errors import UsageError
from daws.sim.estimates import parse_estimates, with_estimates
from daws.workloads import parse_workload

GRAPH = parse_workload("bot:tasks=2000").build(1, 1, 0)


@pytest.mark.parametrize(
    ("text", "error"),
    [("exact", None), ("told", 0.0), ("20%", 0.2), ("±20%", 0.2), ("+-2.5%", 0.025), (" 100% ", 1.0), ("0%", 0.0)],
)
def test_how_they_are_written(text, error):
    assert parse_estimates(text) == error


@pytest.mark.parametrize("text", ["", "some", "20", "-20%", "101%", "1e2%", "%", "9" * 100])
def test_what_makes_no_sense_is_refused(text):
    with pytest.raises(UsageError, match="expected 'exact', 'told', or how far off they are, from 0% to 100%"):
        parse_estimates(text)


def test_none_says_what_it_is_called_now():
    with pytest.raises(UsageError, match=r"estimates 'none': planners knew the true lengths .* 'exact' now"):
        parse_estimates("none")


def test_nothing_the_truth_or_near_it():
    assert with_estimates(GRAPH, None, 1) is GRAPH and GRAPH.estimate_ns is None
    exact = with_estimates(GRAPH, 0.0, 1).estimate_ns
    assert exact is not None and np.array_equal(exact, GRAPH.length_ns)
    near = with_estimates(GRAPH, 0.3, 1).estimate_ns
    assert near is not None
    off = near / GRAPH.length_ns - 1
    assert -0.301 < off.min() < -0.28 and 0.28 < off.max() < 0.301 and abs(off.mean()) < 0.02


def test_the_seed_decides():
    def drawn(seed):
        return with_estimates(GRAPH, 0.3, seed)

    assert drawn(1) == drawn(1) != drawn(2)


def test_no_task_is_left_without():
    graph = parse_workload("bot:tasks=5,length-ms=0").build(1, 1, 0)
    told = with_estimates(graph, 1.0, 0).estimate_ns
    assert told is not None and told.tolist() == [1] * 5
