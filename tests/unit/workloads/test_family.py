"""What all families have in common: sizes, draws, keys, refusals."""

import numpy as np
import pytest

from daws.model.errors import WorkloadError
from daws.model.graph import Graph
from daws.workloads import KINDS, parse_workload
from daws.workloads.family import FAMILY_KEYS, Family, Normal
from daws.workloads.parameters import Values
from daws.workloads.workload import WorkloadPlan

SMALLEST = {"cybershake": 5, "epigenomics": 8, "inspiral": 6, "montage": 15, "sipht": 13, "moldyn": 8, "fmri": 1}
FAMILIES = list(SMALLEST)


def build(text: str, seed: int = 0, nodes: int = 1, cores: int = 1) -> Graph:
    return parse_workload(text).build(nodes, cores, seed)


def family(**given: str) -> Family:
    return Family(WorkloadPlan("made-up", Values(FAMILY_KEYS, given), 1, 1, 0))


def test_these_are_all_families():
    assert [kind.name for kind in KINDS.values() if set(FAMILY_KEYS) <= set(kind.parameters)] == FAMILIES


@pytest.mark.parametrize("deviation", [0.1, 3, 1000])
def test_normals_stay_within_half_of_their_mean_and_keep_it(deviation: float):
    values = Normal(10, deviation).draw(np.random.default_rng(1), 20_000)
    assert 5 <= values.min() < values.max() <= 15
    assert abs(values.mean() - 10) < 0.1
    # Cut off at both sides the widest is as good as even, which deviates by width / sqrt(12).
    assert abs(values.std() - {0.1: 0.1, 3: 2.38, 1000: 2.89}[deviation]) < 0.05


def test_shares_add_up_and_none_is_empty():
    for total, parts in ((5, 5), (7, 3), (1000, 7), (1, 1)):
        shares = family().shares("x", total, parts, 0.25)
        assert (len(shares), shares.sum(), shares.min() >= 1) == (parts, total, True)
    assert family().shares("x", 70, 7, 0).tolist() == [10] * 7
    wide = family().shares("x", 100_000, 100, 0.25)
    assert 700 < wide.min() < 900 < 1100 < wide.max() < 1300


def test_stages_are_numbered_one_after_the_other_and_files_from_outside_last():
    made = family()
    raw = made.outside(np.array([70.0, 80.0]))
    first = made.split("cut", np.array([1.0, 2.0]), np.array([1, 2]), np.array([10.0, 20.0, 30.0]))
    second = made.stage("join", 1, Normal(3), Normal(5), Normal(6))
    made.read(first.tasks, raw)
    made.read(second.tasks, raw[1:])
    made.read(np.repeat(second.tasks, 3), first.outputs[0])
    graph = made.graph()
    graph.check()
    assert graph.length_ns.tolist() == [10**9, 2 * 10**9, 3 * 10**9]
    assert graph.object_bytes.tolist() == [10, 20, 30, 5, 6, 70, 80]
    assert [graph.inputs_of(task).tolist() for task in range(3)] == [[5], [6], [6, 0, 1, 2]]
    assert [list(graph.outputs_of(task)) for task in range(3)] == [[0], [1, 2], [3, 4]]


def test_a_kind_that_comes_back_has_draws_of_its_own():
    made = family()
    for _ in range(2):
        made.read(made.stage("search", 50, Normal(100, 30), Normal(1000, 300)).tasks, made.outside(1))
    graph = made.graph()
    assert graph.kinds == ("search",)
    assert not np.array_equal(graph.length_ns[:50], graph.length_ns[50:])
    assert not np.array_equal(graph.object_bytes[:50], graph.object_bytes[50:100])


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("tasks", [30, 31, 53, 100, 997, 10_000, 100_000])
def test_there_are_as_many_tasks_as_asked_for_where_the_structure_allows(kind: str, tasks: int):
    graph = build(f"{kind}:tasks={tasks}")
    graph.check()
    missing = {"epigenomics": 3, "inspiral": 1}.get(kind, 0)
    assert tasks - missing <= graph.task_count <= tasks
    assert graph.length_ns.min() > 0


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_smallest(kind: str):
    smallest = SMALLEST[kind]
    for tasks in range(smallest, smallest + 40):
        graph = build(f"{kind}:tasks={tasks}")
        graph.check()
        assert tasks - 3 <= graph.task_count <= tasks
    assert build(f"{kind}:tasks={smallest}").task_count == smallest
    if smallest > 1:
        with pytest.raises(WorkloadError) as caught:
            build(f"{kind}:tasks={smallest - 1}")
        assert str(caught.value) == f"workload {kind} has at least {smallest} tasks, not {smallest - 1}"


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_same_seed_gives_the_same_graph(kind: str):
    assert build(f"{kind}:tasks=200", 5) == build(f"{kind}:tasks=200", 5)
    assert build(f"{kind}:tasks=200", 5) != build(f"{kind}:tasks=200", 6)


@pytest.mark.parametrize("kind", FAMILIES)
def test_counts_are_a_thousand_or_fixed_or_grow_with_the_cluster(kind: str):
    assert 997 <= build(kind, nodes=7).task_count <= 1000
    assert build(f"{kind}:per-core=20", nodes=5, cores=3).task_count == build(f"{kind}:tasks=300").task_count
    assert build(f"{kind}:per-core=20,tasks=100", nodes=5).task_count == build(f"{kind}:tasks=100").task_count


@pytest.mark.parametrize("kind", FAMILIES)
def test_scales_multiply_and_leave_the_rest_alone(kind: str):
    plain, scaled = build(f"{kind}:tasks=300"), build(f"{kind}:tasks=300,time-scale=0.5,data-scale=10")
    assert np.abs(plain.length_ns - 2 * scaled.length_ns).max() <= 2
    assert np.abs(10 * plain.object_bytes - scaled.object_bytes).max() <= 10
    assert np.array_equal(plain.inputs, scaled.inputs)


@pytest.mark.parametrize("kind", FAMILIES)
def test_constant_spread_keeps_shape_and_totals(kind: str):
    drawn, constant = build(f"{kind}:tasks=3000"), build(f"{kind}:tasks=3000,spread=constant")
    assert np.array_equal(drawn.inputs, constant.inputs)
    # Some lengths are bytes over a rate, whose mean is above that of the constant rate.
    assert abs(drawn.total_length_ns / constant.total_length_ns - 1) < (0.12 if kind == "epigenomics" else 0.05)
    for number in range(len(drawn.kinds)):
        if kind in ("inspiral", "moldyn", "fmri"):
            assert len(set(constant.length_ns[constant.kind == number].tolist())) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("montage:tasks=1e8", "out of bounds; it must lie between 1 and 10000000 tasks"),
        ("montage:per-core=1e7", "workload montage would have 20000000 tasks; at most 10000000 are possible"),
        ("sipht:tasks=1000,time-scale=1e6,data-scale=-1", "data-scale='-1' is out of bounds"),
        ("epigenomics:tasks=1e5,time-scale=100", "the lengths or sizes of 99999 tasks cannot be added up in 62 bits"),
        ("cybershake:spread=uniform", "'uniform' is not one of fitted, constant"),
        ("montage:overlap=far", "'far' is not one of neighbours, random"),
    ],
)
def test_refused_in_one_line(text: str, message: str):
    with pytest.raises(WorkloadError) as caught:
        build(text, nodes=2)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
