import numpy as np

from daws.workloads import parse_workload
from tests.unit.workloads.shape import counts, edges, mean_s, of_kind, parents


def test_as_the_classic_files():
    graph = parse_workload("cybershake:tasks=30").build(1, 1, 0)
    synthesis = {"SeismogramSynthesis": 13, "PeakValCalcOkaya": 13}
    assert counts(graph) == {"ExtractSGT": 2, **synthesis, "ZipSeis": 1, "ZipPSA": 1}
    assert np.bincount(graph.levels()).tolist() == [2, 13, 14, 1]
    assert graph.edge_count == 52
    assert edges(graph) == {
        ("ExtractSGT", "SeismogramSynthesis"),
        ("SeismogramSynthesis", "PeakValCalcOkaya"),
        ("SeismogramSynthesis", "ZipSeis"),
        ("PeakValCalcOkaya", "ZipPSA"),
    }


def test_cuts_are_shared_and_huge_files_are_not():
    graph = parse_workload("cybershake:tasks=1000").build(1, 1, 0)
    extractions = of_kind(graph, "ExtractSGT")
    assert len(extractions) == 8
    readers = [len(graph.children_of(task)) for task in extractions]
    assert sum(readers) == 495
    assert 35 < min(readers) < max(readers) < 90
    huge = np.concatenate([graph.inputs_of(task)[:2] for task in extractions])
    assert len(set(huge.tolist())) == 16
    assert (graph.object_bytes[huge] > 15e9).all()
    # The slip variation of an extraction is one that a synthesis of its own reads too.
    for task in extractions:
        read_by_children = np.concatenate([graph.inputs_of(child) for child in graph.children_of(task).tolist()])
        assert graph.inputs_of(task)[2] in read_by_children


def test_means_of_the_table():
    graph = parse_workload("cybershake:tasks=100000").build(1, 1, 0)
    assert abs(mean_s(graph, "ExtractSGT") / 137.45 - 1) < 0.03
    assert abs(mean_s(graph, "SeismogramSynthesis") / 43.4 - 1) < 0.01
    assert abs(mean_s(graph, "PeakValCalcOkaya") / 1.09 - 1) < 0.01


def test_large_ones_have_several_zips():
    graph = parse_workload("cybershake:tasks=100000").build(1, 1, 0)
    zips = of_kind(graph, "ZipSeis")
    assert len(zips) == len(of_kind(graph, "ZipPSA")) == 10
    assert all(4000 < parents(graph, task)["SeismogramSynthesis"] <= 5200 for task in zips)
    assert counts(parse_workload("cybershake:tasks=10000").build(1, 1, 0))["ZipSeis"] == 1
