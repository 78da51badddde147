"""What was begun is finished before something new begins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daws.model.graph import Graph, GraphBuilder, TaskHandle
from daws.strategy.order.depth_first import depth_first_turns


def in_turn(graph: Graph) -> list[int]:
    return [int(task) for task in np.argsort(depth_first_turns(graph))]


def test_chains_run_one_after_the_other():
    builder = GraphBuilder()
    firsts = [builder.add_task("make", 1, outputs_bytes=(9,)) for _ in range(3)]
    seconds = [builder.add_task("next", 1, inputs=(one,), outputs_bytes=(9,)) for one in firsts]
    builder.add_task("join", 1, inputs=seconds)
    assert in_turn(builder.build()) == [0, 3, 1, 4, 2, 5, 6]


def test_a_tree_is_added_up_as_soon_as_two_neighbours_are_there():
    builder = GraphBuilder()
    leaves = [builder.add_task("leaf", 1, outputs_bytes=(9,)) for _ in range(4)]
    pairs = [builder.add_task("pair", 1, inputs=leaves[i : i + 2], outputs_bytes=(9,)) for i in (0, 2)]
    builder.add_task("root", 1, inputs=pairs)
    assert in_turn(builder.build()) == [0, 1, 4, 2, 3, 5, 6]


def test_those_that_are_joined_stand_together_wherever_they_were_submitted():
    builder = GraphBuilder()
    leaves = [builder.add_task("leaf", 1, outputs_bytes=(9,)) for _ in range(4)]
    for first in (0, 1):
        builder.add_task("pair", 1, inputs=(leaves[first], leaves[first + 2]))
    assert in_turn(builder.build()) == [0, 2, 4, 1, 3, 5]


def test_what_makes_least_comes_first():
    builder = GraphBuilder()
    root = builder.add_task("root", 1, outputs_bytes=(9,))
    large = builder.add_task("large", 1, inputs=(root,), outputs_bytes=(9,))
    builder.add_task("look", 1, inputs=(root,))
    builder.add_task("end", 1, inputs=(large,))
    assert in_turn(builder.build()) == [0, 2, 1, 3]


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=30))
def test_every_task_has_its_turn_after_its_parents(parents):
    builder = GraphBuilder()
    tasks: list[TaskHandle] = []
    for number, wanted in enumerate(parents):
        before = sorted({one % number for one in wanted}) if number else []
        tasks.append(builder.add_task("any", 1, inputs=[tasks[one] for one in before], outputs_bytes=(9,)))
    graph = builder.build()
    turns = depth_first_turns(graph)
    assert sorted(turns.tolist()) == list(range(len(tasks)))
    for task in range(len(tasks)):
        assert all(turns[parent] < turns[task] for parent in graph.parents_of(task))
