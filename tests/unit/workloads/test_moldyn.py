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
    assert {(one, other) for one, other in edges(graph) if one != "setup"} == set(
        zip(STAGES[1:-1], STAGES[2:], strict=True)
    )
    for task in of_kind(graph, "combine"):
        assert parents(graph, task).keys() == {"perturb"}
        assert 5 <= len(graph.parents_of(task)) <= 8
    for energy in of_kind(graph, "energy"):
        combines = graph.parents_of(energy).tolist()
        simulations = [parent for task in combines for parent in graph.parents_of(task).tolist()]
        molecules = {
            int(graph.parents_of(task).max(where=graph.parents_of(task) > 0, initial=0)) for task in simulations
        }
        assert len(molecules) == 1


def test_small_ones_have_one_molecule_with_fewer_simulations():
    assert counts(parse_workload("moldyn:tasks=8").build(1, 1, 0)) == dict.fromkeys(STAGES, 1)
    assert counts(parse_workload("moldyn:tasks=30").build(1, 1, 0))["perturb"] == 21
