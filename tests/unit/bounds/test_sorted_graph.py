"""Graphs as bounds walk through them."""

import numpy as np
import pytest

from daws.bounds import sorted_graph as module
from daws.bounds.sorted_graph import SortedGraph
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.workloads import parse_workload


def edges_of(flow: SortedGraph) -> set[tuple[int, int, int]]:
    """(parent, child, bytes) by the numbers of the graph."""
    child = np.repeat(np.arange(flow.task_count), np.diff(flow.start))
    task = np.arange(flow.task_count) if flow.order is None else flow.order
    size = flow.bytes(0, flow.edge_count)
    return set(zip(task[flow.parent].tolist(), task[child].tolist(), size.tolist(), strict=True))


def expected(graph: Graph, inline_bytes: int = 0) -> set[tuple[int, int, int]]:
    found: dict[tuple[int, int], int] = {}
    for task in range(graph.task_count):
        for one in sorted(set(graph.inputs_of(task).tolist())):
            if one < graph.external_start:
                size = int(graph.object_bytes[one])
                key = int(graph.producer[one]), task
                found[key] = found.get(key, 0) + (size if size > inline_bytes else 0)
    return {(*key, size) for key, size in found.items()}


def mixed() -> Graph:
    """Two objects between the same tasks, one that is read twice, one from outside, and children numbered first."""
    builder = GraphBuilder()
    outside = builder.add_external(5)
    first = builder.add_task("some", 1, [outside], [10, 20])
    second = builder.add_task("some", 1, [first.outputs[0], first.outputs[1], first.outputs[1]], [30])
    builder.add_task("some", 1, [second, first.outputs[0]])
    return builder.build()


def upside_down() -> Graph:
    """Task 0 reads what task 2 makes, which reads what task 1 makes."""
    return Graph(
        kinds=["some"],
        kind=[0, 0, 0],
        length_ns=[1, 2, 3],
        input_start=[0, 1, 1, 2],
        inputs=[2, 1],
        output_start=[0, 1, 2, 3],
        object_bytes=[7, 8, 9],
    )


@pytest.mark.parametrize(
    "graph",
    [
        mixed(),
        upside_down(),
        *(
            parse_workload(text).build(1, 2, 0)
            for text in ("bot:tasks=9", "pipeline:tasks=45", "fan-in:tasks=45", "image-stacking:tasks=40", "random")
        ),
    ],
)
def test_edges_and_steps(graph, monkeypatch):
    monkeypatch.setattr(module, "STEP_TASKS_MAX", 16)
    flow = SortedGraph(graph)
    assert edges_of(flow) == expected(graph)
    steps = flow.steps
    assert [step.low for step in steps[1:]] == [step.high for step in steps[:-1]]
    assert (steps[0].low, steps[-1].high, steps[-1].last) == (0, graph.task_count, flow.edge_count)
    for step in steps:
        assert step.high - step.low <= 16
        assert (flow.parent[step.first : step.last] < step.low).all()


def test_a_level_is_one_step():
    assert len(SortedGraph(parse_workload("fan-out:tasks=1111,degree=10").build(1, 1, 0)).steps) == 4


def test_columns_follow_the_order():
    graph = upside_down()
    assert SortedGraph(graph).by_position(graph.length_ns).tolist() == [2, 3, 1]


def test_small_objects_may_count_for_nothing():
    assert edges_of(SortedGraph(mixed(), 10)) == expected(mixed(), 10) == {(0, 1, 20), (1, 2, 30), (0, 2, 0)}
    graph = parse_workload("fan-out:tasks=100,output-mb=0.004").build(1, 1, 0)
    assert edges_of(SortedGraph(graph, 4096)) == expected(graph, 4096)
