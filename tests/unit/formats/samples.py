"""Small workflow files to read, as text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daws.formats import Workflow, read_workflow
from daws.model.errors import WorkflowError

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="2.1" name="test">
"""

DIAMOND = (
    HEAD
    + """  <job id="a" namespace="n" name="split" version="1.0" runtime="1.5">
    <uses file="in" link="input" size="100"/>
    <uses file="left" link="output" size="10"/>
    <uses file="right" link="output" size="20"/>
  </job>
  <job id="b" name="work" runtime="2"><uses file="left" link="input" size="10"/></job>
  <job id="c" name="work" runtime="0,25" cores="4">
    <uses file="right" link="input" size="20"/>
    <uses file="out" link="output" size="7"/>
  </job>
  <job id="d" name="join" runtime="3"><uses file="out" link="input" size="7"/></job>
  <child ref="b"><parent ref="a"/></child>
  <child ref="c"><parent ref="a"/></child>
  <child ref="d"><parent ref="b"/><parent ref="c"/></child>
</adag>
"""
)

Read = Callable[[str | bytes], Workflow]
Refuse = Callable[[str | bytes], str]


def jobs(*names: str, runtime: str = "1") -> str:
    return "".join(f'<job id="{name}" name="{name}" runtime="{runtime}"/>\n' for name in names)


def dax(body: str) -> str:
    return f"{HEAD}{body}</adag>\n"


def old_task(
    name: str, parents: tuple[str, ...] = (), files: tuple[tuple[str, str, object], ...] = (), **more: Any
) -> Any:
    """A task as of 1.3."""
    listed = [{"name": file, "link": link, "size": size} for file, link, size in files]
    return {"name": name, "type": "compute", "parents": list(parents), "files": listed, "runtime": 1.0, **more}


def old(*tasks: Any, version: str = "1.3") -> str:
    return text({"name": "old", "schemaVersion": version, "workflow": {"makespan": 9, "tasks": list(tasks)}})


def new_task(
    name: str, parents: tuple[str, ...] = (), inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()
) -> Any:
    """A task of a specification as of 1.5."""
    return {
        "name": name,
        "id": name,
        "parents": list(parents),
        "children": [],
        "inputFiles": list(inputs),
        "outputFiles": list(outputs),
    }


def new(tasks: list[Any], files: Any = (), runs: Any = None) -> str:
    body: dict[str, Any] = {"specification": {"tasks": tasks, "files": list(files)}}
    if runs is not None:
        body["execution"] = {"makespanInSeconds": 12.5, "executedAt": "2020-01-01", "tasks": runs}
    return text({"name": "new", "schemaVersion": "1.5", "workflow": body})


def text(document: Any) -> str:
    return msgspec.json.encode(document).decode()


def read_in(folder: Path, content: str | bytes, name: str = "w") -> Workflow:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_workflow(path)


def refusal_in(folder: Path, content: str | bytes) -> str:
    """The one line that a senseless file gets, without the folder."""
    with pytest.raises(WorkflowError) as caught:
        read_in(folder, content)
    line = str(caught.value)
    assert "\n" not in line and len(line) < 300 + len(str(folder))
    assert line.startswith(f"{folder}/w")
    return line.removeprefix(f"{folder}/")


def edges(workflow: Workflow) -> set[tuple[str, str]]:
    ids, graph = workflow.task_ids, workflow.graph
    return {(ids[parent], ids[task]) for task in range(graph.task_count) for parent in graph.parents_of(task)}


def inputs(workflow: Workflow, task_id: str) -> list[str]:
    task = list(workflow.task_ids).index(task_id)
    return [workflow.file_names[number] for number in workflow.graph.inputs_of(task)]
