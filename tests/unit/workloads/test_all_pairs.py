import pytest

from daws.workloads import parse_workload


@pytest.mark.parametrize("output", ["0", "1"])
def test_every_pair_once(output: str):
    graph = parse_workload(f"all-pairs:files=4,output-mb={output}").build(3, 2, 0)
    graph.check()
    first = graph.external_start
    pairs = [tuple(graph.inputs_of(task).tolist()) for task in range(16)]
    assert pairs == [(first + a, first + 4 + b) for a in range(4) for b in range(4)]
    assert graph.object_bytes[first:].tolist() == [12_000_000] * 8
    assert graph.external_start == (16 if output == "1" else 0)
    assert graph.edge_count == 0


def test_defaults_are_those_of_the_paper():
    graph = parse_workload("all-pairs").build(100, 2, 0)
    assert (graph.task_count, graph.external_count, graph.output_bytes) == (250_000, 1000, 0)
    assert graph.total_length_ns == 250_000 * 100_000_000
