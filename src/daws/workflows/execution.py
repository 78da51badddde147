"""A workflow by its own commands, which read and write files in one folder."""

import ast
import json
import os
import shlex
import shutil
from collections.abc import Callable
from typing import Any

from daws.client.cluster import Cluster
from daws.client.future import Future
from daws.formats import Workflow
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.workflows.command import Command
from daws.workflows.submission import Submission


class CommandRun(Submission):
    """Each task runs its recorded command when its parents are done."""

    def __init__(self, cluster: Cluster, workflow: Workflow, folder: str, ignore_needs: bool = False) -> None:
        super().__init__(cluster, workflow.graph, ignore_needs)
        self.workflow = workflow
        self.folder = os.path.abspath(folder)
        self._kinds = [Command(kind, self.folder) for kind in workflow.graph.kinds]

    def _call(self, task: int, inputs: list[Future[Any]]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        graph, names = self.graph, self.workflow.file_names
        reads = tuple([names[one] for one in graph.inputs_of(task) if names[one]])
        writes = tuple([names[one] for one in graph.outputs_of(task) if names[one]])
        argv = argv_of(self.workflow.command_of(task), self.folder)
        return self._kinds[graph.kind[task]], (inputs, argv, reads, writes)

    def result(self) -> Graph:
        """With the times that the commands took and the sizes that their files have."""
        start_ns, end_ns, _ = self.columns()
        sizes = self.graph.object_bytes.copy()
        for number, name in enumerate(self.workflow.file_names):
            path = os.path.join(self.folder, name)
            if name and os.path.isfile(path):
                sizes[number] = os.path.getsize(path)
        return self.graph.changed(length_ns=end_ns - start_ns, object_bytes=sizes)

    def _options(self, task: int, outputs: int) -> dict[str, Any]:
        return super()._options(task, 1)  # what it makes lies in the folder


def argv_of(command: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """What to start. A program with spaces in it is a script for the shell; arguments such as `--size 3`, written as
    one, are two. A program that is not on the path may lie in the folder."""
    program, *given = command
    if len(program.split()) > 1:
        return (shutil.which("bash") or "/bin/sh", "-c", " ".join(command))
    arguments: list[str] = []
    for one in given:
        is_several = one.startswith("-") and any(map(str.isspace, one))
        arguments += _parts(one) if is_several else [one]
    inside = os.path.join(folder, program)
    if shutil.which(program) is None and os.access(inside, os.X_OK):
        program = inside
    return (program, *arguments)


def _parts(argument: str) -> list[str]:
    flag, *value = argument.split(maxsplit=1)
    listed = _as_json(value[0].strip()) if value and value[0].startswith(("{", "[")) else None
    if listed is not None:
        return [flag, listed]
    try:
        return shlex.split(argument)
    except ValueError:  # quotes that do not match
        return argument.split()


def _as_json(value: str) -> str | None:
    """A list or dict in one word, or None if it is none. WfBench is given names of files so: benchmarks of WfCommons
    have them as Python prints them, the program reads JSON."""
    try:
        json.loads(value)
        return value
    except (ValueError, RecursionError):
        pass
    try:
        return json.dumps(ast.literal_eval(value))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def check_commands(workflow: Workflow, folder: str, path: str = "") -> None:
    """Refuse a workflow (of the file `path`) that could not be executed in a folder, before anything runs."""
    what = path or workflow.name
    if not os.path.isdir(folder):
        raise UsageError(f"--folder {folder!r}: there is no such folder")
    missing = [task for task, program in enumerate(workflow.programs) if not program]
    if len(missing) == workflow.graph.task_count:
        raise UsageError(f"{what}: there are no commands in this file; leave out --execute to emulate its tasks")
    if missing:
        raise UsageError(f"{what}: task {workflow.task_ids[missing[0]]!r} has no command; --execute needs one each")
    graph = workflow.graph
    outside = [name for name in workflow.file_names[graph.external_start :] if name]
    absent = [name for name in outside if not os.path.exists(os.path.join(folder, name))]
    if absent:
        others = f" and {len(absent) - 1:,} others" if len(absent) > 1 else ""
        raise UsageError(f"{what}: {absent[0]!r}{others} must be in {folder!r} before the first task runs")
    known = set(workflow.file_names)
    for task, program in enumerate(workflow.programs):
        if any("\0" in word for word in workflow.command_of(task)):
            raise UsageError(f"{what}: the command of task {workflow.task_ids[task]!r} has a NUL character in it")
        argv = argv_of((program,), folder)
        if shutil.which(argv[0]) is None and program not in known:
            raise UsageError(
                f"{what}: {program!r} of task {workflow.task_ids[task]!r} is neither on the path nor in {folder!r}"
            )
