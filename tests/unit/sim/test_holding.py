"""How much data a run held at once."""

import numpy as np
import pytest

from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.model.task import INLINE_BYTES
from daws.sim.cluster import cluster_of
from daws.sim.holding import Peak, has_large_objects, peak_of
from daws.sim.simulate import Settings, simulate
from daws.strategy import PRESETS, parse_strategy
from daws.workloads import parse_workload

MB = 1_000_000


def two_chains() -> Graph:
    """0 → 1 and 2 → 3, then 4 reads what 1 and 3 made."""
    builder = GraphBuilder()
    ends = []
    for _ in range(2):
        first = builder.add_task("make", 1000, outputs_bytes=(MB,))
        ends.append(builder.add_task("next", 1000, inputs=(first,), outputs_bytes=(2 * MB,)))
    builder.add_task("join", 1000, inputs=ends, outputs_bytes=(5 * MB,))
    return builder.build()


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ([0, 1, 2, 3, 4], Peak(9 * MB, 9 * MB, 3)),  # 2 + 2 are read while 5 are made
        ([0, 2, 1, 3, 4], Peak(9 * MB, 9 * MB, 3)),
    ],
)
def test_an_object_is_held_until_its_last_reader_has_ended(order, expected):
    assert peak_of(two_chains(), order, range(1, 6), [0] * 5) == expected


def test_nodes_count_apart():
    found = peak_of(two_chains(), [0, 2, 1, 3, 4], [1, 2, 3, 4, 5], [0, 1, 0, 1, 2])
    assert found == Peak(9 * MB, 5 * MB, 3)


def test_what_was_made_twice_counts_from_the_first_time():
    found = peak_of(two_chains(), [0, 1, 0, 2, 3, 4], [1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 0, 0])
    assert found == Peak(9 * MB, 9 * MB, 3)


def test_without_its_reader_an_object_stays_to_the_end():
    assert peak_of(two_chains(), [0, 2], [1, 2], [0, 0]) == Peak(2 * MB, 2 * MB, 2)
    assert peak_of(two_chains(), [], [], []) == Peak()


def test_small_objects_and_files_from_outside_do_not_count():
    builder = GraphBuilder()
    file = builder.add_external(MB)
    small = builder.add_task("read", 1000, inputs=(file,), outputs_bytes=(INLINE_BYTES,))
    builder.add_task("end", 1000, inputs=(small,))
    graph = builder.build()
    assert not has_large_objects(graph)
    assert peak_of(graph, [0, 1], [1, 2], [0, 0]) == Peak()


@pytest.mark.parametrize("preset", ["daws", "flds", "adage", "heft", "random"])
def test_a_simulation_says_what_it_held(preset: str):
    graph = parse_workload("pipeline:tasks=60").build(nodes=3, cores=2, seed=1)
    result, kernel = simulate(graph, cluster_of(3, 2), parse_strategy(preset), Settings(seed=1))
    assert sorted(set(kernel.ended[0])) == list(range(graph.task_count))
    assert 0 < result.peak_node_bytes <= result.peak_bytes <= int(graph.object_bytes.sum())
    assert 0 < result.peak_objects <= graph.object_count


def test_nothing_is_noted_where_all_objects_are_small():
    graph = parse_workload("bot:tasks=60").build(nodes=3, cores=2, seed=1)
    result, kernel = simulate(graph, cluster_of(3, 2), parse_strategy("daws"))
    assert result.peak_bytes == result.peak_objects == 0
    assert not kernel.ended[0]


def test_a_peak_is_what_a_walk_through_time_finds():
    graph = parse_workload("random:tasks=80,output-mb=2").build(nodes=3, cores=2, seed=4)
    for preset in PRESETS:
        result, kernel = simulate(graph, cluster_of(3, 2), parse_strategy(preset), Settings(seed=4))
        assert result.peak_bytes == slow_peak(graph, *kernel.ended), preset


def slow_peak(graph: Graph, tasks, ends_ns, nodes) -> int:
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for task, end_ns in zip(tasks, ends_ns, strict=True):
        first.setdefault(task, end_ns)
        last[task] = end_ns
    spans = []
    for object_ in range(graph.external_start):
        size = int(graph.object_bytes[object_])
        readers = [task for task in range(graph.task_count) if object_ in graph.inputs_of(task)]
        born = first[int(graph.producer[object_])]
        if size > INLINE_BYTES:
            spans.append((born, max([born, *(last[task] for task in readers)]), size))
    return max(sum(size for born, gone, size in spans if born <= at <= gone) for at in np.unique(ends_ns))
