"""`daws.Graph`: a graph of tasks that people write down by hand, to simulate it, to bound it, or to save it.

    graph = daws.Graph()
    raw = graph.file("raw.dat", "1 GB")
    parts = [graph.task("cut", seconds=2, inputs=[raw], output="10 MB") for _ in range(8)]
    graph.task("join", seconds=5, inputs=parts, cores=2)
    print(daws.simulate(graph, nodes=4))

The class is called `TaskGraph` here, because `Graph` is the value that simulators and formats work with; `build()`
makes one. A task can only read what is there already, so a graph has no cycles.
"""

import math
import os
import re
import shlex
import warnings
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import NoReturn

import numpy as np

from daws.formats import Workflow, read_workflow, write_wfformat
from daws.formats.values import shown
from daws.model.columns import Int64s, offsets
from daws.model.context import Context, parse_context
from daws.model.errors import GraphError
from daws.model.graph import TOTAL_MAX, Graph
from daws.model.graph_builder import GraphBuilder
from daws.model.numbers import read_size

NS_PER_S = 1_000_000_000
NUMBERED = re.compile(r"[-_. ]?\d+$", re.ASCII)
_UNITS = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
Size = int | float | str
OPTIONS_ELSEWHERE = {
    **dict.fromkeys(["runtime", "duration", "time", "length"], "seconds"),
    **dict.fromkeys(["deps", "dependencies", "depends_on", "parents"], "after"),
    "size": "output",
    "cpus": "cores",
}


class GraphObject:
    """Something that tasks read: a file from outside, or an output of a task."""

    __slots__ = ("_graph", "_reference", "name")

    def __init__(self, graph: "TaskGraph", reference: int, name: str) -> None:
        self._graph = graph
        self._reference = reference
        self.name = name

    def __repr__(self) -> str:
        return f"<object {self.name!r} of a daws.Graph>"


class GraphTask:
    """A task of a graph. As an input of another one it stands for all of its outputs; `task["name"]` is one of them."""

    __slots__ = ("_graph", "_names", "_references", "name", "number")

    def __init__(self, graph: "TaskGraph", number: int, name: str, names: Sequence[str], references: range) -> None:
        self._graph = graph
        self.number = number
        self.name = name
        self._names = names
        self._references = references

    @property
    def outputs(self) -> list[GraphObject]:
        return [GraphObject(self._graph, *one) for one in zip(self._references, self._names, strict=True)]

    def __getitem__(self, name: str) -> GraphObject:
        if name not in self._names:
            known = ", ".join(map(repr, self._names)) or "none"
            raise GraphError(f"task {self.name!r} has no output {name!r}; its outputs are {known}")
        return GraphObject(self._graph, self._references[self._names.index(name)], name)

    def __iter__(self) -> Iterator[GraphObject]:
        return iter(self.outputs)

    def __repr__(self) -> str:
        return f"<task {self.number} ({self.name}) of a daws.Graph>"


Readable = GraphTask | GraphObject | str


class TaskGraph:
    """A graph of tasks and files that is written down one `task(…)` at a time; `daws.Graph` is its public name.

    Times are in seconds. Sizes are numbers of bytes, or texts such as `"10 MB"` and `"2 GiB"`.
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self._builder = GraphBuilder()
        self._contexts: dict[str, Context | None] = {"": None}
        self._task_names: list[str] = []
        self._numbers: dict[str, int] = {}  # of the first task of a name
        self._object_names: list[str] = []  # of outputs
        self._file_names: list[str] = []
        self._references: dict[str, int | None] = {}  # by name of a file or an output; None for those of several
        self._outputs: list[tuple[range, Sequence[str]]] = []
        self._commands: dict[int, tuple[str, ...]] = {}
        self._wait_child = array("q")
        self._wait_parent = array("q")
        self._built: tuple[Graph, list[str]] | None = None

    # -- what there is -------------------------------------------------------------------------------------------------

    def file(self, name: str, size: Size) -> GraphObject:
        """Add a file that exists before anything runs, and return it, so that tasks can read it."""
        if not _is_text(name):
            raise GraphError(f"file {shown(name)}: give its name as text, then its size")
        if name in self._references:
            raise GraphError(f"file {shown(name)}: there is an object of this name already")
        reference = self._builder.add_external(bytes_of(size, f"file {shown(name)}"))
        self._file_names.append(name)
        self._references[name] = reference
        self._built = None
        return GraphObject(self, reference, name)

    def task(
        self,
        name: str,
        seconds: float = 0.0,
        *,
        inputs: Readable | Iterable[Readable] = (),
        after: GraphTask | Iterable[GraphTask] = (),
        output: Size | None = None,
        outputs: Mapping[str, Size] | Sequence[Size] | None = None,
        cores: int = 1,
        memory: Size = 0,
        context: str = "",
        priority: int = 0,
        expected: float = 0.0,
        kind: str = "",
        command: str | Sequence[str] = (),
        **others: object,
    ) -> GraphTask:
        """Add a task that runs for `seconds`, and return it.

        `inputs` are tasks (with all of their outputs), single outputs (`task["name"]`), files, or names of these.
        `after` are tasks to wait for without reading anything. `output` is the size of the result; a task with several
        results has `outputs`, sizes by name. `cores`, `memory`, `context`, `priority` and `expected` (in seconds) are
        as in the options of live tasks.

        Tasks of one `kind` are alike; by default the kind is the name without the number at its end. `command` is the
        program with its arguments that `daws run --execute` runs after `save`.
        """
        if not _is_text(name):
            raise GraphError(f"task {shown(name)}: give its name as text")
        said = f"task {shown(name)}"
        if others:
            _refuse_option(next(iter(others)), said)
        names, sizes = _outputs_of(name, output, outputs, said)
        waits = self._waits_of(after, said)
        references = self._references_of(inputs, waits, said)
        if context not in self._contexts:
            self._contexts[context] = parse_context(_text(context, f"{said}: context"))
        words = shlex.split(command) if isinstance(command, str) else [*map(str, command)]
        handle = self._builder.add_task(
            kind or NUMBERED.sub("", name) or name,
            _nanoseconds(seconds, f"{said}: seconds"),
            references,
            [bytes_of(size, f"{said}: output") for size in sizes],
            self._contexts[context],
            priority,
            cores,
            _nanoseconds(expected, f"{said}: expected"),
            bytes_of(memory, f"{said}: memory") if memory else 0,
        )
        number = handle.id
        self._built = None
        self._task_names.append(name)
        self._numbers.setdefault(name, number)
        first = len(self._object_names)
        made = range(first, first + len(names))
        self._object_names += names
        for reference, one in zip(made, names, strict=True):
            self._references[one] = None if one in self._references else reference
        self._outputs.append((made, names))
        if words:
            self._commands[number] = tuple(words)
        for parent in dict.fromkeys(waits):
            self._wait_child.append(number)
            self._wait_parent.append(parent)
        return GraphTask(self, number, name, names, made)

    def __len__(self) -> int:
        return len(self._task_names)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[GraphTask]:
        return map(self._handle, range(len(self)))

    def __getitem__(self, name: str) -> GraphTask:
        """The task of this name, the first one if there are several."""
        if name not in self._numbers:
            raise GraphError(f"there is no task {shown(name)} in this graph")
        return self._handle(self._numbers[name])

    def _handle(self, number: int) -> GraphTask:
        made, names = self._outputs[number]
        return GraphTask(self, number, self._task_names[number], names, made)

    def __repr__(self) -> str:
        graph = self.build()
        files = f", {_counted(len(self._file_names), 'file')}" if self._file_names else ""
        data = _size_text(graph.output_bytes + graph.external_bytes)
        tasks, work_s = _counted(len(self), "task"), graph.total_length_ns / NS_PER_S
        return f"<daws.Graph {self.name!r}: {tasks}{files}, {work_s:,.2f} s, {data}>"

    # -- as something else ---------------------------------------------------------------------------------------------

    def build(self) -> Graph:
        """Return the graph in the form that simulators take."""
        return self._made()[0]

    def workflow(self) -> Workflow:
        """Return the graph with the names of its tasks and files, in the form that file formats take."""
        graph, file_names = self._made()
        commands = [self._commands.get(number, ()) for number in range(len(self))]
        return Workflow(
            name=self.name,
            format="graph",
            graph=graph,
            task_ids=_distinct(self._task_names),
            task_names=self._task_names,
            programs=[words[0] if words else "" for words in commands],
            arguments=[words[1:] for words in commands],
            file_names=file_names,
            memory_bytes=np.zeros(len(self), np.int64) if graph.memory_bytes is None else graph.memory_bytes,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph as WfFormat 1.5 (`.json`, or `.json.gz`), which `read`, `daws sim` and `daws run` take."""
        graph = self.build()
        lost = [*(["contexts"] * (len(graph.contexts) > 1)), *(["expected"] * (graph.estimate_ns is not None))]
        if lost:
            warnings.warn(f"WfFormat has no place for {' and '.join(lost)}: they are not in {path}", stacklevel=2)
        write_wfformat(os.fspath(path), self.workflow())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "TaskGraph":
        """Read the graph of a DAX or WfFormat file."""
        return cls._of(read_workflow(os.fspath(path)))

    @classmethod
    def _of(cls, workflow: Workflow) -> "TaskGraph":
        graph, found = workflow.graph, cls(workflow.name)
        names, sizes = workflow.file_names, graph.object_bytes.tolist()
        for number in range(graph.external_start, graph.object_count):
            found.file(names[number], sizes[number])
        handles: dict[int, GraphTask] = {}
        objects: dict[int, GraphObject] = {}
        for number in range(graph.external_start, graph.object_count):
            objects[number] = GraphObject(found, found._references[names[number]] or 0, names[number])
        rows = [column.tolist() for column in (graph.kind, graph.length_ns, graph.cores, graph.priority)]
        memory, producer = workflow.memory_bytes.tolist(), graph.producer.tolist()
        inputs, input_start, output_start = [
            column.tolist() for column in (graph.inputs, graph.input_start, graph.output_start)
        ]
        for task in np.argsort(graph.levels(), kind="stable").tolist():
            kind, length_ns, cores, priority = [column[task] for column in rows]
            read = inputs[input_start[task] : input_start[task + 1]]
            made = [one for one in range(output_start[task], output_start[task + 1]) if names[one]]
            handles[task] = found.task(
                workflow.task_ids[task],
                length_ns / NS_PER_S,
                inputs=[objects[one] for one in read if one in objects],
                after=[handles[producer[one]] for one in read if one not in objects],
                outputs={names[one]: sizes[one] for one in made},
                cores=cores,
                memory=memory[task],
                priority=priority,
                kind=graph.kinds[kind],
                command=workflow.command_of(task),
            )
            objects.update(zip(made, handles[task].outputs, strict=True))
        return found

    # -- inside --------------------------------------------------------------------------------------------------------

    def _made(self) -> tuple[Graph, list[str]]:
        if self._built is None:
            graph, names = self._builder.build(), [*self._object_names, *self._file_names]
            if self._wait_child:
                graph, moved = _with_waits(graph, np.array(self._wait_child), np.array(self._wait_parent))
                known, names = names, [""] * graph.object_count
                for place, name in zip(moved.tolist(), known, strict=True):
                    names[place] = name
            self._built = graph, names
        return self._built

    def _references_of(self, inputs: Readable | Iterable[Readable], waits: list[int], said: str) -> list[int]:
        """The objects that are read. Tasks that make nothing are added to those that are waited for."""
        given = (inputs,) if isinstance(inputs, GraphTask | GraphObject | str) else inputs
        found: dict[int, None] = {}
        for one in given:
            if type(one) is GraphTask:
                if one._graph is not self:
                    raise GraphError(f"{said}: {one!r} belongs to another graph")
                if not one._references:
                    waits.append(one.number)
                found.update(dict.fromkeys(one._references))
            elif type(one) is GraphObject:
                if one._graph is not self:
                    raise GraphError(f"{said}: {one!r} belongs to another graph")
                found[one._reference] = None
            elif isinstance(one, str):
                found.update(dict.fromkeys(self._named(one, waits, said)))
            else:
                raise GraphError(f"{said}: input {shown(one)} is neither a task, an output, a file nor a name of these")
        return list(found)

    def _named(self, name: str, waits: list[int], said: str) -> Iterable[int]:
        """The objects that a text stands for: a file, an output, or all outputs of a task."""
        reference = self._references.get(name, self)
        if isinstance(reference, int):
            return (reference,)
        if reference is None:
            raise GraphError(f"{said}: several tasks have an output {name!r}; give task[{name!r}] instead")
        if name in self._numbers:
            made = self._outputs[self._numbers[name]][0]
            if not made:
                waits.append(self._numbers[name])
            return made
        raise GraphError(f"{said}: there is no file, output or task {shown(name)} (yet)")

    def _waits_of(self, after: GraphTask | Iterable[GraphTask], said: str) -> list[int]:
        given = [after] if isinstance(after, GraphTask) else [*after]
        for one in given:
            if getattr(one, "_graph", None) is not self or type(one) is not GraphTask:
                raise GraphError(f"{said}: after={shown(one)} is not a task of this graph")
        return [one.number for one in given]


def _with_waits(graph: Graph, child: Int64s, parent: Int64s) -> tuple[Graph, Int64s]:
    """The graph in which children wait for parents by an object of 0 bytes, which is the last output of each parent.
    Beside it the new number of each object that was there before."""
    waited = np.zeros(graph.task_count, np.int64)
    waited[parent] = 1
    upto = np.concatenate([[0], np.cumsum(waited)])
    output_start = graph.output_start + upto
    moved = np.arange(graph.object_count) + upto[-1]
    moved[: graph.external_start] -= upto[-1] - np.repeat(upto[:-1], np.diff(graph.output_start))
    object_bytes = np.zeros(graph.object_count + int(upto[-1]), np.int64)
    object_bytes[moved] = graph.object_bytes
    readers = np.repeat(np.arange(graph.task_count), np.diff(graph.input_start))
    readers = np.concatenate([readers, child])
    inputs = np.concatenate([moved[graph.inputs], output_start[parent + 1] - 1])
    order = np.argsort(readers, kind="stable")
    changed = graph.changed(
        input_start=offsets(readers[order], graph.task_count),
        inputs=inputs[order],
        output_start=output_start,
        object_bytes=object_bytes,
    )
    return changed, moved


def _refuse_option(name: str, said: str) -> NoReturn:
    """There is no such option of a task."""
    known = [one for one in TaskGraph.task.__annotations__ if one not in ("name", "others", "return")]
    near = OPTIONS_ELSEWHERE.get(name) or next(iter(get_close_matches(name, known, 1)), "")
    cure = f"did you mean {near}=?" if near else f"there are {', '.join(known)}"
    raise GraphError(f"{said} has no option {name!r}; {cure}")


def _outputs_of(
    name: str, output: Size | None, outputs: Mapping[str, Size] | Sequence[Size] | None, said: str
) -> tuple[list[str], list[Size]]:
    if output is not None and outputs is not None:
        raise GraphError(f"{said}: give either output= or outputs=, not both")
    if output is not None:
        return [name], [output]
    if outputs is None:
        return [], []
    if isinstance(outputs, Mapping):
        return [*map(str, outputs)], [*outputs.values()]
    if isinstance(outputs, str | int | float):
        raise GraphError(f"{said}: give outputs= by name, as in {{'raw': '10 MB'}}, or one size as output=")
    return [f"{name}.{number}" for number in range(len(outputs))], [*outputs]


def bytes_of(size: object, said: str) -> int:
    """A number of bytes from a number or a text such as `10 MB`; GraphError that begins with what was `said`."""
    if isinstance(size, str):
        read = read_size(size)
        size = size if read is None else read
    if isinstance(size, bool) or not isinstance(size, int | float | np.integer):
        raise GraphError(f"{said}: {shown(size)} is not a size; give bytes, or a text such as '10 MB'")
    if not 0 <= size <= TOTAL_MAX:
        raise GraphError(f"{said}: {size} bytes; a size is from 0 to 2**62 bytes")
    return round(size)


def _nanoseconds(seconds: object, said: str) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float | np.integer | np.floating):
        raise GraphError(f"{said}: {shown(seconds)} is not a number of seconds")
    if not 0 <= seconds < math.inf or seconds * NS_PER_S > TOTAL_MAX:
        raise GraphError(f"{said}: {seconds} is not a time; give seconds from 0 on")
    return round(seconds * NS_PER_S)


def _is_text(name: object) -> bool:
    return isinstance(name, str) and bool(name)


def _text(value: object, said: str) -> str:
    if not isinstance(value, str):
        raise GraphError(f"{said}: {shown(value)} is not a text")
    return value


def _distinct(names: Sequence[str]) -> list[str]:
    """Names that several tasks have get a number."""
    taken = set(names)
    seen: dict[str, int] = {}
    found = []
    for name in names:
        if name in seen:
            number = seen[name]
            while (other := f"{name}-{number}") in taken:
                number += 1
            seen[name] = number + 1
            taken.add(other)
            found.append(other)
        else:
            seen[name] = 1
            found.append(name)
    return found


def _size_text(size_bytes: float) -> str:
    for unit, name in _UNITS:
        if size_bytes >= unit:
            return f"{size_bytes / unit:.3g} {name}"
    return f"{size_bytes:.0f} B"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
