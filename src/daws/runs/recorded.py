"""A live run as a workflow: the graph of the tasks that ran, with the lengths and sizes that were measured.

A task that created others and waited for them becomes several, one for each part between two waits. The tasks that it
created come after the part that created them, and the next part comes after all tasks that it waited for. Data that
goes through the client (a result that is read there and handed on as a value) is not seen: there is no edge.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
from msgspec import Struct

from daws.formats.execution import Execution, RecordedMachine
from daws.formats.workflow import Workflow
from daws.model.graph_builder import GraphBuilder
from daws.runs.timeline import Timeline
from daws.wire.notes import Phase, Row, RunLinks


class RunPart(Struct):
    """A task, or one of the parts of a task that waited for others.

    `after` are positions in the list of parts; `inputs` and `outputs` are objects with their sizes. Times are those of
    the machine's monotonic clock.
    """

    task: int
    number: int
    kind: int
    node: int
    start_ns: int
    length_ns: int
    cores: int
    memory_bytes: int
    after: set[int]
    inputs: tuple[tuple[int, int], ...] = ()
    outputs: tuple[tuple[int, int], ...] = ()

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.length_ns


def parts_of(timeline: Timeline) -> list[RunPart]:
    """Each task by its first run that went well, or its last if none did; parents come before their children."""
    rows = _chosen(timeline.rows())
    links = {(one.task, one.start_ns): one for one in timeline.links}
    parts: list[RunPart] = []
    last: dict[int, int] = {}  # by task: the place of its last part
    found = {task: links.get((task, row[4])) for task, row in rows.items()}
    for task, row in rows.items():
        parts += _parts(row, found[task], rows, len(parts))
        last[task] = len(parts) - 1
    producers = {object_: at for at, part in enumerate(parts) for object_, _ in part.outputs}
    for task, one in found.items():
        if one is not None and one.phases:
            _connect(parts, last, task, one.phases)
    for part in parts:
        part.after.update([producers[object_] for object_, _ in part.inputs if object_ in producers])
    ordered = _sorted(parts)
    _place_in_time(ordered)
    return ordered


def _chosen(runs: Iterable[Row]) -> dict[int, Row]:
    rows: dict[int, Row] = {}
    for row in runs:
        before = rows.get(row[0])
        if before is None or not before[-1]:
            rows[row[0]] = row
    return rows


def _cut(links: RunLinks | None, row: Row, rows: dict[int, Row]) -> tuple[Phase, ...]:
    """The parts of a run. A run that did not wait for the tasks that it created is cut where the first of these
    began."""
    phases = links.phases if links is not None else ()
    if len(phases) != 1 or not phases[0][1]:
        return phases
    used_ns, created, _ = phases[0]
    starts_ns = [rows[child][4] for child in created if child in rows]
    cut_ns = max(0, min([used_ns, *[start_ns - row[4] for start_ns in starts_ns]]))
    return (cut_ns, created, ()), (used_ns, (), ())


def _parts(row: Row, links: RunLinks | None, rows: dict[int, Row], first: int) -> Iterator[RunPart]:
    task, kind, node, _, start_ns, end_ns, cores, _, written, is_good = row
    phases = _cut(links, row, rows) or ((end_ns - start_ns, (), ()),)
    memory_bytes = 0 if links is None else links.memory_bytes
    worked_ns = 0
    for number, (used_ns, _, _) in enumerate(phases):
        length_ns = max(0, used_ns - worked_ns)
        after = {first + number - 1} if number else set()
        part = RunPart(task, number, kind, node, start_ns, length_ns, cores, memory_bytes, after)
        worked_ns = max(worked_ns, used_ns)
        if links is not None and not number:
            part.inputs = links.inputs
        if number == len(phases) - 1:
            part.outputs = links.outputs if links is not None else ((task, written),) if is_good else ()
        yield part


def _connect(parts: list[RunPart], last: dict[int, int], task: int, phases: tuple[Phase, ...]) -> None:
    """Connect parts: created tasks come after the part that created them, awaited tasks before the part that went
    on."""
    first, end = _first_of(parts, last, task), last[task]
    for number, (_, created, awaited) in enumerate(phases):
        for child in created:
            if child in last:
                parts[_first_of(parts, last, child)].after.add(first + number)
        if first + number < end:
            following = parts[first + number + 1]
            for child in awaited:
                if child in last:
                    following.after.add(last[child])
                    following.inputs += parts[last[child]].outputs[:1]


def _first_of(parts: list[RunPart], last: dict[int, int], task: int) -> int:
    """The place of a task's first part."""
    return last[task] - parts[last[task]].number


def _sorted(parts: list[RunPart]) -> list[RunPart]:
    """Parents before their children, otherwise in the order of their starts. Cycles are cut; they can occur if runs of
    one task have created different tasks after a failure."""
    children: dict[int, list[int]] = {}
    missing = [len(part.after) for part in parts]
    for at, part in enumerate(parts):
        for parent in part.after:
            children.setdefault(parent, []).append(at)
    ready = deque(sorted([at for at, left in enumerate(missing) if not left], key=lambda at: parts[at].start_ns))
    order: list[int] = []
    while ready:
        at = ready.popleft()
        order.append(at)
        for child in children.get(at, ()):
            missing[child] -= 1
            if not missing[child]:
                ready.append(child)
    order += [at for at, left in enumerate(missing) if left]
    place = {at: number for number, at in enumerate(order)}
    for at, part in enumerate(parts):
        part.after = {place[parent] for parent in part.after if place[parent] < place[at]}
    return [parts[at] for at in order]


def _place_in_time(parts: list[RunPart]) -> None:
    """Parts after the first began when all was there that they waited for."""
    for part in parts:
        if part.number:
            part.start_ns = max([part.start_ns, *[parts[parent].end_ns for parent in part.after]])


def workflow_of_run(timeline: Timeline, name: str, nodes: int, workers: int) -> tuple[Workflow, Execution]:
    """The workflow, and when and where its tasks ran, on `nodes` nodes with `workers` workers each."""
    parts = parts_of(timeline)
    awaited = _awaited(parts)
    told = {parent for parents in awaited for parent in parents}
    builder = GraphBuilder()
    references: dict[int, int] = {}  # by object
    signs: dict[int, int] = {}  # by part: an object of 0 bytes and without a name, for those that only wait for it
    kinds = [timeline.name_of(part.kind) for part in parts]
    names = _Names()
    ids: list[str] = []
    files: list[str] = []
    outside: list[str] = []
    for at, part in enumerate(parts):
        ids.append(names.of(kinds[at], part))
        inputs: dict[int, None] = {}
        for object_, size_bytes in part.inputs:
            if object_ not in references:
                references[object_] = builder.add_external(size_bytes)
                outside.append(f"put_{len(outside):08d}")
            inputs[references[object_]] = None
        inputs |= dict.fromkeys([signs[parent] for parent in sorted(awaited[at])])
        sizes = [size_bytes for _, size_bytes in part.outputs] + ([0] if at in told else [])
        cores, memory_bytes = part.cores, part.memory_bytes
        made = builder.add_task(
            kinds[at], part.length_ns, list(inputs), sizes, cores=cores, memory_bytes=memory_bytes
        ).outputs
        references.update({object_: made[number] for number, (object_, _) in enumerate(part.outputs)})
        files += [f"{ids[-1]}.out{number}" for number in range(len(part.outputs))]
        if at in told:
            signs[at] = made[-1]
            files.append("")
    workflow = Workflow(
        name=name,
        format="graph",
        graph=builder.build(),
        task_ids=ids,
        task_names=kinds,
        programs=[""] * len(parts),
        arguments=[()] * len(parts),
        file_names=[*files, *outside],
        memory_bytes=np.array([part.memory_bytes for part in parts], np.int64),
    )
    return workflow, _execution(parts, nodes, workers)


def _awaited(parts: list[RunPart]) -> list[set[int]]:
    """The parts that each part comes after without reading their outputs."""
    producers: dict[int, int] = {}
    found: list[set[int]] = []
    for at, part in enumerate(parts):
        found.append(part.after - {producers.get(object_, -1) for object_, _ in part.inputs})
        producers.update(dict.fromkeys([object_ for object_, _ in part.outputs], at))
    return found


class _Names:
    """Ids of tasks: the name of the function, and a number."""

    def __init__(self) -> None:
        self._numbers = count()
        self._of_task: dict[int, str] = {}

    def of(self, name: str, part: RunPart) -> str:
        known = self._of_task.get(part.task)
        if known is None:
            known = self._of_task[part.task] = f"{name}_{next(self._numbers):08d}"
        return f"{known}.{part.number + 1}" if part.number else known


def _execution(parts: list[RunPart], nodes: int, workers: int) -> Execution:
    begun_ns = min([part.start_ns for part in parts], default=0)
    started_at = datetime.now(UTC) - timedelta(microseconds=(time.monotonic_ns() - begun_ns) // 1000)
    numbers = sorted({part.node for part in parts})
    if not numbers or numbers[-1] < nodes:
        numbers = [*range(nodes)]  # also nodes on which nothing ran
    place = {number: at for at, number in enumerate(numbers)}
    machines = [RecordedMachine(f"node-{number}", workers) for number in numbers]
    return Execution(
        np.array([part.start_ns - begun_ns for part in parts], np.int64),
        np.array([part.end_ns - begun_ns for part in parts], np.int64),
        np.array([place[part.node] for part in parts], np.int64),
        machines,
        started_at,
    )
