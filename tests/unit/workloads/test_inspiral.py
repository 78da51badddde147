import numpy as np
import pytest

from daws.workloads import parse_workload
from tests.unit.workloads.shape import counts, edges, mean_s, of_kind


@pytest.mark.parametrize(
    ("tasks", "levels"), [(30, [7, 7, 1, 7, 7, 1]), (50, [12, 12, 1, 12, 12, 1]), (1000, [234, 234, 20, 246, 246, 20])]
)
def test_levels_as_in_the_classic_files(tasks: int, levels: list[int]):
    graph = parse_workload(f"inspiral:tasks={tasks}").build(1, 1, 0)
    assert np.bincount(graph.levels()).tolist() == levels


@pytest.mark.parametrize("tasks", [6, 30, 100, 1000, 5000])
def test_groups(tasks: int):
    graph = parse_workload(f"inspiral:tasks={tasks}").build(1, 1, 3)
    assert edges(graph) == {
        ("TmpltBank", "Inspiral"),
        ("Inspiral", "Thinca"),
        ("Thinca", "TrigBank"),
        ("TrigBank", "Inspiral"),
    }
    groups = of_kind(graph, "Thinca")
    assert all(len(graph.parents_of(task)) >= 1 for task in groups)
    # Every search is met: those of the first round by one group or two, those of the second by one.
    first, second = (np.array(of_kind(graph, "Inspiral")) for _ in range(2))
    count = counts(graph)["TmpltBank"]
    assert {len(graph.children_of(task)) for task in first[:count].tolist()} <= {1, 2}
    assert {len(graph.children_of(task)) for task in second[count:].tolist()} == {1}
    assert all(len(graph.children_of(task)) >= 1 for task in groups[: len(groups) // 2])


def test_both_rounds_read_the_same_frames():
    graph = parse_workload("inspiral:tasks=100").build(1, 1, 0)
    banks, searches = of_kind(graph, "TmpltBank"), of_kind(graph, "Inspiral")
    for number, bank in enumerate(banks):
        frames = graph.inputs_of(bank)[:2].tolist()
        for search in (searches[number], searches[len(banks) + number]):
            assert graph.inputs_of(search)[:2].tolist() == frames
    calibration = {int(graph.inputs_of(task)[2]) for task in [*banks, *searches]}
    assert len(calibration) == 1


def test_means_of_the_table():
    graph = parse_workload("inspiral:tasks=100000").build(1, 1, 0)
    for kind, mean in (("TmpltBank", 18.14), ("Inspiral", 460.21), ("Thinca", 5.37), ("TrigBank", 5.11)):
        assert abs(mean_s(graph, kind) / mean - 1) < 0.01
