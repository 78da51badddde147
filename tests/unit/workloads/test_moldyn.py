from itertools import pairwise

import numpy as np

from daws.workloads import parse_workload
from tests.unit.workloads.shape import counts, edges, of_kind, parents

STAGES = ["setup", "charges", "parameters", "equilibrate", "perturb", "combine", "energy", "report"]


def test_the_run_of_the_papers():
    graph = parse_workload("moldyn:tasks=20497").build(1, 1, 0)
    each = [1, 244, 244, 244, 68 * 244, 11 * 244, 244, 244]
    assert list(counts(graph).items()) == list(zip(STAGES, each, strict=True))
    assert np.bincount(graph.levels()).tolist() == each
    assert abs(graph.total_length_ns / 1e9 / 3600 / 867 - 1) < 0.01


def test_fans_out_and_in():
    graph = parse_workload("moldyn:tasks=1000").build(1, 1, 0)
    assert {(one, other) for one, other in edges(graph) if one != "setup"} == set(pairwise(STAGES[1:]))
    for task in of_kind(graph, "combine"):
        assert parents(graph, task).keys() == {"perturb"}
        assert 5 <= len(graph.parents_of(task)) <= 8
    for energy in of_kind(graph, "energy"):
        # Back from an energy there is a single molecule.
        tasks = {energy}
        for _ in range(3):
            tasks = {parent for task in tasks for parent in graph.parents_of(task).tolist() if parent > 0}
        assert [graph.kinds[graph.kind[task]] for task in tasks] == ["equilibrate"]


def test_small_ones_have_one_molecule_with_fewer_simulations():
    assert counts(parse_workload("moldyn:tasks=8").build(1, 1, 0)) == dict.fromkeys(STAGES, 1)
    assert counts(parse_workload("moldyn:tasks=30").build(1, 1, 0))["perturb"] == 21
