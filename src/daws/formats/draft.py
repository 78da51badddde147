"""Drafts of graphs: from the lists in a file (tasks, files that they use, edges) to a graph.

Every format says the same things in other words, so readers only fill a `Draft`. The rules are here:

- A declared edge always counts. If the child reads a file that the parent writes, the edge carries it. If not, the
  child waits for an object of 0 bytes, which all such children of a task share.
- A file that is read comes from its writer. If it has several writers, it comes from a declared parent (the last one
  listed), else from the writer that is latest before the reader. A file without a writer comes from outside.
- Edges that follow from files alone count too, unless they contradict the declared ones.
- A file has the size that its writer says, else the one listed for it, else the largest that a reader says.

This module may not know any format.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt

from daws.formats.notes import RepairNotes
from daws.formats.values import shown
from daws.formats.workflow import Workflow
from daws.model.columns import Int32s, Int64s, distinct, offsets
from daws.model.errors import GraphError, WorkflowError
from daws.model.graph import Graph

UNKNOWN = -1
CYCLE_SHOWN_MAX = 5

Bools = npt.NDArray[np.bool_]
ErrorAt = Callable[[int, str], WorkflowError]
"""A function that makes an error with a place. Each reader defines the number of a place; -1 is the whole file."""


class _Numbers(dict[str, int]):
    """Numbers for names, in the order in which they are first asked for."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


class Draft:
    """The content of a file that was read so far. Uses belong to the task added last; edges may name tasks in any
    order."""

    def __init__(self, error_at: ErrorAt) -> None:
        self.error_at = error_at
        self.notes = RepairNotes()
        self.ids: dict[str, int] = {}
        self.names: list[str] = []
        self.programs: list[str] = []
        self.arguments: list[tuple[str, ...]] = []
        self.kinds = _Numbers()
        self.kind = array("i")
        self.length_ns = array("q")
        self.cores = array("h")
        self.priority = array("i")
        self.memory_bytes = array("q")
        self.files = _Numbers()
        self.listed_bytes: dict[int, int] = {}
        self.use_task = array("q")
        self.use_file = array("q")
        self.use_bytes = array("q")
        self.use_writes = array("b")
        self.edge_parent = array("q")
        self.edge_child = array("q")
        self.edge_place = array("q")

    @property
    def task_count(self) -> int:
        return len(self.kind)

    def add_task(self, task_id: str, name: str, kind: str, place: int) -> int:
        task = len(self.kind)
        if self.ids.setdefault(task_id, task) != task:
            raise self.error_at(place, f"two tasks have the id {shown(task_id)}")
        self.names.append(name)
        self.kind.append(self.kinds[kind])
        self.length_ns.append(0)
        self.cores.append(1)
        self.priority.append(0)
        self.memory_bytes.append(0)
        self.programs.append("")
        self.arguments.append(())
        return task

    def use(self, name: str, writes: bool, size_bytes: int = UNKNOWN) -> int:
        """Note that the last task reads or writes a file, and return the number of this use."""
        self.use_task.append(len(self.kind) - 1)
        self.use_file.append(self.files[name])
        self.use_bytes.append(size_bytes)
        self.use_writes.append(writes)
        return len(self.use_task) - 1

    def use_all(self, names: Sequence[str], writes: bool) -> None:
        """Note the use of many files of unknown size."""
        count = len(names)
        self.use_task.extend(repeat(len(self.kind) - 1, count))
        self.use_file.extend(map(self.files.__getitem__, names))
        self.use_bytes.extend(repeat(UNKNOWN, count))
        self.use_writes.extend(repeat(writes, count))

    def edge(self, parent: int, child: int, place: int) -> None:
        self.edge_parent.append(parent)
        self.edge_child.append(child)
        self.edge_place.append(place)

    def build(self, name: str, format_name: str, makespan_s: float = 0.0) -> Workflow:
        """The workflow; WorkflowError if tasks wait for each other or sizes cannot be added up."""
        if not self.task_count:
            raise self.error_at(-1, "there are no tasks in it")
        own = np.flatnonzero(_ints(self.edge_parent) == _ints(self.edge_child))
        if len(own):
            task, place = self.edge_parent[own[0]], self.edge_place[own[0]]
            raise self.error_at(place, f"task {shown(list(self.ids)[task])} waits for itself")
        graph, file_names = _Resolver(self).graph()
        try:
            graph.check()
        except GraphError as error:
            raise self.error_at(-1, str(error)) from error
        return Workflow(
            name=name,
            format=format_name,
            graph=graph,
            task_ids=list(self.ids),
            task_names=self.names,
            programs=self.programs,
            arguments=self.arguments,
            file_names=file_names,
            memory_bytes=np.array(self.memory_bytes, np.int64),
            makespan_s=makespan_s,
            notes=self.notes.lines(),
        )


class _Resolver:
    """One pass over a draft. Edges and pairs are single numbers, `child * count + parent`, as numpy can sort those."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.count = draft.task_count
        self.file_count = len(draft.files)
        self.declared = distinct(_ints(draft.edge_child) * self.count + _ints(draft.edge_parent))
        task, file = _ints(draft.use_task), _ints(draft.use_file)
        writes = np.array(draft.use_writes, np.bool_)
        self.sizes = _ints(draft.use_bytes)
        # Each file at most once per task and direction, in the order of the file.
        self.out = _first_of_each(np.flatnonzero(writes), file * self.count + task)
        self.into = _first_of_each(np.flatnonzero(~writes), file * self.count + task)
        self.out_task, self.out_file = task[self.out], file[self.out]
        self.in_task, self.in_file = task[self.into], file[self.into]
        self.use_file, self.use_writes = file, writes

    def graph(self) -> tuple[Graph, list[str]]:
        draft, count = self.draft, self.count
        source = self._sources()
        inside = source >= 0
        data_edges = self.in_task[inside] * count + self.out_task[source[inside]]
        control = self.declared[~np.isin(self.declared, data_edges)]
        draft.notes.add("control", len(control))
        draft.notes.add("undeclared", int((~np.isin(distinct(data_edges), self.declared)).sum()))
        # Outputs of a task: its files in order, then what its other children wait for.
        waited_for = np.zeros(count, np.int64)
        waited_for[control % count] = 1
        made = np.bincount(self.out_task, minlength=count)
        output_start = np.zeros(count + 1, np.int64)
        np.cumsum(made + waited_for, out=output_start[1:])
        out_rank = np.arange(len(self.out)) - (np.cumsum(made) - made)[self.out_task]
        out_object = output_start[self.out_task] + out_rank
        outside = self._outside_files(self.in_file[~inside])
        outside_object = np.full(self.file_count, -1, np.int64)
        outside_object[outside] = output_start[-1] + np.arange(len(outside))
        # Inputs of a task: its files in order, then those it only waits for.
        objects = outside_object[self.in_file]
        objects[inside] = out_object[source[inside]]
        readers = np.concatenate([self.in_task, control // count])
        objects = np.concatenate([objects, output_start[control % count + 1] - 1])
        order = np.argsort(readers, kind="stable")
        object_bytes = np.zeros(int(output_start[-1]) + len(outside), np.int64)
        file_bytes = self._file_bytes()
        written_bytes = self.sizes[self.out]
        object_bytes[out_object] = np.where(written_bytes == UNKNOWN, file_bytes[self.out_file], written_bytes)
        object_bytes[outside_object[outside]] = file_bytes[outside]
        names = list(draft.files)
        file_names = [""] * len(object_bytes)
        for number, file in zip(out_object.tolist(), self.out_file.tolist(), strict=True):
            file_names[number] = names[file]
        file_names[int(output_start[-1]) :] = [names[file] for file in outside.tolist()]
        graph = Graph(
            kinds=tuple(draft.kinds),
            kind=np.array(draft.kind, np.int32),
            length_ns=_ints(draft.length_ns),
            input_start=offsets(readers[order], count),
            inputs=objects[order],
            output_start=output_start,
            object_bytes=object_bytes,
            priority=np.array(draft.priority, np.int32),
            cores=np.array(draft.cores, np.int16),
        )
        return graph, file_names

    # -- who wrote what is read ----------------------------------------------------------------------------------------

    def _sources(self) -> Int64s:
        """The output that each input is, as an index into `out`; -1 if it comes from outside."""
        writers = np.bincount(self.out_file, minlength=self.file_count)
        self.draft.notes.add("writers", int((writers > 1).sum()))
        only = np.full(self.file_count, -1, np.int64)
        only[self.out_file] = np.arange(len(self.out))
        source = np.where(writers[self.in_file] == 1, only[self.in_file], -1)
        own = source >= 0
        own[own] = self.out_task[source[own]] == self.in_task[own]
        source[own] = -1  # a file that a task both reads and writes existed before
        levels = self._settle(source)
        several = np.flatnonzero(writers[self.in_file] > 1)
        if len(several):
            self._choose_writers(source, several, levels)
        return source

    def _settle(self, source: Int64s) -> Int32s:
        """The levels of all edges together; takes inputs out of `source` that contradict the declared edges."""
        inside = np.flatnonzero(source >= 0)
        edges = self.in_task[inside] * self.count + self.out_task[source[inside]]
        levels = _levels(self.count, np.concatenate([self.declared, edges]))
        if levels is not None:
            return levels
        before = _levels(self.count, self.declared) if len(self.declared) else None
        if before is None:
            raise self._circle(self.declared if len(self.declared) else edges)
        undeclared = ~np.isin(edges, self.declared)
        wrong = inside[undeclared & (before[edges % self.count] >= before[edges // self.count])]
        self.draft.notes.add("against", len(np.unique(self.in_file[wrong])))
        source[wrong] = -1
        return self._settle(source)

    def _choose_writers(self, source: Int64s, several: Int64s, levels: Int32s) -> None:
        writer_lists: dict[int, dict[int, int]] = {file: {} for file in np.unique(self.in_file[several]).tolist()}
        for number, (file, task) in enumerate(zip(self.out_file.tolist(), self.out_task.tolist(), strict=True)):
            if file in writer_lists:
                writer_lists[file][task] = number
        by_level = {file: sorted((int(levels[task]), task) for task in tasks) for file, tasks in writer_lists.items()}
        parent_start = offsets(self.declared // self.count, self.count)
        before: set[int] = set()
        for use in several.tolist():
            task, file = int(self.in_task[use]), int(self.in_file[use])
            writers = writer_lists[file]
            parents = self.declared[parent_start[task] : parent_start[task + 1]] % self.count
            chosen = _last_common(writers, parents)
            if chosen < 0:
                at = bisect_left(by_level[file], (int(levels[task]), -1))
                chosen = by_level[file][at - 1][1] if at else -1
            if chosen >= 0:
                source[use] = writers[chosen]
            elif task not in writers:
                before.add(file)
        self.draft.notes.add("against", len(before))

    def _circle(self, edges: Int64s) -> WorkflowError:
        """An error that shows a circle and points at one of its edges."""
        draft = self.draft
        circle = find_circle(self.count, edges // self.count, edges % self.count)
        ids = list(draft.ids)
        cut = " -> ..." if len(circle) > CYCLE_SHOWN_MAX else ""
        names = " -> ".join(shown(ids[task]) for task in circle[:CYCLE_SHOWN_MAX])
        place = next(
            (
                place
                for parent, child, place in zip(draft.edge_parent, draft.edge_child, draft.edge_place, strict=True)
                if (parent, child) == (circle[-1], circle[0])
            ),
            -1,
        )
        return draft.error_at(
            place, f"{len(circle)} tasks wait for each other in a circle: {names}{cut} -> {shown(ids[circle[0]])}"
        )

    # -- files ---------------------------------------------------------------------------------------------------------

    def _outside_files(self, read: Int64s) -> Int64s:
        """Files that come from outside: read without a writer, or listed and never used."""
        wanted = np.zeros(self.file_count, np.bool_)
        wanted[read] = True
        idle = np.ones(self.file_count, np.bool_)
        idle[self.use_file] = False
        return np.flatnonzero(wanted | idle)

    def _file_bytes(self) -> Int64s:
        """The size of each file that holds if its writer gives none."""
        notes = self.draft.notes
        known = self.sizes != UNKNOWN
        listed = np.full(self.file_count, UNKNOWN, np.int64)
        listed[list(self.draft.listed_bytes)] = list(self.draft.listed_bytes.values())
        largest = np.full(self.file_count, UNKNOWN, np.int64)
        np.maximum.at(largest, self.use_file[known], self.sizes[known])
        written = np.full(self.file_count, UNKNOWN, np.int64)
        writes = known & self.use_writes
        np.maximum.at(written, self.use_file[writes], self.sizes[writes])
        smallest = np.where(largest == UNKNOWN, listed, largest)
        np.minimum.at(smallest, self.use_file[known], self.sizes[known])
        notes.add("sizes-differ", int((smallest != np.where(largest == UNKNOWN, listed, largest)).sum()))
        file_bytes = np.where(written != UNKNOWN, written, np.where(listed != UNKNOWN, listed, largest))
        notes.add("size-missing", int((file_bytes == UNKNOWN).sum()))
        return np.maximum(file_bytes, 0)


def find_circle(count: int, child: Int64s, parent: Int64s) -> list[int]:
    """Tasks that wait for each other, each for the one before it and the first for the last."""
    parents: dict[int, list[int]] = {}
    missing = [0] * count
    children: list[list[int]] = [[] for _ in range(count)]
    for one, other in zip(child.tolist(), parent.tolist(), strict=True):
        parents.setdefault(one, []).append(other)
        children[other].append(one)
        missing[one] += 1
    free = [task for task in range(count) if not missing[task]]
    while free:
        for one in children[free.pop()]:
            missing[one] -= 1
            if not missing[one]:
                free.append(one)
    task = next(task for task in range(count) if missing[task])
    seen: dict[int, int] = {}
    while task not in seen:
        seen[task] = len(seen)
        task = next(one for one in parents[task] if missing[one])
    return list(seen)[seen[task] :][::-1]


def _levels(count: int, edges: Int64s) -> Int32s | None:
    """The length of the longest path to each task; None if there is a cycle."""
    edges = distinct(edges)
    waiting = Graph(
        kinds=("task",),
        kind=np.zeros(count, np.int32),
        length_ns=np.zeros(count, np.int64),
        input_start=offsets(edges // count, count),
        inputs=edges % count,
        output_start=np.arange(count + 1),
        object_bytes=np.zeros(count, np.int64),
    )
    try:
        return waiting.levels()
    except GraphError:
        return None


def _last_common(writers: dict[int, int], parents: Int64s) -> int:
    """The highest task that is in both; -1 if none is."""
    if len(parents) <= len(writers):
        return next((task for task in reversed(parents.tolist()) if task in writers), -1)
    known = set(parents.tolist())
    return max((task for task in writers if task in known), default=-1)


def _first_of_each(uses: Int64s, keys: Int64s) -> Int64s:
    _, first = np.unique(keys[uses], return_index=True)
    first.sort()
    return uses[first]


def _ints(values: "array[int]") -> Int64s:
    return np.array(values, np.int64)
