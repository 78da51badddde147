from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.model.context import Label
from daws.model.errors import ContextError, GraphError
from daws.model.graph import NARROW, Graph, Growth
from daws.model.graph_builder import GraphBuilder
from daws.model.task import GUESS_NS


def columns(reads: list[list[int]], sizes: list[int] | None = None, **changed: Any) -> dict[str, Any]:
    """Columns of a graph whose task t makes object t and reads `reads[t]`; more sizes are objects from outside."""
    count = len(reads)
    given: dict[str, Any] = {
        "kinds": ["k"],
        "kind": [0] * count,
        "length_ns": [10] * count,
        "input_start": np.cumsum([0, *map(len, reads)]),
        "inputs": np.array([one for some in reads for one in some], np.int64),
        "output_start": range(count + 1),
        "object_bytes": sizes if sizes is not None else [1] * count,
    }
    return given | changed


@st.composite
def dags(draw: st.DrawFn) -> Graph:
    """Small graphs: shared inputs, several objects between two tasks, objects from outside, shuffled ids."""
    count = draw(st.integers(0, 12))
    place = draw(st.permutations(range(count)))
    made = [draw(st.integers(0, 2)) for _ in range(count)]
    starts = np.cumsum([0, *made]).tolist()
    outside = draw(st.integers(0, 3))
    inputs = []
    for task in range(count):
        earlier = [thing for t in range(count) if place[t] < place[task] for thing in range(starts[t], starts[t + 1])]
        readable = earlier + list(range(starts[-1], starts[-1] + outside))
        inputs.append(draw(st.lists(st.sampled_from(readable), max_size=4)) if readable else [])
    lengths = draw(st.lists(st.integers(0, 100), min_size=count, max_size=count))
    sizes = draw(st.lists(st.integers(0, 100), min_size=starts[-1] + outside, max_size=starts[-1] + outside))
    return Graph(**columns(inputs, sizes, output_start=starts, length_ns=lengths))


def naive_parents(graph: Graph, task: int) -> list[int]:
    makers = {thing: t for t in range(graph.task_count) for thing in graph.outputs_of(task=t)}
    return sorted({makers[thing] for thing in graph.inputs_of(task).tolist() if thing in makers})


@given(dags())
def test_everything_computed_agrees_with_the_naive_way(graph: Graph):
    graph.check()
    tasks = range(graph.task_count)
    parents = [naive_parents(graph, task) for task in tasks]
    children = [[child for child in tasks if task in parents[child]] for task in tasks]
    levels: dict[int, int] = {}
    ranks: dict[int, int] = {}

    def level(task: int) -> int:
        return levels.setdefault(task, max((level(parent) + 1 for parent in parents[task]), default=0))

    def rank(task: int) -> int:
        below = max(map(rank, children[task]), default=0)
        return ranks.setdefault(task, int(graph.length_ns[task]) + below)

    assert [graph.parents_of(task).tolist() for task in tasks] == parents
    assert [graph.children_of(task).tolist() for task in tasks] == children
    assert graph.levels().tolist() == [level(task) for task in tasks]
    assert graph.upward_rank_ns().tolist() == [rank(task) for task in tasks]
    assert graph.critical_path_ns() == max(map(rank, tasks), default=0)
    assert graph.edge_count == sum(map(len, parents))
    read = [int(graph.object_bytes[graph.inputs_of(task)].sum()) for task in tasks]
    assert graph.task_input_bytes.tolist() == read
    assert graph.input_bytes == sum(read)
    assert graph.output_bytes + graph.external_bytes == int(graph.object_bytes.sum())
    assert graph.external_count == int((graph.producer < 0).sum())


@pytest.mark.parametrize("width", [1, NARROW - 1, NARROW, 3 * NARROW])
def test_narrow_and_wide_stretches_join(width: int):
    # A chain, then a layer of `width`, then a chain: the loop and the vectorised way hand over to each other.
    inputs: list[list[int]] = [[]] + [[t] for t in range(9)] + [[9]] * width
    inputs += [list(range(10, 10 + width))] + [[10 + width + t] for t in range(5)]
    graph = Graph(**columns(inputs))
    assert graph.levels().tolist() == [*range(10)] + [10] * width + [*range(11, 17)]
    assert graph.critical_path_ns() == 17 * 10


def test_totals_of_a_graph_with_objects_from_outside():
    graph = Graph(**columns([[2], [0, 2]], [5, 7, 100]))
    assert (graph.task_count, graph.object_count, graph.external_count, graph.external_start) == (2, 3, 1, 2)
    assert (graph.total_length_ns, graph.input_bytes, graph.output_bytes, graph.external_bytes) == (20, 205, 12, 100)
    assert graph.producer.tolist() == [0, 1, -1]
    assert repr(graph) == "<Graph of 2 tasks, 3 inputs, 3 objects>"


def test_wide_tasks_count_once_for_each_core():
    graph = Graph(**columns([[], [], [], []], length_ns=[1, 20, 300, 2**61], cores=[1, 3, 3, 1000]))
    assert graph.total_core_ns == 1 + 60 + 900 + 1000 * 2**61
    assert Graph(**columns([[], []])).total_core_ns == 20
    assert GraphBuilder().build().total_core_ns == 0


@pytest.mark.parametrize(
    ("growth", "message"),
    [
        ([Growth(0, 5, -3, -10)], "there is no kind 5; the graph has 2 kinds"),
        ([Growth(-1, 1, 1, 1)], "there is no kind -1"),
        ([Growth(0, 1, -3, 1)], "has a count of -3"),
        ([Growth(0, 1, 1, -10)], "has a length in ns of -10"),
        ([Growth(0, 1, 1, 1, True, 1)], "there is no task 1; the graph has 1 tasks"),
        ([Growth(0, 1, 1, 1), Growth(0, 1, 2, 1)], "tasks of kind a already grow in another way"),
        ([Growth(0, 0, 1, 1)], "tasks of kind a would create others without end"),
        ([Growth(1, 0, 1, 1), Growth(0, 1, 1, 1)], "tasks of kind a would create others without end"),
    ],
)
def test_senseless_growth_is_refused_in_one_line(growth: list[Growth], message: str):
    with pytest.raises(GraphError, match=rf"^Growth\(kind=.* ?{message}.*$"):
        Graph(**columns([[]], kinds=["a", "b"], growth=growth)).check()


def test_growth_can_be_checked_and_compared():
    grows = Graph(**columns([[]], kinds=["a", "b"], growth=[Growth(0, 1, 3, 10)]))
    grows.check()
    assert grows == Graph(**columns([[]], kinds=["a", "b"], growth=[Growth(0, 1, 3, 10)]))
    assert grows != Graph(**columns([[]], kinds=["a", "b"]))


def test_an_empty_graph_is_a_graph():
    graph = GraphBuilder().build()
    graph.check()
    assert (graph.task_count, graph.edge_count, graph.critical_path_ns(), graph.levels().tolist()) == (0, 0, 0, [])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"length_ns": [1, -5]}, "task 1 (k) has a negative length in ns: -5"),
        ({"cores": [0, 1]}, "task 0 (k) needs at least one core, not 0"),
        ({"kind": [0, 1]}, "task 1 has unknown kind number 1"),
        ({"context": [0, 1]}, "task 1 (k) has unknown context number 1"),
        ({"contexts": [Label("a")]}, "the first of a graph's contexts must be None, which stands for no context"),
        (
            {"contexts": [None, Label("a", 2, 1)]},
            "the graph has a bad context: context label 'a': the range 2..1 is empty",
        ),
        ({"inputs": [7]}, "task 1 (k) reads object 7, which does not exist (the graph has 2 objects)"),
        ({"inputs": [-1]}, "task 1 (k) reads object -1, which does not exist (the graph has 2 objects)"),
        ({"object_bytes": [1, -2]}, "object 1 made by task 1 (k) has a negative size: -2 bytes"),
        ({"object_bytes": [1, 1, -2]}, "object 2 from outside has a negative size: -2 bytes"),
        ({"length_ns": [2**62, 1]}, None),
        ({"length_ns": [2**62, 2**62]}, "the lengths add up to more than 2**62 ns; the longest is that of task 0 (k)"),
        (
            {"object_bytes": [2**62, 2**62]},
            "the sizes add up to more than 2**62 bytes; the largest object is 0",
        ),
    ],
)
def test_check_names_what_is_wrong(changed: dict[str, Any], message: str | None):
    graph = Graph(**columns([[], [0]], **changed))
    if message is None:
        graph.check()
        return
    with pytest.raises(GraphError) as caught:
        graph.check()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "changed",
    [{"length_ns": [1]}, {"input_start": [0, 1, 0]}, {"input_start": [0, 0, 2]}, {"output_start": [0, 1, 9]}],
)
def test_columns_that_do_not_fit_together_are_refused(changed: dict[str, Any]):
    with pytest.raises(GraphError, match="column"):
        Graph(**columns([[], [0]], **changed))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([[0]], "the graph has a cycle of 1 tasks: task 0 (k) -> task 0 (k)"),
        ([[], [0, 2], [1], [2]], "the graph has a cycle of 2 tasks: task 2 (k) -> task 1 (k) -> task 2 (k)"),
    ],
)
def test_a_cycle_is_named(inputs: list[list[int]], message: str):
    with pytest.raises(GraphError) as caught:
        Graph(**columns(inputs)).check()
    assert str(caught.value) == message


@pytest.mark.parametrize("tail", [0, 100])
def test_a_long_cycle_is_shortened_and_what_follows_it_is_not_blamed(tail: int):
    inputs = [[19]] + [[t] for t in range(19)] + [[0]] * tail
    with pytest.raises(GraphError, match=r"a cycle of 20 tasks: (task \d+ \(k\) -> ){5}\.\.\. -> task \d+ \(k\)$"):
        Graph(**columns(inputs)).levels()


def test_equal_by_content_and_not_hashable():
    one, same, other = (Graph(**columns([[], [0]], priority=[0, p])) for p in (0, 0, 1))
    assert one == same
    assert one != other
    assert one != "a graph"
    with pytest.raises(TypeError):
        hash(one)


def test_columns_cannot_be_written():
    graph = Graph(**columns([[], [0]]))
    with pytest.raises(ValueError, match="read-only"):
        graph.children[0] = 1


def test_a_million_tasks_stay_far_below_100_bytes_each():
    count = 100_000
    graph = Graph(
        kinds=["k"],
        kind=np.zeros(count, np.int32),
        length_ns=np.zeros(count, np.int64),
        input_start=np.arange(count + 1),
        inputs=np.full(count, count),
        output_start=np.arange(count + 1),
        object_bytes=np.zeros(count + 1, np.int64),
    )
    assert graph.nbytes / count < 60


# -- builder -------------------------------------------------------------------------------------------------------


def test_builder_makes_the_graph_it_was_told():
    builder = GraphBuilder()
    file = builder.add_external(100)
    first = builder.add_task("read", 5, [file], [10, 20])
    second = builder.add_task("join", 7, [first], [0], context=Label("gpu"), priority=-3, cores=4)
    builder.add_task("read", 9, [first.outputs[1], second, file])
    graph = builder.build()
    graph.check()
    assert graph.kinds == ("read", "join")
    assert graph.kind.tolist() == [0, 1, 0]
    assert graph.contexts == (None, Label("gpu"))
    assert graph.context.tolist() == [0, 1, 0]
    assert graph.priority.tolist() == [0, -3, 0]
    assert graph.cores.tolist() == [1, 4, 1]
    assert graph.object_bytes.tolist() == [10, 20, 0, 100]
    assert [graph.inputs_of(task).tolist() for task in range(3)] == [[3], [0, 1], [1, 2, 3]]
    assert [graph.children_of(task).tolist() for task in range(3)] == [[1, 2], [2], []]
    assert builder.object_id(file) == 3


def test_a_builder_grows_after_build():
    builder = GraphBuilder()
    file = builder.add_external(8)
    first = builder.add_task("a", 1, [file], [1])
    before = builder.build()
    second = builder.add_task("a", 1, [first, file], [2])
    after = builder.build()
    after.check()
    assert (before.task_count, after.task_count) == (1, 2)
    assert (first.id, second.id) == (0, 1)
    assert before.object_bytes.tolist() == [1, 8]
    assert after.object_bytes.tolist() == [1, 2, 8]
    assert after.inputs.tolist() == [2, 0, 2]


@pytest.mark.parametrize(
    "arguments",
    [
        {"length_ns": -1},
        {"length_ns": 1.5},
        {"length_ns": True},
        {"estimate_ns": -1},
        {"memory_bytes": 2**63},
        {"inputs": [0]},
        {"inputs": [-2]},
        {"outputs_bytes": [3, -1]},
        {"cores": 0},
        {"cores": 40_000},
        {"priority": 2**31},
    ],
)
def test_builder_refuses_and_stays_as_it_was(arguments: dict[str, Any]):
    builder = GraphBuilder()
    builder.add_external(1)
    empty = builder.build()
    with pytest.raises(GraphError, match=r"^task 0 \(a\) "):
        builder.add_task("a", **{"length_ns": 1, **arguments})
    assert builder.build() == empty


def test_builder_refuses_bad_contexts_sizes_and_edges_without_an_object():
    builder = GraphBuilder()
    with pytest.raises(ContextError):
        builder.add_task("a", 1, context=Label("a", 3, 1))
    with pytest.raises(GraphError, match="size of -1"):
        builder.add_external(-1)
    bare = builder.add_task("a", 1)
    with pytest.raises(GraphError, match="task 0, which makes no object"):
        builder.add_task("b", 1, [bare])


def test_scaling_multiplies_lengths_and_sizes_and_nothing_else():
    builder = GraphBuilder()
    builder.add_task("a", 10, [builder.add_external(7)], [3], priority=2, cores=4)
    graph = builder.build()
    scaled = graph.scaled(time=0.5, data=3)
    assert (scaled.length_ns.tolist(), scaled.object_bytes.tolist()) == ([5], [9, 21])
    assert (scaled.cores.tolist(), scaled.priority.tolist(), scaled.inputs.tolist()) == ([4], [2], [1])
    assert graph.scaled() is graph


def test_scaling_reaches_what_grows():
    graph = Graph(
        kinds=["a"],
        kind=[0],
        length_ns=[1],
        input_start=[0, 0],
        inputs=[],
        output_start=[0, 0],
        object_bytes=[],
        growth=[Growth(0, 0, 1, 100)],
    )
    assert graph.scaled(time=0.1).growth[0].child_length_ns == 10


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf"), 1e300])
def test_scaling_by_nonsense_is_refused(factor):
    builder = GraphBuilder()
    builder.add_task("a", 10)
    with pytest.raises(GraphError, match="multiplied by"):
        builder.build().scaled(time=factor)


@pytest.mark.parametrize("factor", [1e299, 1e305])
@pytest.mark.filterwarnings("error")
def test_what_becomes_infinite_is_refused_without_a_warning(factor):
    builder = GraphBuilder()
    for _ in range(3):
        builder.add_task("a", 10**9)
    with pytest.raises(GraphError, match="multiplied by"):
        builder.build().scaled(time=factor)


def test_what_nobody_says_costs_nothing():
    bare = Graph(**columns([[], []]))
    assert (bare.estimate_ns, bare.memory_bytes) == (None, None)
    said = Graph(**columns([[], []], estimate_ns=[0, 0], memory_bytes=np.zeros(2, np.int64)))
    assert said == bare and said.nbytes == bare.nbytes and (said.estimate_ns, said.memory_bytes) == (None, None)


def test_estimates_and_memory_survive_copies():
    builder = GraphBuilder()
    first = builder.add_task("a", 10, (), [1], estimate_ns=30)
    builder.add_task("b", 20, [first], memory_bytes=7)
    graph = builder.build()
    assert (graph.estimate_ns.tolist(), graph.memory_bytes.tolist()) == ([30, 0], [0, 7])  # type: ignore[union-attr]
    graph.check()
    assert graph.changed() == graph and graph.changed(estimate_ns=None) != graph
    assert graph.changed(memory_bytes=[0, 8]) != graph
    scaled = graph.scaled(time=2, data=3)
    assert scaled.estimate_ns is not None and scaled.estimate_ns.tolist() == [60, 0]
    assert scaled.memory_bytes is not None and scaled.memory_bytes.tolist() == [0, 7]
    assert graph.nbytes == graph.changed(estimate_ns=None, memory_bytes=None).nbytes + 2 * 2 * 8


@given(dags(), st.data())
def test_planners_go_by_estimates_where_there_are_any(graph: Graph, data: st.DataObject):
    assert graph.planned_rank_ns().tolist() == graph.upward_rank_ns().tolist()
    estimates = data.draw(st.lists(st.integers(0, 3), min_size=graph.task_count, max_size=graph.task_count))
    told = graph.changed(estimate_ns=estimates)
    planned = [estimate or GUESS_NS for estimate in estimates] if any(estimates) else graph.length_ns.tolist()
    assert told.planned_ns.tolist() == planned
    assert told.planned_rank_ns().tolist() == graph.changed(length_ns=planned).upward_rank_ns().tolist()
    assert told.upward_rank_ns().tolist() == graph.upward_rank_ns().tolist()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"estimate_ns": [0, -5]}, "task 1 (k) has a negative estimate in ns: -5"),
        (
            {"estimate_ns": [2**62, 2**62]},
            "the estimates add up to more than 2**62 ns; the longest is for task 0 (k)",
        ),
        ({"memory_bytes": [-1, 0]}, "task 0 (k) needs a negative number of bytes: -1"),
    ],
)
def test_what_cannot_be_said_is_refused(changed, message):
    with pytest.raises(GraphError) as caught:
        Graph(**columns([[], []], **changed)).check()
    assert str(caught.value) == message
