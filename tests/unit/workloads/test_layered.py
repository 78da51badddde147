import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.model.errors import WorkloadError
from daws.workloads import parse_workload


@given(st.integers(1, 60), st.integers(0, 200), st.integers(1, 6), st.integers(0, 2**64))
def test_layers_are_levels(layers: int, more: int, degree: int, seed: int):
    tasks = layers + more
    graph = parse_workload(f"random:tasks={tasks},layers={layers},degree={degree}").build(1, 1, seed)
    graph.check()
    levels = graph.levels()
    assert graph.task_count == tasks
    assert np.unique(levels).tolist() == list(range(layers))
    assert (np.diff(levels) >= 0).all()
    inputs = np.diff(graph.parent_start)
    assert (inputs[levels > 0] >= 1).all()
    assert inputs.max() <= 2 * degree - 1
    reader = np.repeat(np.arange(tasks), inputs)
    assert (levels[graph.parents] == levels[reader] - 1).all()


def test_mean_degree_and_width():
    graph = parse_workload("random:layers=20,width=1000,degree=4").build(1, 1, 0)
    assert graph.task_count == 20_000
    assert abs(graph.edge_count / 19_000 - 4) < 0.2
    widths = np.bincount(graph.levels())
    assert 400 < widths.min() < 700 < 1300 < widths.max() < 1600


@pytest.mark.parametrize(
    ("text", "message"),
    [("random:tasks=5,layers=6", "5 tasks do not fill 6 layers"), ("random:tasks=5,width=2", "either tasks or width")],
)
def test_refused(text: str, message: str):
    with pytest.raises(WorkloadError, match=message):
        parse_workload(text).build(1, 1, 0)
