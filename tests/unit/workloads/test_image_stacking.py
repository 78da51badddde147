import numpy as np
import pytest

from daws.workloads import parse_workload
from daws.workloads.image_stacking import aggregation_starts


def test_small_counts_have_a_single_aggregation():
    graph = parse_workload("image-stacking:tasks=300").build(1, 1, 0)
    graph.check()
    assert graph.task_count == 301
    assert graph.parents_of(300).tolist() == list(range(300))
    assert graph.kinds[graph.kind[300]] == "aggregate"
    assert graph.external_count == 10
    assert graph.object_bytes[-1] == 2_000_000
    assert set(graph.object_bytes[:301].tolist()) == {10_000}
    assert set(graph.length_ns.tolist()) == {158_000_000}


@pytest.mark.parametrize(("locality", "files"), [("1", 90), ("1.38", 65), ("30", 3), ("1000", 1)])
def test_files_are_shared_evenly(locality: str, files: int):
    graph = parse_workload(f"image-stacking:tasks=90,locality={locality}").build(1, 1, 0)
    assert graph.external_count == files
    readers = np.bincount(graph.inputs[:90] - graph.external_start, minlength=files)
    assert readers.max() - readers.min() <= 1


def test_large_counts_are_aggregated_in_a_tree():
    graph = parse_workload("image-stacking:tasks=1000,degree=10").build(1, 1, 0)
    graph.check()
    assert graph.task_count == 1000 + 100 + 10 + 1
    aggregations = range(1000, graph.task_count)
    assert [len(graph.parents_of(task)) for task in aggregations] == [10] * 111
    assert [len(graph.children_of(task)) for task in range(1110)] == [1] * 1110


@pytest.mark.parametrize(
    ("cutouts", "degree", "expected"),
    [(1, 2, [0, 1]), (2, 2, [0, 2]), (3, 2, [0, 1, 3, 5]), (5, 2, [0, 1, 3, 5, 6, 8, 10])],
)
def test_aggregation_starts(cutouts: int, degree: int, expected: list[int]):
    assert aggregation_starts(cutouts, degree).tolist() == expected
