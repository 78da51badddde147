"""Workflows and finished runs as WfFormat 1.5.

WfFormat keeps runtimes in its execution part, so that part is there without a run too; then it tells the lengths of the
tasks and a makespan of 0. It is left out of a run in which nothing began, as it may not be empty. Contexts and growth
have no place in the format and are left out.
"""

import gzip
import os
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from daws import __version__
from daws.formats.execution import Execution, RecordedMachine
from daws.formats.workflow import Workflow
from daws.model.columns import Column
from daws.model.errors import UnavailableError, UsageError

NS_PER_S = 1_000_000_000
NS_PER_US = 1000
SCHEMA_VERSION = "1.5"
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
# What identifiers may be made of; everything else becomes an underscore. Those of tasks are good for every edition of
# the schema of 1.5. The first one refuses paths of files, which many published workflows have: without them none of
# those could be carried out once it was exported.
FORBIDDEN_IN_TASKS = re.compile(r"[^0-9a-zA-Z_.-]")
FORBIDDEN_IN_FILES = re.compile(r"[^0-9a-zA-Z_.#:/-]")


class _ExportedTask(Struct):
    name: str
    id: str
    parents: list[str]
    children: list[str]
    inputFiles: list[str]
    outputFiles: list[str]


class _ExportedFile(Struct):
    id: str
    sizeInBytes: int


class _ExportedCommand(Struct, omit_defaults=True):
    program: str
    arguments: list[str] = []


class _ExportedRun(Struct, omit_defaults=True):
    id: str
    runtimeInSeconds: float
    executedAt: str = ""
    command: _ExportedCommand | None = None
    coreCount: int = 1
    memoryInBytes: int = 0
    priority: int = 0
    machines: tuple[str, ...] = ()


class _Cpu(Struct):
    coreCount: int


class _Machine(Struct, omit_defaults=True):
    nodeName: str
    memoryInBytes: int = 0
    cpu: _Cpu | None = None


def write_wfformat(path: str | Path, workflow: Workflow, execution: Execution | None = None) -> None:
    """Write a file in one go: it is complete, or it is not there. Names that end in .gz are packed.

    UsageError if there is no such place, UnavailableError if it could not be written to the end.
    """
    if execution is not None:
        execution.check(workflow.graph.task_count)
    check_target(path)
    target = Path(os.path.realpath(path))
    partial = _partial(target)
    try:
        try:
            with open(partial, "wb") as file:
                if target.suffix == ".gz":
                    # No name and no time inside: the same workflow gives the same bytes.
                    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                        packed.writelines(_pieces(workflow, execution))
                else:
                    file.writelines(_pieces(workflow, execution))
            if partial != target:
                os.replace(partial, target)
        finally:
            if partial != target:
                partial.unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise UnavailableError(f"{os.fspath(path)!r} cannot be written: {why}", retry=True) from error


def check_target(path: str | Path) -> None:
    """Refuse a file that could not be written later; leaves all files as they are."""
    if not Path(path).name:
        raise _unwritable(path, "expected the name of a file")
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise _unwritable(path, "it is a folder")
        if not target.parent.is_dir():
            raise _unwritable(path, f"there is no folder {str(target.parent)!r}")
        partial = _partial(target)
        if partial != target:
            with open(partial, "xb"):
                partial.unlink()
    except (OSError, ValueError) as error:
        raise _unwritable(path, getattr(error, "strerror", None) or str(error)) from error


def _partial(target: Path) -> Path:
    """Where a file is written before it gets its name; pipes and devices are written to as they are."""
    if target.exists() and not target.is_file():
        return target
    return target.with_name(f".daws-{os.getpid()}.partial")


def _unwritable(path: str | Path, why: str) -> UsageError:
    return UsageError(f"{os.fspath(path)!r} cannot be written: {why}")


def _pieces(workflow: Workflow, execution: Execution | None) -> Iterator[bytes]:
    """The document, a line for each task, so that it need not be in memory as a whole."""
    encode = msgspec.json.Encoder().encode
    started_at = NEVER if execution is None else execution.started_at
    ids = _identifiers(workflow.task_ids, FORBIDDEN_IN_TASKS)
    makespan_s = 0.0
    if execution is not None:
        makespan_s = int(np.max(np.asarray(execution.end_ns), initial=0)) / NS_PER_S
    elif workflow.makespan_s:
        makespan_s = workflow.makespan_s
    head = {
        "name": workflow.name or "workflow",
        "description": f"Written by daws {__version__}",
        "createdAt": started_at.isoformat(),
        "schemaVersion": SCHEMA_VERSION,
        "runtimeSystem": {"name": "daws", "version": __version__},
    }
    files = _file_identifiers(workflow)
    yield encode(head)[:-1] + b',\n"workflow":{"specification":{"tasks":[\n'
    yield from _listed(map(encode, _tasks(workflow, ids, files)))
    yield b'],\n"files":[\n'
    sizes: list[int] = workflow.graph.object_bytes.tolist()
    yield from _listed(encode(_ExportedFile(name, sizes[number])) for number, name in enumerate(files) if name)
    yield b"]}"
    runs = list(map(encode, _runs(workflow, ids, execution)))
    if runs:
        said = encode({"makespanInSeconds": makespan_s, "executedAt": started_at.isoformat()})
        yield b',\n"execution":' + said[:-1] + b',"tasks":[\n'
        yield from _listed(runs)
        yield b"]"
        if execution is not None and execution.machines:
            yield b',\n"machines":' + encode(list(map(_machine, execution.machines)))
        yield b"}"
    yield b"}}\n"


def _tasks(workflow: Workflow, ids: list[str], files: list[str]) -> Iterator[_ExportedTask]:
    graph = workflow.graph
    inputs, outputs = _spans(graph.input_start, graph.inputs), _ranges(graph.output_start)
    parents, children = _spans(graph.parent_start, graph.parents), _spans(graph.child_start, graph.children)
    for task, name in enumerate(workflow.task_names):
        yield _ExportedTask(
            name or ids[task],
            ids[task],
            [ids[one] for one in next(parents)],
            [ids[one] for one in next(children)],
            [files[one] for one in next(inputs) if files[one]],
            [files[one] for one in next(outputs) if files[one]],
        )


def _runs(workflow: Workflow, ids: list[str], execution: Execution | None) -> Iterator[_ExportedRun]:
    graph = workflow.graph
    columns = (graph.length_ns, graph.cores, workflow.memory_bytes, graph.priority)
    rows: Iterable[Any] = zip(*(column.tolist() for column in columns), strict=True)
    if execution is not None:
        starts, ends, where = (
            np.asarray(column).tolist() for column in (execution.start_ns, execution.end_ns, execution.machine)
        )
        places = [(machine.name,) for machine in execution.machines]
    for task, (length_ns, cores, memory_bytes, priority) in enumerate(rows):
        run = _ExportedRun(ids[task], length_ns / NS_PER_S, "", None, cores, memory_bytes, priority)
        if workflow.programs[task]:
            # The schema wants no empty arguments.
            run.command = _ExportedCommand(workflow.programs[task], [one for one in workflow.arguments[task] if one])
        if execution is not None and task not in execution.earlier:
            if starts[task] < 0:
                continue
            run.runtimeInSeconds = (ends[task] - starts[task]) / NS_PER_S
            run.executedAt = (execution.started_at + timedelta(microseconds=starts[task] // NS_PER_US)).isoformat()
            run.machines = places[where[task]]
        yield run


def _machine(machine: RecordedMachine) -> _Machine:
    return _Machine(machine.name, machine.memory_bytes, _Cpu(machine.cores) if machine.cores else None)


def _identifiers(names: Iterable[str], forbidden: re.Pattern[str]) -> list[str]:
    """Names as identifiers: only allowed letters, and different where the names are."""
    taken: set[str] = set()
    numbers: dict[str, Iterator[int]] = {}  # those not tried yet: a file may have a hundred thousand writers
    found = []
    for name in names:
        identifier = forbidden.sub("_", name) or "_"
        if identifier in taken:
            untried = numbers.setdefault(identifier, count(2))
            identifier = next(other for number in untried if (other := f"{identifier}_{number}") not in taken)
        taken.add(identifier)
        found.append(identifier)
    return found


def _file_identifiers(workflow: Workflow) -> list[str]:
    """The identifiers of files by object; empty for control edges. A file with several writers is one object, hence one
    file, for each of them."""
    named = [number for number, name in enumerate(workflow.file_names) if name]
    found = [""] * len(workflow.file_names)
    names = [workflow.file_names[number] for number in named]
    for number, identifier in zip(named, _identifiers(names, FORBIDDEN_IN_FILES), strict=True):
        found[number] = identifier
    return found


def _spans(starts: Column, values: Column) -> Iterator[list[int]]:
    all_values: list[int] = np.asarray(values).tolist()
    return (all_values[span.start : span.stop] for span in _ranges(starts))


def _ranges(starts: Column) -> Iterator[range]:
    bounds: list[int] = np.asarray(starts).tolist()
    return map(range, bounds[:-1], bounds[1:])


def _listed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        yield piece if number == 0 else b",\n" + piece
