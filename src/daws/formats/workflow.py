"""The content of a workflow file: a graph, and beside it the data that a graph does not hold.

Everything per task or per object is a column, as in the graph; strings that repeat are kept once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from daws.model.columns import Int64s
from daws.model.graph import Graph


@dataclass(frozen=True, slots=True, eq=False)
class Workflow:
    """A graph with names. The data of task `t` or object `o` of the graph is at that index of a column.

    `task_ids` are unique, `task_names` need not be. A program is empty if the file gives no command. `file_names` has
    an empty name for objects that only make one task wait for another, and one name twice if a file has several
    writers. `memory_bytes` is 0 if unknown. `makespan_s` is that of the run which the file describes, 0 if none.
    `notes` say which repairs were needed to make sense of the file.
    """

    name: str
    format: str
    graph: Graph
    task_ids: Sequence[str]
    task_names: Sequence[str]
    programs: Sequence[str]
    arguments: Sequence[tuple[str, ...]]
    file_names: Sequence[str]
    memory_bytes: Int64s
    makespan_s: float = 0.0
    notes: tuple[str, ...] = ()

    def command_of(self, task: int) -> tuple[str, ...]:
        """Program and arguments of a task; empty where the file gives none."""
        return (self.programs[task], *self.arguments[task]) if self.programs[task] else ()

    def scaled(self, time: float = 1.0, data: float = 1.0) -> "Workflow":
        """The same workflow with all lengths and all sizes multiplied."""
        return replace(self, graph=self.graph.scaled(time, data))

    def __repr__(self) -> str:
        return f"<Workflow {self.name!r} ({self.format}) of {self.graph.task_count} tasks>"


def workflow_of(graph: Graph, name: str) -> Workflow:
    """A workflow around a graph that came from elsewhere; ids and file names are made up."""
    count = graph.task_count
    kinds: list[int] = graph.kind.tolist()
    width = max(8, len(str(count)))
    ids = [f"{graph.kinds[kind]}_{task:0{width}d}" for task, kind in enumerate(kinds)]
    files = [""] * graph.object_count
    for task, (first, end) in enumerate(
        zip(graph.output_start.tolist(), graph.output_start[1:].tolist(), strict=False)
    ):
        for number in range(first, end):
            files[number] = f"{ids[task]}.out{number - first}"
    for number in range(graph.external_start, graph.object_count):
        files[number] = f"input_{number - graph.external_start:0{width}d}"
    return Workflow(
        name=name,
        format="graph",
        graph=graph,
        task_ids=ids,
        task_names=[graph.kinds[kind] for kind in kinds],
        programs=[""] * count,
        arguments=[()] * count,
        file_names=files,
        memory_bytes=np.zeros(count, np.int64) if graph.memory_bytes is None else graph.memory_bytes,
    )
