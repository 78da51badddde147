import numpy as np
import pytest

from daws.model.errors import WorkloadError
from daws.model.graph import Graph
from daws.workloads import parse_workload

MINUTE_NS = 60_000_000_000


def build(text: str, seed: int = 0) -> Graph:
    graph = parse_workload(text).build(1, 1, seed)
    graph.check()
    return graph


def test_every_task_reads_a_file_of_its_own_from_outside():
    graph = build("skeleton:tasks=5")
    assert (graph.task_count, graph.edge_count, graph.external_count) == (5, 0, 5)
    assert [graph.inputs_of(task).tolist() for task in range(5)] == [[5], [6], [7], [8], [9]]
    assert graph.object_bytes.tolist() == [2000] * 5 + [1_000_000] * 5
    assert set(graph.length_ns.tolist()) == {15 * MINUTE_NS}
    assert build("skeleton:tasks=5,task-cores=4").cores.tolist() == [4] * 5


def test_without_files():
    assert build("skeleton:tasks=3,input-kb=0,output-kb=0").object_count == 0
    graph = build("skeleton:tasks=3,output-kb=0")
    assert (graph.object_count, graph.inputs_of(2).tolist()) == (3, [2])
    assert build("skeleton:tasks=3,input-kb=0").object_bytes.tolist() == [2000] * 3


def test_gaussian_lengths_stay_within_bounds():
    graph = build("skeleton:spread=gaussian")
    minutes = graph.length_ns / MINUTE_NS
    assert minutes.min() >= 1 and minutes.max() <= 30
    assert abs(minutes.mean() - 15) < 0.5 and abs(minutes.std() - 5) < 0.5
    assert np.array_equal(graph.length_ns, build("skeleton:spread=gaussian").length_ns)
    assert not np.array_equal(graph.length_ns, build("skeleton:spread=gaussian", 1).length_ns)
    assert set(build("skeleton:tasks=3,spread=gaussian,deviation-min=0").length_ns.tolist()) == {15 * MINUTE_NS}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("skeleton:spread=gaussian,length-min=40", "length-min=40 lies outside 1 and 30"),
        ("skeleton:length-min=1e6,tasks=100000", "cannot be added up"),
        ("skeleton:input-kb=1e9,tasks=100000000", "cannot be added up"),
        ("skeleton:spread=uniform", "is not one of constant, gaussian"),
    ],
)
def test_refusals(text: str, message: str):
    with pytest.raises(WorkloadError, match=message):
        build(text)
