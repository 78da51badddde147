import numpy as np
import pytest

from daws.workloads import parse_workload
from daws.workloads.sipht import LENGTH_S
from tests.unit.workloads.shape import counts, mean_s, of_kind, parents

CHECKS = {"Blast_candidate": 1, "Blast_QRNA": 1, "Blast_synteny": 1, "Blast_paralogues": 1}


@pytest.mark.parametrize("tasks", [13, 30, 100, 1000, 10_000])
def test_sub_workflows(tasks: int):
    graph = parse_workload(f"sipht:tasks={tasks}").build(1, 1, 0)
    each = counts(graph)
    patsers = each.pop("Patser")
    genomes = max(1, round(tasks / 30.25))
    assert set(each.values()) == {genomes}
    widths = [patsers + 4 * genomes, 2 * genomes, 4 * genomes, genomes, genomes]
    assert np.bincount(graph.levels()).tolist() == widths
    for task in of_kind(graph, "SRNA"):
        assert parents(graph, task) == {"Findterm": 1, "RNAMotif": 1, "Transterm": 1, "Blast": 1}
    for task in of_kind(graph, "SRNA_annotate"):
        assert parents(graph, task) == {"Patser_concate": 1, "SRNA": 1, **CHECKS}


def test_no_sub_workflow_waits_for_another():
    graph = parse_workload("sipht:tasks=300").build(1, 1, 0)
    owner = np.arange(graph.task_count)
    for _ in range(graph.task_count):
        child = np.repeat(np.arange(graph.task_count), np.diff(graph.parent_start))
        lowest = np.minimum(owner[child], owner[graph.parents])
        before = owner.copy()
        np.minimum.at(owner, child, lowest)
        np.minimum.at(owner, graph.parents, lowest)
        if np.array_equal(before, owner):
            break
    assert len(np.unique(owner)) == 10


def test_partners_are_shared_by_all_and_genomes_by_their_own():
    graph = parse_workload("sipht:tasks=300").build(1, 1, 0)
    partners = {int(graph.inputs_of(task)[0]) for kind in ("Blast", "Blast_QRNA") for task in of_kind(graph, kind)}
    assert len(partners) == 1
    assert graph.object_bytes[partners.pop()] > 250e6
    assert len({int(graph.inputs_of(task)[0]) for task in of_kind(graph, "Patser")}) == 10


def test_means_of_the_table():
    graph = parse_workload("sipht:tasks=100000").build(1, 1, 0)
    for kind, length in LENGTH_S.items():
        assert abs(mean_s(graph, kind) / length.mean - 1) < 0.03
