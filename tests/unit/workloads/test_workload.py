import numpy as np
import pytest

from daws.model.errors import WorkloadError
from daws.workloads import parse_workload


def test_text_form_reads_back_and_names_what_was_set():
    workload = parse_workload("fan-out: degree=5, length-ms=2.50")
    assert str(workload) == "fan-out:degree=5,length-ms=2.5"
    assert parse_workload(str(workload)) == workload
    assert workload.name == "fan-out"
    assert str(parse_workload("bot")) == "bot"


def test_describe_shows_every_value_in_force():
    assert parse_workload("bot:per-core=7").describe().endswith("(per-core=7 length-ms=50 output-mb=0 spread=uniform)")
    assert "per-core" not in parse_workload("bot:tasks=7").describe()


def test_counts_grow_with_the_cluster_unless_fixed():
    assert parse_workload("bot:per-core=3").build(4, 2, 0).task_count == 24
    assert parse_workload("bot").build(1, 2, 0).task_count == 2000
    assert parse_workload("bot:tasks=5,per-core=3").build(4, 2, 0).task_count == 5


def test_draws_have_the_mean_and_range_of_table_3():
    graph = parse_workload("fan-out:tasks=20000").build(1, 1, 3)
    assert 0 <= graph.length_ns.min() < 10**6 < 99 * 10**6 < graph.length_ns.max() <= 10**8
    assert abs(graph.length_ns.mean() / 50e6 - 1) < 0.02
    assert 0 <= graph.object_bytes.min() < 10**5 < 99 * 10**5 < graph.object_bytes.max() <= 10**7
    assert abs(graph.object_bytes.mean() / 5e6 - 1) < 0.02
    assert abs(float(np.corrcoef(graph.length_ns, graph.object_bytes)[0, 1])) < 0.03


def test_constant_spread():
    graph = parse_workload("fan-in:tasks=50,spread=constant,length-ms=0.25,output-mb=0.5").build(1, 1, 0)
    assert set(graph.length_ns.tolist()) == {250_000}
    assert set(graph.object_bytes.tolist()) == {500_000}


def test_changing_sizes_leaves_lengths_alone():
    one = parse_workload("random:tasks=100").build(1, 1, 5)
    other = parse_workload("random:tasks=100,output-mb=1").build(1, 1, 5)
    assert np.array_equal(one.length_ns, other.length_ns)
    assert np.array_equal(one.inputs, other.inputs)
    assert not np.array_equal(one.object_bytes, other.object_bytes)


@pytest.mark.parametrize(
    ("text", "nodes", "cores", "seed", "message"),
    [
        ("bot", 0, 1, 0, "at least one node and one core, not 0 x 1"),
        ("bot", 1, -1, 0, "at least one node and one core, not 1 x -1"),
        ("bot", 1, 1, -1, "a seed must not be negative"),
        ("bot:per-core=100000", 100_000, 1, 0, "would have 10000000000 tasks; at most 200000000 are possible"),
        ("bot:tasks=1e8,length-ms=1e9", 1, 1, 0, "100000000 tasks of this mean length cannot be added up"),
        ("random:layers=1e6,width=1e6", 1, 1, 0, "at most 200000000 are possible"),
    ],
)
def test_build_refuses_before_it_allocates(text: str, nodes: int, cores: int, seed: int, message: str):
    with pytest.raises(WorkloadError, match=message):
        parse_workload(text).build(nodes, cores, seed)
