"""The published recursion, against a transcription of its formulas task by task."""

import numpy as np
import pytest

from daws.bounds import recursion
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.workloads import parse_workload

MB_PER_S = 1e6


def transcribed(graph: Graph, per_core: float, length_s: float, bytes_per_s: float, task_bytes: int) -> float:
    """Section 3 word by word, with its p² pairs of parents."""
    wait_s = (per_core - 1) * length_s / 2
    move_task_s = task_bytes / bytes_per_s
    end_s: dict[int, float] = {}
    for task in np.argsort(graph.levels(), kind="stable").tolist():
        parents = graph.parents_of(task).tolist()
        read = set(graph.inputs_of(task).tolist())
        moves_s = {
            parent: sum(int(graph.object_bytes[one]) for one in graph.outputs_of(parent) if one in read) / bytes_per_s
            for parent in parents
        }
        ready_s = 0.0
        if parents:
            elsewhere_s = max(end_s[u] + moves_s[u] for u in parents)
            with_one_s = min(
                max(end_s[w] + (0.0 if w == u else moves_s[w]) for w in parents) + move_task_s for u in parents
            )
            ready_s = min(elsewhere_s, with_one_s)
        end_s[task] = ready_s + wait_s + int(graph.length_ns[task]) / 1e9
    return max(end_s.values())


@pytest.mark.parametrize(
    "text",
    ["bot:tasks=50", "pipeline:tasks=57", "fan-out:tasks=60,degree=4", "fan-in:tasks=60", "random:tasks=80,layers=6"],
)
def test_it_is_what_was_published(text):
    graph = parse_workload(text).build(1, 2, 3)
    found = recursion(graph, 2, 100 * MB_PER_S, task_bytes=1000)
    expected = transcribed(graph, graph.task_count / 2, graph.total_length_ns / graph.task_count / 1e9, 1e8, 1000)
    assert found.seconds == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(30))
def test_it_is_what_was_published_for_graphs_of_no_particular_shape(seed):
    rng = np.random.default_rng(seed)
    builder = GraphBuilder()
    objects = [builder.add_external(100)]
    for _ in range(40):
        inputs = [int(one) for one in rng.choice(objects, min(len(objects), 3))]
        sizes = [int(rng.integers(5_000_000)) for _ in range(rng.integers(3))]
        objects += builder.add_task("some", int(rng.integers(10**8)), inputs, sizes).outputs
    graph = builder.build()
    found = recursion(graph, 4, 1e8, per_core=7, length_s=0.02, task_bytes=50_000)
    assert found.seconds == pytest.approx(transcribed(graph, 7, 0.02, 1e8, 50_000))


def test_a_bag_with_many_tasks_per_core_is_promised_in_half_the_time_of_its_work():
    graph = parse_workload("bot:per-core=1000,spread=constant").build(4, 2, 0)
    assert recursion(graph, 8, 1e9).seconds == pytest.approx(999 * 0.05 / 2 + 0.05)


def test_each_number_can_be_set():
    graph = parse_workload("pipeline:tasks=2,size=2,spread=constant,output-mb=10").build(1, 1, 0)
    # Data of 10 MB takes 10 s, moving the task to it a fifth of that; both tasks wait for 3 * 0.1 s / 2.
    found = recursion(graph, 1, MB_PER_S, per_core=4, length_s=0.1, task_bytes=2_000_000)
    assert found.seconds == pytest.approx(2 * (0.05 + 0.15) + 2)
    assert found.wait_s == pytest.approx(0.15)
    assert found.throughput(2) == pytest.approx(2 / 2.4)


def test_fewer_tasks_than_cores_wait_for_nothing():
    graph = parse_workload("bot:tasks=3,spread=constant").build(1, 8, 0)
    assert recursion(graph, 8, 1e9).seconds == pytest.approx(0.05)


def test_progress_is_told_up_to_the_end():
    seen: list[int] = []
    recursion(parse_workload("fan-out:tasks=1000").build(1, 1, 0), 2, 1e9, progress=seen.append)
    assert seen == sorted(seen) and seen[-1] == 1000


def test_nonsense_is_refused():
    graph = parse_workload("bot:tasks=3").build(1, 1, 0)
    for cores, link in ((0, 1e9), (1, 0.0)):
        with pytest.raises(UsageError):
            recursion(graph, cores, link)
