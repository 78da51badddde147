"""`daws.Graph`: graphs that people write down."""

import pytest

import daws
from daws.graphs import GraphTask, bytes_of
from daws.model.errors import ContextError, GraphError
from tests.unit.formats.samples import DIAMOND


def diamond() -> daws.Graph:
    graph = daws.Graph("diamond")
    graph.file("in.dat", "1 GB")
    top = graph.task("top", 1, inputs="in.dat", outputs={"left": "10 MB", "right": 5})
    sides = [
        graph.task(f"side-{name}", 2, inputs=[top[name]], output="1 kB", cores=2, kind="side")
        for name in ("left", "right")
    ]
    graph.task("bottom", 0.5, inputs=sides, after=top, memory="2 GiB", priority=3, context="gpu|any", expected=1)
    return graph


def test_tasks_and_files_become_columns():
    graph = diamond().build()
    graph.check()
    assert graph.kinds == ("top", "side", "bottom")
    assert graph.length_ns.tolist() == [10**9, 2 * 10**9, 2 * 10**9, 5 * 10**8]
    assert graph.cores.tolist() == [1, 2, 2, 1] and graph.priority.tolist() == [0, 0, 0, 3]
    assert graph.memory_bytes is not None and graph.memory_bytes.tolist() == [0, 0, 0, 2 * 2**30]
    assert graph.estimate_ns is not None and graph.estimate_ns.tolist() == [0, 0, 0, 10**9]
    assert str(graph.contexts[graph.context[3]]) == "gpu|any"
    assert [graph.parents_of(task).tolist() for task in range(4)] == [[], [0], [0], [0, 1, 2]]
    # What bottom waits for without reading it is the last output of top.
    assert graph.object_bytes.tolist() == [10_000_000, 5, 0, 1000, 1000, 10**9]
    assert graph.task_input_bytes.tolist() == [10**9, 10_000_000, 5, 2000]


def test_names_stand_for_what_they_name():
    graph = daws.Graph()
    graph.file("a", 1)
    graph.task("one", 1, inputs=["a"], outputs={"x": 2, "y": 3})
    graph.task("two", 1, inputs=["one"])
    graph.task("three", 1, inputs=["x", "two"])
    made = graph.build()
    assert made.task_input_bytes.tolist() == [1, 5, 2]
    assert made.parents_of(2).tolist() == [0, 1]
    assert [task.name for task in graph] == ["one", "two", "three"] and graph["two"].number == 1
    assert [one.name for one in graph["one"]] == ["x", "y"]


def test_a_graph_can_grow_after_it_was_looked_at():
    graph = daws.Graph()
    first = graph.task("a", 1)
    assert len(graph) == graph.build().task_count == 1
    graph.task("b", 1, inputs=first)
    assert graph.build().edge_count == 1 and repr(graph) == "<daws.Graph 'graph': 2 tasks, 2.00 s, 0 B>"
    assert graph.build() is graph.build()


def test_what_is_read_twice_is_read_once():
    graph = daws.Graph()
    first = graph.task("a", 1, output=7)
    graph.task("b", 1, inputs=[first, first, "a", first.outputs[0]], after=[first, first])
    assert graph.build().task_input_bytes.tolist() == [0, 7]


def test_an_empty_graph_is_a_graph():
    assert daws.Graph() and len(daws.Graph()) == 0
    assert daws.simulate(daws.Graph()).makespan_s == 0 and daws.bound(daws.Graph()).bound_s == 0


@pytest.mark.filterwarnings("ignore:WfFormat has no place")
def test_files_keep_all_that_the_format_knows(tmp_path):
    graph = diamond()
    graph.task("shell", 1, command=["sh", "-c", "echo 1 > out"], outputs={"out": 2})
    for name in ("graph.json", "graph.json.gz"):
        graph.save(tmp_path / name)
        again = daws.Graph.read(tmp_path / name)
        assert [task.name for task in again] == ["top", "shell", "side-left", "side-right", "bottom"]
        made = again.build()
        assert sorted(made.length_ns.tolist()) == sorted(graph.build().length_ns.tolist())
        assert made.edge_count == graph.build().edge_count and made.external_bytes == 10**9
        assert again.workflow().command_of(1) == ("sh", "-c", "echo 1 > out")
        again.save(tmp_path / "again.json")
        assert daws.Graph.read(tmp_path / "again.json").build() == made


def test_what_the_format_has_no_place_for_is_said(tmp_path):
    with pytest.warns(UserWarning, match="no place for contexts and expected"):
        diamond().save(tmp_path / "graph.json")


def test_recorded_workflows_can_be_read_and_extended(tmp_path):
    (tmp_path / "d.xml").write_text(DIAMOND)
    graph = daws.Graph.read(tmp_path / "d.xml")
    graph.task("more", 1, inputs=list(graph))
    assert daws.simulate(graph, cores=4).tasks == len(graph) == 5
    assert graph.build().parents_of(4).tolist() == [0, 1, 2, 3]


def test_tasks_of_one_name_are_told_apart():
    graph = daws.Graph()
    for name in ("fit", "fit", "fit-1", "fit"):
        graph.task(name, 1)
    assert list(graph.workflow().task_ids) == ["fit", "fit-2", "fit-1", "fit-3"]
    assert graph.build().kinds == ("fit",)


def test_many_waits_are_as_they_were_asked_for():
    graph = daws.Graph()
    tasks: list[GraphTask] = []
    for number in range(50):
        after = [tasks[at] for at in range(max(0, number - 2), number)]
        sizes = {f"{number}.{one}": one for one in range(number % 4)}
        tasks.append(graph.task("t", 1, outputs=sizes, after=after))
    made = graph.build()
    made.check()
    assert [made.parents_of(task).tolist() for task in range(50)] == [
        list(range(max(0, task - 2), task)) for task in range(50)
    ]
    names = graph.workflow().file_names
    assert [(names[one], int(made.object_bytes[one])) for one in made.outputs_of(7)] == [
        *(("7.0", 0), ("7.1", 1), ("7.2", 2), ("", 0)),
    ]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        *((0, 0), (1.6, 2), ("5", 5), ("5 B", 5), ("1 kB", 1000), ("1KB", 1000), ("1.5MB", 1_500_000)),
        *(("2 GiB", 2**31), (" 3 tb ", 3 * 10**12), ("1k", 1000), (".5 MiB", 2**19)),
    ],
)
def test_sizes_are_numbers_or_texts(size, expected):
    assert bytes_of(size, "x") == expected


@pytest.mark.parametrize(
    "size", ["", "MB", "10 parrots", "-1", -1, "1,5 MB", None, True, float("nan"), float("inf"), [], "1e400 B"]
)
def test_other_sizes_are_refused(size):
    with pytest.raises(GraphError, match=r"file 'f': .*size"):
        daws.Graph().file("f", size)


def other() -> object:
    return daws.Graph().task("elsewhere", 1, output=1)


@pytest.mark.parametrize(
    ("described", "said"),
    [
        ({"seconds": -1}, "task 'a': seconds: -1 is not a time"),
        ({"seconds": "2"}, "task 'a': seconds: '2' is not a number of seconds"),
        ({"seconds": float("nan")}, "is not a time"),
        ({"inputs": ["nowhere"]}, "task 'a': there is no file, output or task 'nowhere' (yet)"),
        ({"inputs": ["twice"]}, "several tasks have an output 'twice'; give task['twice'] instead"),
        ({"inputs": [3]}, "input '3' is neither a task"),
        ({"inputs": [other()]}, "belongs to another graph"),
        ({"after": [other()]}, "is not a task of this graph"),
        ({"after": ["first"]}, "is not a task of this graph"),
        ({"output": 1, "outputs": {"a": 1}}, "either output= or outputs="),
        ({"outputs": 3}, "or one size as output="),
        ({"outputs": {"x": "big"}}, "task 'a': output: 'big' is not a size"),
        ({"cores": 0}, "needs cores of 0"),
        ({"memory": "much"}, "task 'a': memory: 'much' is not a size"),
        ({"context": 3}, "context: '3' is not a text"),
        ({"expected": -1}, "expected: -1 is not a time"),
    ],
)
def test_mistakes_are_named_and_change_nothing(described, said):
    graph = daws.Graph()
    for name in ("first", "second"):
        graph.task(name, 1, outputs={"twice": 1})
    with pytest.raises(GraphError) as refused:
        graph.task("a", **described)
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert len(graph) == 2 and graph.build().task_count == 2


def test_other_mistakes_are_named_too():
    graph = daws.Graph()
    task = graph.task("a", 1, outputs={"x": 1})
    with pytest.raises(GraphError, match=r"task 'a' has no output 'y'; its outputs are 'x'"):
        task["y"]
    with pytest.raises(GraphError, match="there is no task 'b'"):
        graph["b"]
    with pytest.raises(GraphError, match="give its name as text"):
        graph.task("", 1)
    with pytest.raises(GraphError, match="give its name as text, then its size"):
        graph.file(3, "a")  # type: ignore[arg-type]
    graph.file("f", 1)
    with pytest.raises(GraphError, match="there is an object of this name"):
        graph.file("f", 1)
    with pytest.raises(ContextError, match="context"):
        graph.task("c", 1, context="a|b>c")
    assert len(graph) == 1
