"""WfFormat, the JSON of WfCommons: 1.5 and 1.6 with specification and execution apart, 1.0 to 1.4 with both in one.

msgspec takes the text apart and checks types as it goes, so only fields that matter ever become objects. Places are
JSON paths such as `workflow.specification.tasks[17].parents[2]`.
"""

import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TypeVar

import msgspec
from msgspec import Struct

from daws.formats.draft import UNKNOWN, Draft
from daws.formats.values import Found, bytes_in, cores, nanoseconds, number, shown, size, words
from daws.formats.workflow import Workflow
from daws.model.errors import WorkflowError

VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
BYTES_PER_KB = 1000
PRIORITY_MAX = 2**31 - 1
PROGRAM_LENGTH_MAX = 64
ITEM_BITS = 32
# What generators append to the name of a task to make it unique: _ID0000002, _00000002, -17.
NUMBERED = re.compile(r"(?:[_.-]?ID|[_.-])\d+$")
SHELL = frozenset("|&;<>()$`*?\n")
LINKS = {"input": (True, False), "output": (False, True), "inout": (True, True)}

Name = str | int | None
_Found = TypeVar("_Found")
_Read = TypeVar("_Read")


class _Command(Struct):
    program: str | None = None
    arguments: list[str | int | float | bool | None] | str | None = None


class _File(Struct):
    name: Name = None
    id: Name = None
    path: str | None = None
    link: str | None = None
    size: Found = None
    sizeInBytes: Found = None


class _Task(Struct):
    """A task of any version, or its execution."""

    name: Name = None
    id: Name = None
    category: str | None = None
    parents: list[str | int] | None = None
    children: list[str | int] | None = None
    inputFiles: list[str | int | _File] | None = None
    outputFiles: list[str | int | _File] | None = None
    files: list[_File] | None = None
    runtime: Found = None
    runtimeInSeconds: Found = None
    cores: Found = None
    coreCount: Found = None
    memory: Found = None
    memoryInBytes: Found = None
    priority: Found = None
    command: _Command | str | None = None


class _Specification(Struct):
    tasks: list[_Task] | None = None
    files: list[_File] | None = None


class _Execution(Struct):
    tasks: list[_Task] | None = None
    makespanInSeconds: Found = None


class _Body(Struct):
    specification: _Specification | None = None
    execution: _Execution | None = None
    tasks: list[_Task] | None = None
    jobs: list[_Task] | None = None
    makespan: Found = None
    makespanInSeconds: Found = None


class _Root(Struct):
    name: Name = None
    schemaVersion: str | float | None = None
    workflow: _Body | None = None


_DECODER = msgspec.json.Decoder(_Root)


def read_wfformat(path: str, text: bytes) -> Workflow:
    """The workflow in a file's bytes; WorkflowError with a JSON path if it makes no sense."""
    root = _decoded(path, text)
    version = None if root.schemaVersion is None else str(root.schemaVersion)
    if version is not None and version not in VERSIONS:
        raise WorkflowError(f"{path}: schemaVersion: {shown(version)} is not known; it is one of {', '.join(VERSIONS)}")
    if root.workflow is None:
        raise WorkflowError(f"{path}: workflow: there is none; is this a WfFormat file?")
    reader = _WfFormat(path, root.workflow)
    if version is None:
        reader.draft.notes.add("version")
    return reader.read(str(root.name or "workflow"), f"WfFormat {version or ''}".rstrip())


def _decoded(path: str, text: bytes) -> _Root:
    try:
        try:
            return _DECODER.decode(text)
        except msgspec.DecodeError:
            # Python's own writer leaves NaN and Infinity behind, which JSON does not have.
            if b"NaN" not in text and b"Infinity" not in text:
                raise
            return msgspec.convert(json.loads(text), _Root)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        place = place.rstrip("`").removeprefix(".")
        raise WorkflowError(f"{path}: {place or 'the file as a whole'}: {message[0].lower()}{message[1:]}") from None
    except json.JSONDecodeError as error:
        raise WorkflowError(f"{path}:{error.lineno}: this is not JSON: {error.msg}") from None
    except msgspec.DecodeError as error:
        message, _, byte = str(error).removeprefix("JSON is malformed: ").partition(" (byte ")
        at = int(byte.rstrip(")")) if byte else len(text)
        line = text.count(b"\n", 0, at) + 1
        raise WorkflowError(f"{path}:{line}: this is not JSON: {message.lower()}") from None
    except UnicodeDecodeError:
        raise WorkflowError(f"{path}:{_bad_line(text)}: the text is not UTF-8") from None
    except RecursionError:
        raise WorkflowError(f"{path}: lists and objects are nested too deeply") from None
    except ValueError as error:  # json.loads refuses numbers of thousands of digits
        raise WorkflowError(f"{path}: this is not JSON: {error}") from None


def _bad_line(text: bytes) -> int:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return text.count(b"\n", 0, error.start) + 1
    return 1  # the error is written as an escape


class _WfFormat:
    def __init__(self, path: str, body: _Body) -> None:
        self.path = path
        self.body = body
        self.draft = Draft(self._error_at)
        self.is_split = body.specification is not None
        if body.specification is not None:
            self.tasks, self.base = body.specification.tasks, "workflow.specification.tasks"
        elif body.jobs is not None and body.tasks is None:
            self.tasks, self.base = body.jobs, "workflow.jobs"
        else:
            self.tasks, self.base = body.tasks, "workflow.tasks"
        self.by_name: dict[str, int] = {}
        self.ambiguous: set[str] = set()

    def read(self, name: str, format_name: str) -> Workflow:
        if not self.tasks:
            raise WorkflowError(f"{self.path}: {self.base}: there are no tasks")
        executions = self._executions()
        if self.body.specification is not None:
            self._list_files(self.body.specification.files or ())
        for index, task in enumerate(self.tasks):
            self._add_task(index, task, executions.get(index))
        self._add_edges()
        makespan, place = self.body.makespanInSeconds, "workflow.makespanInSeconds"
        if makespan is None:
            makespan, place = self.body.makespan, "workflow.makespan"
        if self.body.execution is not None and self.body.execution.makespanInSeconds is not None:
            makespan, place = self.body.execution.makespanInSeconds, "workflow.execution.makespanInSeconds"
        makespan_s = max(0.0, self._number(makespan, place) or 0.0)
        self.body = _Body()
        return self.draft.build(name, format_name, makespan_s)

    # -- places --------------------------------------------------------------------------------------------------------

    def _error_at(self, place: int, message: str) -> WorkflowError:
        return self._wrong(self._path_of(place), message)

    def _path_of(self, place: int) -> str:
        """Places of the draft are a task's index and twice the index in its list of parents or (odd) of children."""
        if place < 0:
            return self.base
        index, item = place >> ITEM_BITS, place & ((1 << ITEM_BITS) - 1)
        if item == 0:
            return f"{self.base}[{index}].id"
        return f"{self.base}[{index}].{'children' if item & 1 else 'parents'}[{(item >> 1) - 1}]"

    def _wrong(self, path: str, message: str) -> WorkflowError:
        return WorkflowError(f"{self.path}: {path}: {message}")

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def _executions(self) -> dict[int, tuple[str, _Task]]:
        """The executions by the index of their task. Some files have numbers on one side and texts on the other, or
        names instead of ids."""
        found: dict[int, tuple[str, _Task]] = {}
        if self.body.execution is None or not self.is_split:
            return found
        known = {_text(task.id) or _text(task.name): index for index, task in enumerate(self.tasks or ())}
        names: dict[str, int] | None = None
        for at, execution in enumerate(self.body.execution.tasks or ()):
            place = f"workflow.execution.tasks[{at}]"
            if execution.id is None:
                raise self._wrong(place, "an execution needs the id of its task")
            index = known.get(_text(execution.id))
            if index is None:
                names = _by_name(self.tasks or ()) if names is None else names
                index = names.get(_text(execution.id))
            if index is None:
                self.draft.notes.add("executed-unknown")
                continue
            if index in found:
                self.draft.notes.add("executed-twice")
            found[index] = (place, execution)
        return found

    def _add_task(self, index: int, task: _Task, execution: tuple[str, _Task] | None) -> None:
        draft = self.draft
        place = f"{self.base}[{index}]"
        name, task_id = _text(task.name), _text(task.id)
        if not (name or task_id):
            raise self._wrong(place, "a task needs an id")
        # An execution repeats nothing but the id, so what is missing there may still be here, and the reverse.
        run_place, run = execution or (place, task)
        command = _command(run.command or task.command)
        program = (command.program or "") if command is not None else ""
        kind = task.category or _kind_of(name or task_id, program)
        number = draft.add_task(task_id or name, name or task_id, kind, index << ITEM_BITS)
        if name and self.by_name.setdefault(name, number) != number:
            self.ambiguous.add(name)
        self._set_needs([(place, task)] if run is task else [(run_place, run), (place, task)])
        if command is not None:
            draft.programs[number] = program
            draft.arguments[number] = _arguments(command.arguments)
        if task.inputFiles:
            self._use_named(f"{place}.inputFiles", task.inputFiles, False)
        if task.outputFiles:
            self._use_named(f"{place}.outputFiles", task.outputFiles, True)
        if task.files:
            self._use_files(place, task.files)

    def _set_needs(self, sayings: list[tuple[str, _Task]]) -> None:
        """Set the needs of a task, each from the first place that has it."""
        draft = self.draft
        place, run = _first(sayings, "runtimeInSeconds", "runtime")
        key, seconds = ("runtimeInSeconds", run.runtimeInSeconds)
        if seconds is None:
            key, seconds = ("runtime", run.runtime)
        if type(seconds) is float and 0.0 <= seconds < 1e9:  # as usual
            value: float | None = seconds
        else:
            value = self._number(seconds, f"{place}.{key}")
        if value is None:
            draft.notes.add("runtime-missing")
        else:
            if value < 0:
                draft.notes.add("runtime-negative")
                value = 0.0
            draft.length_ns[-1] = self._checked(nanoseconds, value, f"{place}.{key}")
        place, run = _first(sayings, "coreCount", "cores")
        key, wanted = ("coreCount", run.coreCount) if run.coreCount is not None else ("cores", run.cores)
        if wanted is not None and wanted != 1:
            value = self._number(wanted, f"{place}.{key}")
            if value is not None:
                if value < 1:
                    draft.notes.add("cores")
                draft.cores[-1] = self._checked(cores, value, f"{place}.{key}")
        place, run = _first(sayings, "memoryInBytes", "memory")
        if run.memoryInBytes is not None or run.memory is not None:
            key = "memoryInBytes"
            value = self._number(run.memoryInBytes, f"{place}.{key}")
            if value is None:
                key = "memory"
                value = (self._number(run.memory, f"{place}.{key}") or 0.0) * BYTES_PER_KB
            draft.memory_bytes[-1] = self._checked(size, max(value, 0.0), f"{place}.{key}")
        place, run = _first(sayings, "priority")
        if run.priority is not None:
            value = self._number(run.priority, f"{place}.priority") or 0.0
            draft.priority[-1] = round(max(-PRIORITY_MAX, min(PRIORITY_MAX, value)))

    def _add_edges(self) -> None:
        draft, ids = self.draft, self.draft.ids
        for index, task in enumerate(self.tasks or ()):
            for references, near, far, first in (
                (task.parents, draft.edge_child, draft.edge_parent, 2),
                (task.children, draft.edge_parent, draft.edge_child, 3),
            ):
                if not references:
                    continue
                place = (index << ITEM_BITS) + first
                places: Sequence[int] = range(place, place + 2 * len(references), 2)
                try:
                    known = [ids[one] for one in references]  # type: ignore[index]  # a number is not in there
                except KeyError:  # names, numbers, empty texts, or mistakes
                    resolved = list(map(self._resolve, references, places))
                    places = [at for at, one in zip(places, resolved, strict=True) if one is not None]
                    known = [one for one in resolved if one is not None]
                far.extend(known)
                near.extend(repeat(index, len(known)))
                draft.edge_place.extend(places)

    def _resolve(self, reference: str | int, place: int) -> int | None:
        """Up to 1.4 tasks are referred to by name, later by id; files of all versions do both."""
        task_id = str(reference)
        task = self.draft.ids.get(task_id)
        if task is None and task_id not in self.ambiguous:
            task = self.by_name.get(task_id)
        if task is None:
            if not task_id:
                self.draft.notes.add("empty-reference")
            elif task_id in self.ambiguous:
                raise self._error_at(place, f"several tasks have the name {shown(task_id)}, and none has it as id")
            else:
                raise self._error_at(place, f"there is no task with the id {shown(task_id)}")
        return task

    # -- files ---------------------------------------------------------------------------------------------------------

    def _list_files(self, files: Sequence[_File]) -> None:
        draft = self.draft
        for index, file in enumerate(files):
            place = f"workflow.specification.files[{index}]"
            name = _text(file.id) or _text(file.name)
            if not name:
                raise self._wrong(place, "a file needs an id")
            number = draft.files[name]
            found = self._size(file, place)
            known = draft.listed_bytes.get(number, UNKNOWN)
            if known != UNKNOWN and found not in (UNKNOWN, known):
                draft.notes.add("sizes-differ")
            draft.listed_bytes[number] = max(known, found)

    def _use_named(self, place: str, files: Sequence[str | int | _File], writes: bool) -> None:
        """Note the use of files, given by their ids as the format says, or as objects, as in some files."""
        if not any(type(file) is _File for file in files):
            self.draft.use_all(list(map(str, files)), writes)
            return
        for index, file in enumerate(files):
            if not isinstance(file, _File):
                self.draft.use(str(file), writes)
                continue
            name = _text(file.id) or _text(file.name)
            if not name:
                raise self._wrong(f"{place}[{index}]", "a file needs an id")
            self.draft.use(name, writes, self._size(file, f"{place}[{index}]"))

    def _use_files(self, place: str, files: Sequence[_File]) -> None:
        for index, file in enumerate(files):
            name = _text(file.name) or _text(file.id)
            if not name:
                raise self._wrong(f"{place}.files[{index}]", "a file needs a name")
            if file.path:
                name = _located(file.path, name)
            links = LINKS.get(file.link or "") or LINKS.get((file.link or "").strip().lower())
            if links is None:
                raise self._wrong(
                    f"{place}.files[{index}].link", f"{shown(file.link or '')} is none of {', '.join(LINKS)}"
                )
            size_bytes = self._size(file, f"{place}.files[{index}]")
            for wanted, writes in zip(links, (False, True), strict=True):
                if wanted:
                    self.draft.use(name, writes, size_bytes)

    def _size(self, file: _File, place: str) -> int:
        found, key = (file.size, "size") if file.sizeInBytes is None else (file.sizeInBytes, "sizeInBytes")
        if type(found) is int and 0 <= found < 1 << 53:
            return found
        value = self._checked(bytes_in, found, f"{place}.{key}")
        if value is None:
            return UNKNOWN
        if value < 0:
            self.draft.notes.add("size-negative")
            return UNKNOWN
        return self._checked(size, value, f"{place}.{key}")

    # -- values --------------------------------------------------------------------------------------------------------

    def _number(self, found: Found, place: str) -> float | None:
        return self._checked(number, found, place)

    def _checked(self, read: Callable[[_Found], _Read], found: _Found, place: str) -> _Read:
        try:
            return read(found)
        except ValueError as error:
            raise self._wrong(place, f"{shown(found)} {error}") from None


def _first(sayings: list[tuple[str, _Task]], *keys: str) -> tuple[str, _Task]:
    for one in sayings[:-1]:
        if any(getattr(one[1], key) is not None for key in keys):
            return one
    return sayings[-1]


def _by_name(tasks: Sequence[_Task]) -> dict[str, int]:
    """The index of each task whose name no other one has."""
    count = Counter([_text(task.name) for task in tasks])
    return {_text(task.name): index for index, task in enumerate(tasks) if task.name and count[_text(task.name)] == 1}


def _text(name: Name) -> str:
    return "" if name is None else str(name)


def _located(path: str, name: str) -> str:
    """The location of a file. Some files give its folder as its path, with a slash at the end or not, others all of
    it."""
    return path if posixpath.basename(path) == name else posixpath.join(path, name)


def _kind_of(name: str, program: str) -> str:
    """The common name of tasks of one kind: the name without its number, or just the program if the name begins with
    it."""
    stem = NUMBERED.sub("", name) or name
    short = program.rpartition("/")[2]
    if short and len(short) <= PROGRAM_LENGTH_MAX and stem.startswith(short) and not any(map(str.isspace, short)):
        return short
    return stem


def _command(found: _Command | str | None) -> _Command | None:
    """The command as the format has it, or from one line, which is for a shell if only a shell can read it."""
    if not isinstance(found, str):
        return found
    if SHELL.intersection(found):
        return _Command(found.strip())
    program, *arguments = words(found) or [""]
    return _Command(program, [*arguments])


def _arguments(found: list[str | int | float | bool | None] | str | None) -> tuple[str, ...]:
    if found is None:
        return ()
    if isinstance(found, str):
        return words(found)
    return tuple("" if one is None else str(one).lower() if isinstance(one, bool) else str(one) for one in found)
