"""A workflow by its own commands, which read and write files in one folder."""

import ast
import json
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from daws.client.cancelled import TaskCancelledError
from daws.client.cluster import Cluster
from daws.client.commands import command
from daws.client.future import Future
from daws.formats import Workflow
from daws.model.columns import Int64s
from daws.model.errors import ClosedError, UsageError
from daws.model.graph import Graph
from daws.workflows.command import RecordedCommand, Words, inputs_of
from daws.workflows.records import CommandRecords, Mode, command_digest
from daws.workflows.submission import GraphSubmission, submission_order


class CommandRun(GraphSubmission):
    """Each task runs its recorded command when its parents are done, unless it is up to date.

    Commands run as those of `daws.command` do. One that takes longer than `timeout` seconds is killed with all that it
    has started, and so is one that runs when the cluster is closed by Ctrl-C. One that fails is tried again as often as
    `retries` says. After a failure, tasks that run go on to their ends, and those that have not begun are cancelled.
    """

    def __init__(
        self,
        cluster: Cluster,
        workflow: Workflow,
        folder: str,
        ignore_needs: bool = False,
        keep_going: bool = False,
        mode: Mode = "rerun",
        timeout: float | None = None,
        retries: int = 0,
    ) -> None:
        super().__init__(cluster, workflow.graph, ignore_needs, keep_going)
        self.plan = CommandPlan(workflow, folder)
        self.workflow = workflow
        self.folder = self.plan.folder
        self.earlier_ns: dict[int, int] = {}  # by task that was up to date: how long it took when it ran
        like = command("true", cwd=self.folder, show=False, timeout=timeout, retries=retries)
        self._retries = like.options.retries
        self._kinds = [RecordedCommand(kind, like.spec, mode) for kind in workflow.graph.kinds]
        self._open: dict[int, Future[Any]] = {}  # by task that has not ended

    def _call(self, task: int, inputs: list[Future[Any]]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._kinds[self.graph.kind[task]], (inputs, *self.plan.of(task))

    def _holds(self, task: int, future: Future[Any]) -> None:
        self._open[task] = future

    def _on_ended(self, future: Future[Any]) -> None:
        task = self.task_of[future.task]
        self._open.pop(task, None)
        if future.exception() is None:
            ran, duration_ns = future.result()
            if not ran:
                self.earlier_ns[task] = duration_ns
        super()._on_ended(future)

    def _stop(self) -> None:
        with suppress(ClosedError):  # it was closed after an interrupt: nothing begins any more
            self.cluster._open().cancel_waiting(list(self._open.values()))

    @property
    def causes(self) -> list[int]:
        """Tasks that failed themselves, in the order of the graph."""
        return [
            task
            for task, error in sorted(self.errors.items())
            if not isinstance(error, TaskCancelledError) and self.errors.keys().isdisjoint(self._parents_of(task))
        ]

    def _parents_of(self, task: int) -> list[int]:
        graph = self.graph
        found: list[int] = graph.parents[graph.parent_start[task] : graph.parent_start[task + 1]].tolist()
        return found

    def result(self) -> Graph:
        """The graph with the times that the commands took and the sizes that their files have."""
        start_ns, end_ns, _ = self.columns()
        return self.graph.changed(length_ns=end_ns - start_ns, object_bytes=self._sizes())

    def measured(self) -> Graph:
        """The graph as `result` gives it, with the lengths of earlier runs for commands that were up to date."""
        graph = self.result()
        lengths = graph.length_ns.copy()
        for task, duration_ns in self.earlier_ns.items():
            lengths[task] = duration_ns
        return graph.changed(length_ns=lengths)

    def _sizes(self) -> Int64s:
        sizes = self.graph.object_bytes.copy()
        for number, name in enumerate(self.workflow.file_names):
            path = os.path.join(self.folder, name)
            if name and os.path.isfile(path):
                sizes[number] = os.path.getsize(path)
        return sizes

    def _options(self, task: int, outputs: int) -> dict[str, Any]:
        options = super()._options(task, 1)  # the files that it makes are in the folder
        return {**options, "retries": self._retries} if self._retries else options


class CommandPlan:
    """The commands of a workflow with their files, and what would have to be run of them."""

    def __init__(self, workflow: Workflow, folder: str) -> None:
        self.workflow = workflow
        self.folder = os.path.abspath(folder)
        written = Counter(name for name in workflow.file_names[: workflow.graph.external_start] if name)
        self._shared = {name for name, writers in written.items() if writers > 1}

    def of(self, task: int) -> tuple[str, Words, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Id, words, files read, files written, and those of them that have other writers."""
        graph, names = self.workflow.graph, self.workflow.file_names
        reads = tuple([names[one] for one in graph.inputs_of(task) if names[one]])
        writes = tuple([names[one] for one in graph.outputs_of(task) if names[one]])
        words = words_of(self.workflow.command_of(task), self.folder)
        shared = tuple([name for name in writes if name in self._shared])
        return self.workflow.task_ids[task], words, reads, writes, shared

    def reasons(self, mode: Mode) -> list[str]:
        """The reason why each task would run; empty for those that are up to date. A task that depends on one that
        runs may turn out to be up to date, if its inputs are made again just as they are."""
        graph, records = self.workflow.graph, CommandRecords(self.folder)
        found = [""] * graph.task_count
        for task in submission_order(graph).tolist():
            parents = graph.parents[graph.parent_start[task] : graph.parent_start[task + 1]].tolist()
            again = [parent for parent in parents if found[parent]]
            name, words, reads, writes, _ = self.of(task)
            known = records.of(name)
            if again and (known is not None or mode == "mtime") and mode != "rerun":
                found[task] = f"unless {self.workflow.task_ids[again[0]]} makes what it made before"
                if mode == "mtime":
                    found[task] = f"{self.workflow.task_ids[again[0]]} runs"
                continue
            digest = command_digest(words, reads, writes)
            try:
                found[task] = records.why(known, digest, inputs_of(words, reads, writes), writes, mode)
            except FileNotFoundError:  # an input that is still to be made
                found[task] = "its inputs are not there yet"
        return found


def words_of(command: tuple[str, ...], folder: str) -> Words:
    """The words to run. A program with spaces in it is a script for the shell; arguments such as `--size 3`, written as
    one, are two. A program that is not on the path may lie in the folder."""
    program, *given = command
    if len(program.split()) > 1:
        return " ".join(command)
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
        words = words_of((program,), folder)
        if not isinstance(words, str) and shutil.which(words[0]) is None and program not in known:
            raise UsageError(
                f"{what}: {program!r} of task {workflow.task_ids[task]!r} is neither on the path nor in {folder!r}"
            )
