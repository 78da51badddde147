import numpy as np
import pytest

from daws.workloads import parse_workload
from daws.workloads.epigenomics import BYTES_PER_S, REFERENCE_BYTES
from tests.unit.workloads.shape import counts, mean_s, of_kind, parents

CHUNK_KINDS = ("filterContams", "sol2sanger", "fastq2bfq", "map")


@pytest.mark.parametrize(
    ("tasks", "levels"),
    [
        (24, [1, 5, 5, 5, 5, 1, 1, 1]),
        (100, [1, 24, 24, 24, 24, 1, 1, 1]),
        (997, [7, 245, 245, 245, 245, 7, 1, 1, 1]),
    ],
)
def test_as_the_classic_files(tasks: int, levels: list[int]):
    graph = parse_workload(f"epigenomics:tasks={tasks}").build(1, 1, 0)
    assert np.bincount(graph.levels()).tolist() == levels
    assert graph.edge_count == {24: 27, 100: 122, 997: 1234}[tasks]


def test_chunks_stay_in_their_lane():
    graph = parse_workload("epigenomics:tasks=1000").build(1, 1, 0)
    assert counts(graph)["mapMerge"] == 8
    for number, split in enumerate(of_kind(graph, "fastqSplit")):
        tasks = graph.children_of(split).tolist()
        for kind in CHUNK_KINDS:
            assert [graph.kinds[graph.kind[task]] for task in tasks] == [kind] * 35
            tasks = [child for task in tasks for child in graph.children_of(task).tolist()]
        assert set(tasks) == {of_kind(graph, "mapMerge")[number]}
    assert parents(graph, of_kind(graph, "mapMerge")[-1]) == {"mapMerge": 7}


def test_sizes_follow_from_what_is_read():
    graph = parse_workload("epigenomics:tasks=1000").build(1, 1, 0)
    split = of_kind(graph, "fastqSplit")[0]
    lane = graph.object_bytes[graph.inputs_of(split)].sum()
    assert abs(graph.object_bytes[list(graph.outputs_of(split))].sum() - lane) <= 35
    reference = {int(graph.inputs_of(task)[0]) for task in of_kind(graph, "map")}
    assert len(reference) == 1
    assert graph.object_bytes[reference.pop()] == REFERENCE_BYTES


def test_nearly_all_time_goes_into_mapping():
    graph = parse_workload("epigenomics:tasks=20000").build(1, 1, 0)
    rate, rates = BYTES_PER_S["map"], np.linspace(0.5, 1.5, 10_001) * BYTES_PER_S["map"].mean
    likely = np.exp(-(((rates - rate.mean) / rate.deviation) ** 2) / 2)
    expected = REFERENCE_BYTES * (likely / rates).sum() / likely.sum()
    assert 15_000 < expected < 16_000  # the classic file of 997 tasks has 15,704
    assert abs(mean_s(graph, "map") / expected - 1) < 0.02
    assert graph.length_ns[of_kind(graph, "map")].sum() / graph.total_length_ns > 0.99
