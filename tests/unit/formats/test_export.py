"""WfFormat out: it keeps to the schema, and what is read back is what was written."""

import gzip
import json
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from daws.formats import (
    Execution,
    RecordedMachine,
    Workflow,
    check_target,
    export,
    read_workflow,
    workflow_of,
    write_wfformat,
)
from daws.model.errors import GraphError, UnavailableError, UsageError
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.workloads import KINDS, parse_workload
from tests.unit.formats import schema
from tests.unit.formats.samples import DIAMOND, read_in

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SMALL = {"ensemble": "ensemble:simulations=20", "all-pairs": "all-pairs:files=5"}


def there_and_back(folder: Path, workflow: Workflow, execution: Execution | None = None) -> Workflow:
    path = folder / "out.json"
    write_wfformat(path, workflow, execution)
    schema.check(path.read_bytes())
    return read_workflow(path)


def same(one: Graph, other: Graph) -> bool:
    """Equal but for the numbers of kinds, which go by what comes first."""
    columns = ("length_ns", "priority", "cores", "input_start", "inputs", "output_start", "object_bytes")
    kinds = [[graph.kinds[kind] for kind in graph.kind] for graph in (one, other)]
    return kinds[0] == kinds[1] and all(np.array_equal(getattr(one, key), getattr(other, key)) for key in columns)


@pytest.mark.parametrize("kind", KINDS)
def test_generated_graphs_come_back_as_they_were(tmp_path, kind):
    graph = parse_workload(SMALL.get(kind, f"{kind}:tasks=100")).build(1, 4, 3)
    found = there_and_back(tmp_path, workflow_of(graph, kind))
    assert same(found.graph, graph)
    assert (found.name, found.format, found.notes) == (kind, "WfFormat 1.5", ())


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Small graphs with all that a file can hold."""
    builder = GraphBuilder()
    there = [builder.add_external(draw(st.integers(0, 2**40))) for _ in range(draw(st.integers(0, 3)))]
    for _ in range(draw(st.integers(1, 8))):
        handle = builder.add_task(
            draw(st.sampled_from(["cut", "join", "a b/c"])),
            draw(st.integers(0, 2**52)),
            draw(st.lists(st.sampled_from(there), unique=True)) if there else [],
            draw(st.lists(st.integers(0, 2**40), max_size=3)),
            priority=draw(st.integers(-5, 5)),
            cores=draw(st.integers(1, 99)),
        )
        there += handle.outputs
    return builder.build()


@given(graph=graphs())
def test_any_graph_comes_back_as_it_was(tmp_path_factory, graph):
    found = there_and_back(tmp_path_factory.mktemp("out"), workflow_of(graph, "any"))
    assert same(found.graph, graph)


def test_a_file_comes_back_with_its_names_commands_and_control_edges(tmp_path):
    first = read_in(
        tmp_path,
        DIAMOND.replace('<uses file="left" link="input"', '<argument>-x 1</argument><uses file="left" link="input"'),
    )
    second = there_and_back(tmp_path, first)
    assert second.graph == first.graph
    for column in ("task_ids", "task_names", "file_names", "programs", "arguments", "notes"):
        assert list(getattr(second, column)) == list(getattr(first, column)), column
    assert first.command_of(1) == ("work", "-x", "1")


def test_no_number_is_tried_twice_for_a_file_of_many_writers(monkeypatch):
    tried: list[int] = []

    def counting(first: int) -> Iterator[int]:
        for number in count(first):
            tried.append(number)
            yield number

    monkeypatch.setattr(export, "count", counting)
    found = export._identifiers(["x", "x_3", *["x"] * 100], export.FORBIDDEN_IN_FILES)
    assert found[:5] == ["x", "x_3", "x_2", "x_4", "x_5"]
    assert (len(set(found)), len(tried)) == (102, 101)


def test_names_become_identifiers_that_differ(tmp_path):
    graph = GraphBuilder()
    for _ in range(3):
        graph.add_task("t", 1, [], [1])
    workflow = workflow_of(graph.build(), "n")
    odd = Workflow(
        **{
            **{key: getattr(workflow, key) for key in Workflow.__slots__},
            "task_ids": ["a b", "a_b", "\u00e4:/#"],
            "file_names": ["x y", "x y", "x_y_2"],
        }
    )
    found = there_and_back(tmp_path, odd)
    assert found.task_ids == ["a_b", "a_b_2", "____"]
    assert len(set(found.file_names)) == 3


def test_a_finished_run(tmp_path):
    graph = parse_workload("pipeline:tasks=4,size=2").build(1, 1, 0)
    machines = [RecordedMachine("node-0", 4, 10**9), RecordedMachine("node-1")]
    execution = Execution([0, 10**9, 5, -1], [10**9, 3 * 10**9, 25, -1], [0, 1, 1, -1], machines, WHEN)
    workflow = workflow_of(graph, "run")
    found = there_and_back(tmp_path, workflow, execution)
    assert found.makespan_s == 3.0
    assert found.graph.length_ns.tolist() == [10**9, 2 * 10**9, 20, 0]
    assert found.notes == ("1 task without a runtime taken as 0 s",)  # the last one did not run
    document = schema.check((tmp_path / "out.json").read_bytes())
    told = document.workflow.execution
    assert told is not None
    runs = told.tasks
    assert [run.machines for run in runs] == [["node-0"], ["node-1"], ["node-1"]]
    assert [str(run.executedAt) for run in runs][:2] == ["2026-01-02 03:04:05+00:00", "2026-01-02 03:04:06+00:00"]
    assert told.executedAt == document.createdAt == WHEN


def test_a_run_in_which_nothing_began_has_no_execution(tmp_path):
    workflow = workflow_of(parse_workload("bot:tasks=2").build(1, 1, 0), "bot")
    there_and_back(tmp_path, workflow, Execution([-1, -1], [-1, -1], [-1, -1], [RecordedMachine("m")], WHEN))
    assert schema.check((tmp_path / "out.json").read_bytes()).workflow.execution is None


def test_columns_of_another_graph_are_refused(tmp_path):
    graph = parse_workload("bot:tasks=2").build(1, 1, 0)
    with pytest.raises(GraphError, match="column end_ns must have 2 entries, not 1"):
        write_wfformat(
            tmp_path / "x", workflow_of(graph, "x"), Execution([0, 0], [1], [0, 0], [RecordedMachine("m")], WHEN)
        )
    assert list(tmp_path.iterdir()) == []


def test_packed_by_name_and_the_same_bytes_each_time(tmp_path):
    workflow = workflow_of(parse_workload("bot:tasks=9").build(1, 1, 0), "bot")
    paths = [tmp_path / "a.json", tmp_path / "a.json.gz", tmp_path / "b.json.gz"]
    for path in paths:
        write_wfformat(path, workflow)
    assert gzip.decompress(paths[1].read_bytes()) == paths[0].read_bytes()
    assert paths[1].read_bytes() == paths[2].read_bytes()


def test_links_are_followed_and_pipes_are_written_to(tmp_path):
    workflow = workflow_of(parse_workload("bot:tasks=1").build(1, 1, 0), "bot")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_wfformat(tmp_path / "link", workflow)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").is_file()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_target(pipe)
    write_wfformat(pipe, workflow)
    assert os.read(reading, 1 << 16) == (tmp_path / "real").read_bytes()
    os.close(reading)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_cannot_be_written_is_known_before(tmp_path):
    check_target(tmp_path / "fine.json")
    assert list(tmp_path.iterdir()) == []
    for path, why in (
        (tmp_path / "no" / "a.json", "there is no folder"),
        (tmp_path, "it is a folder"),
        ("", "expected the name of a file"),
        ("/proc/x.json", "cannot be written"),
    ):
        with pytest.raises(UsageError, match=why):
            check_target(path)
    with pytest.raises(UsageError, match="there is no folder"):
        write_wfformat(tmp_path / "no" / "a.json", workflow_of(parse_workload("bot:tasks=1").build(1, 1, 0), "x"))


def test_a_full_disk_is_no_mistake_of_the_caller():
    with pytest.raises(UnavailableError, match="'/dev/full' cannot be written: No space left on device"):
        write_wfformat("/dev/full", workflow_of(parse_workload("bot:tasks=1").build(1, 1, 0), "x"))


@pytest.mark.skipif("WFFORMAT_SCHEMA" not in os.environ, reason="WFFORMAT_SCHEMA names no wfcommons-schema.json")
def test_the_schema_of_wfcommons_agrees(tmp_path):
    """No release of the package `wfcommons` has it in it; github.com/wfcommons/WfFormat does, at the tag v1.5."""
    graph = parse_workload("random:tasks=50").build(1, 1, 0)
    execution = Execution([0] * 50, [1] * 50, [0] * 50, [RecordedMachine("m", 2)], WHEN)
    # Its $schema is an address that means "the latest draft", and is not that of any.
    official = json.loads(Path(os.environ["WFFORMAT_SCHEMA"]).read_text())
    checker = Draft202012Validator(official, format_checker=FormatChecker())
    for run in (None, execution):
        write_wfformat(tmp_path / "x", workflow_of(graph, "x"), run)
        assert [error.message for error in checker.iter_errors(json.loads((tmp_path / "x").read_bytes()))] == []
