import numpy as np
import pytest

from daws.model.graph import Graph
from daws.workloads import parse_workload
from tests.unit.workloads.shape import counts


def pipes(graph: Graph) -> list[tuple[str, int]]:
    """Kind and length of each pipe, found by following it from its first task."""
    found = []
    for head in np.flatnonzero(np.diff(graph.parent_start) == 0).tolist():
        task, length = head, 1
        while len(graph.children_of(task)):
            (child,) = graph.children_of(task).tolist()
            assert graph.kind[child] == graph.kind[task]
            task, length = child, length + 1
        found.append((graph.kinds[int(graph.kind[head])], length))
    return found


def test_ten_volumes():
    graph = parse_workload("fmri:tasks=180").build(1, 1, 0)
    assert counts(graph) == {"image": 120, "header": 60}
    assert pipes(graph) == [("image", 12)] * 10 + [("header", 6)] * 10
    assert graph.external_count == 20


@pytest.mark.parametrize(
    ("tasks", "rest"), [(181, [("image", 1)]), (192, [("image", 12)]), (195, [("image", 12), ("header", 3)])]
)
def test_the_last_volume_gets_what_is_left(tasks: int, rest: list[tuple[str, int]]):
    graph = parse_workload(f"fmri:tasks={tasks}").build(1, 1, 0)
    assert sorted(pipes(graph)) == sorted([("image", 12)] * 10 + [("header", 6)] * 10 + rest)


def test_other_pipes():
    graph = parse_workload("fmri:tasks=60,steps=3,header-steps=0").build(1, 1, 0)
    assert pipes(graph) == [("image", 3)] * 20
