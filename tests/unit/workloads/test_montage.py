import numpy as np
import pytest

from daws.workloads import parse_workload
from daws.workloads.montage import neighbours, random_pairs
from tests.unit.workloads.shape import counts, mean_s, of_kind, parents


@pytest.mark.parametrize(
    ("tasks", "images", "overlaps"), [(15, 3, 3), (25, 5, 9), (50, 8, 28), (100, 16, 62), (1000, 166, 662)]
)
@pytest.mark.parametrize("overlap", ["neighbours", "random"])
def test_levels_as_in_the_classic_files(tasks: int, images: int, overlaps: int, overlap: str):
    graph = parse_workload(f"montage:tasks={tasks},overlap={overlap}").build(1, 1, 0)
    assert np.bincount(graph.levels()).tolist() == [images, overlaps, 1, 1, images, 1, 1, 1, 1]
    for fit in of_kind(graph, "mDiffFit"):
        assert parents(graph, fit) == {"mProjectPP": 2}
    for image, (project, correct) in enumerate(
        zip(of_kind(graph, "mProjectPP"), of_kind(graph, "mBackground"), strict=True)
    ):
        assert project == image
        assert parents(graph, correct) == {"mProjectPP": 1, "mBgModel": 1}
        assert project in graph.parents_of(correct)
    assert parents(graph, of_kind(graph, "mConcatFit")[0]) == {"mDiffFit": overlaps}
    assert parents(graph, of_kind(graph, "mImgTbl")[0]) == {"mBackground": images}


@pytest.mark.parametrize("pairs", [neighbours, random_pairs])
@pytest.mark.parametrize(("images", "overlaps"), [(2, 1), (5, 10), (9, 20), (16, 62), (166, 662), (5000, 20_000)])
def test_pairs_are_different_pairs_of_different_images(pairs, images: int, overlaps: int):
    one, other = pairs(images, overlaps, np.random.default_rng(3))
    assert len(one) == len(other) == overlaps
    assert ((one >= 0) & (one < other) & (other < images)).all()
    assert len(np.unique(one * images + other)) == overlaps


def test_neighbours_are_near():
    one, other = neighbours(10_000, 40_000, np.random.default_rng(0))
    down, right = np.abs(one // 100 - other // 100), np.abs(one % 100 - other % 100)
    assert np.maximum(down, right).max() == 2
    assert (np.maximum(down, right) == 1).mean() > 0.98


def test_single_tasks_grow_as_in_the_classic_file():
    graph = parse_workload("montage:tasks=1000").build(1, 1, 0)
    classic = {"mConcatFit": 52.96, "mBgModel": 89.12, "mImgTbl": 65.91, "mAdd": 99.53, "mShrink": 22.25}
    for kind, seconds in classic.items():
        assert abs(mean_s(graph, kind) / seconds - 1) < 0.1
    assert counts(graph)["mJPEG"] == 1
    larger = parse_workload("montage:tasks=100000").build(1, 1, 0)
    assert abs(mean_s(larger, "mAdd") / mean_s(graph, "mAdd") - 100) < 1
    assert abs(mean_s(larger, "mDiffFit") / 10.59 - 1) < 0.001
