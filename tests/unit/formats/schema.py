"""WfFormat 1.5 as WfCommons describes it (github.com/wfcommons/WfFormat, README and schema), in the words of msgspec.

The schema itself is in no release of the `wfcommons` package, which fetches it over the network, so tests cannot count
on it; `test_export.py` takes a copy that WFFORMAT_SCHEMA names. What is here is stricter: it knows no other fields than
those that we write or may write, and where editions of 1.5 differ, it has what all of them allow (ids of tasks).
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

Text = Annotated[str, Meta(min_length=1)]
TaskId = Annotated[str, Meta(min_length=1, pattern=r"^[0-9a-zA-Z_.-]+$")]
FileId = Annotated[str, Meta(min_length=1, pattern=r"^[0-9a-zA-Z_.#:/-]+$")]
Host = Annotated[str, Meta(pattern=r"^[0-9a-zA-Z]([0-9a-zA-Z-]{0,61}[0-9a-zA-Z])?$")]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]


class Strict(Struct, forbid_unknown_fields=True):
    pass


class Task(Strict):
    name: Text
    id: TaskId
    parents: list[TaskId]
    children: list[TaskId]
    inputFiles: list[FileId] = []
    outputFiles: list[FileId] = []


class File(Strict):
    id: FileId
    sizeInBytes: Count


class Command(Strict):
    program: Text
    arguments: list[Text] = []


class Run(Strict):
    id: TaskId
    runtimeInSeconds: float
    executedAt: datetime | None = None
    command: Command | None = None
    coreCount: Annotated[float, Meta(ge=1)] = 1
    memoryInBytes: float = 0
    priority: float = 0
    machines: Annotated[list[Text], Meta(min_length=1)] = []


class Cpu(Strict):
    coreCount: Positive


class Machine(Strict):
    nodeName: Host
    memoryInBytes: Positive = 1
    cpu: Cpu | None = None


class Specification(Strict):
    tasks: Annotated[list[Task], Meta(min_length=1)]
    files: list[File] = []


class Execution(Strict):
    makespanInSeconds: float
    executedAt: datetime
    tasks: Annotated[list[Run], Meta(min_length=1)]
    machines: Annotated[list[Machine], Meta(min_length=1)] | None = None


class Body(Strict):
    specification: Specification
    execution: Execution | None = None


class RuntimeSystem(Strict):
    name: Text
    version: Text


class Document(Strict):
    name: Text
    description: Text
    createdAt: datetime
    schemaVersion: Literal["1.5"]
    runtimeSystem: RuntimeSystem
    workflow: Body


def check(content: bytes) -> Document:
    """The document, if it keeps to the schema and to what the schema cannot say."""
    document = msgspec.json.decode(content, type=Document)
    specification, execution = document.workflow.specification, document.workflow.execution
    tasks = {task.id: task for task in specification.tasks}
    files = {file.id for file in specification.files}
    assert len(tasks) == len(specification.tasks) and len(files) == len(specification.files)
    for task in tasks.values():
        assert all(task.id in tasks[parent].children for parent in task.parents)
        assert all(task.id in tasks[child].parents for child in task.children)
        assert {*task.inputFiles, *task.outputFiles} <= files
    if execution is None:
        return document
    runs = {run.id for run in execution.tasks}
    assert len(runs) == len(execution.tasks) and runs <= set(tasks)
    names = {machine.nodeName for machine in execution.machines or ()}
    assert all(set(run.machines) <= names for run in execution.tasks)
    return document
