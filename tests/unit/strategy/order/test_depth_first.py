"""What was begun is finished before something new begins, from the end of a graph to its beginning."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder, TaskHandle
from daws.strategy.order.depth_first import backward_turns


def in_turn(graph: Graph, read_bytes: list[int] | None = None) -> list[int]:
    read = np.array(read_bytes or [0] * graph.task_count, np.int64)
    return [int(task) for task in np.argsort(backward_turns(graph, graph.planned_rank_ns(), read))]


def test_chains_run_one_after_the_other():
    builder = GraphBuilder()
    firsts = [builder.add_task("make", 1, outputs_bytes=(9,)) for _ in range(3)]
    seconds = [builder.add_task("next", 1, inputs=(one,), outputs_bytes=(9,)) for one in firsts]
    builder.add_task("join", 1, inputs=seconds)
    assert in_turn(builder.build()) == [6, 5, 2, 4, 1, 3, 0]


def test_a_tree_is_taken_apart_subtree_by_subtree():
    builder = GraphBuilder()
    leaves = [builder.add_task("leaf", 1, outputs_bytes=(9,)) for _ in range(4)]
    pairs = [builder.add_task("pair", 1, inputs=leaves[i : i + 2], outputs_bytes=(9,)) for i in (0, 2)]
    builder.add_task("root", 1, inputs=pairs)
    assert in_turn(builder.build()) == [6, 5, 3, 2, 4, 1, 0]


def test_last_tasks_that_were_made_from_the_same_stand_together_wherever_they_were_submitted():
    builder = GraphBuilder()
    roots = [builder.add_task("root", 1, outputs_bytes=(9,)) for _ in range(2)]
    for number in range(4):
        builder.add_task("leaf", 1, inputs=(roots[number % 2],))
    assert in_turn(builder.build()) == [5, 3, 1, 4, 2, 0]


def test_the_longest_way_comes_first():
    builder = GraphBuilder()
    long, short = (builder.add_task("first", length, outputs_bytes=(9,)) for length in (5, 1))
    builder.add_task("last", 1, inputs=(long,))
    builder.add_task("last", 1, inputs=(short,))
    assert in_turn(builder.build()) == [2, 0, 3, 1]


def test_what_reads_least_comes_first():
    builder = GraphBuilder()
    before = [builder.add_task("before", 1, outputs_bytes=(9,)) for _ in range(2)]
    parents = [builder.add_task("parent", 1, inputs=(one,), outputs_bytes=(9,)) for one in before]
    builder.add_task("join", 1, inputs=parents)
    assert in_turn(builder.build(), [0, 0, 9, 90, 0]) == [4, 2, 0, 3, 1]


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=30))
def test_every_task_has_its_turn_after_its_children(parents):
    builder = GraphBuilder()
    tasks: list[TaskHandle] = []
    for number, wanted in enumerate(parents):
        before = sorted({one % number for one in wanted}) if number else []
        tasks.append(builder.add_task("any", 1, inputs=[tasks[one] for one in before], outputs_bytes=(9,)))
    graph = builder.build()
    turns = backward_turns(graph, graph.planned_rank_ns(), np.zeros(len(tasks), np.int64))
    assert sorted(turns.tolist()) == list(range(len(tasks)))
    for task in range(len(tasks)):
        assert all(turns[parent] > turns[task] for parent in graph.parents_of(task))
