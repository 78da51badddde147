"""A builder of graphs: tasks are added one by one, and `build()` makes the columns."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from daws.model.columns import Int64s, check_number
from daws.model.context import Context, check_context
from daws.model.errors import GraphError
from daws.model.graph import TOTAL_MAX, Graph


class TaskHandle(NamedTuple):
    """A task in a builder: its final id, and references to the objects that it makes."""

    id: int
    outputs: tuple[int, ...]


class GraphBuilder:
    """A builder that grows a graph task by task. `build()` may be called at any time and returns a new value each time.

    Objects are named by references. The reference of a task's output is its final id, because outputs are numbered in
    the order in which tasks are added. Objects from outside come last in a graph, so their ids change while it grows.
    Their references are negative (-1, -2, …), and `object_id` returns the id in a graph built now. A task can only read
    objects that exist already, so a builder cannot make a cycle.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, int] = {}
        self._contexts: dict[Context | None, int] = {None: 0}
        self._kind = array("i")
        self._length_ns = array("q")
        self._context = array("i")
        self._priority = array("i")
        self._cores = array("h")
        self._estimate_ns: dict[int, int] = {}  # few tasks, or none, say these two
        self._memory_bytes: dict[int, int] = {}
        self._input_start = array("q", [0])
        self._inputs = array("q")
        self._output_start = array("q", [0])
        self._output_bytes = array("q")
        self._external_bytes = array("q")

    @property
    def task_count(self) -> int:
        return len(self._kind)

    def add_external(self, size_bytes: int) -> int:
        """Add an object from outside, and return its reference."""
        check_number("an object from outside has a size", size_bytes, 0, TOTAL_MAX)
        self._external_bytes.append(size_bytes)
        return -len(self._external_bytes)

    def add_task(
        self,
        kind: str,
        length_ns: int,
        inputs: Sequence[int | TaskHandle] = (),
        outputs_bytes: Sequence[int] = (),
        context: Context | None = None,
        priority: int = 0,
        cores: int = 1,
        estimate_ns: int = 0,
        memory_bytes: int = 0,
    ) -> TaskHandle:
        """Add a task. `inputs` are references to objects, or handles of tasks, which stand for all their outputs.

        `length_ns` is how long the task really runs, `estimate_ns` how long it is expected to run (0: unknown).
        """
        name = f"task {self.task_count} ({kind})"
        check_number(f"{name} has a length in ns", length_ns, 0, TOTAL_MAX)
        check_number(f"{name} has a priority", priority, -(2**31), 2**31 - 1)
        check_number(f"{name} needs cores", cores, 1, 2**15 - 1)
        check_number(f"{name} has an estimate in ns", estimate_ns, 0, TOTAL_MAX)
        check_number(f"{name} needs memory", memory_bytes, 0, TOTAL_MAX)
        for size_bytes in outputs_bytes:
            check_number(f"{name} makes an object with a size", size_bytes, 0, TOTAL_MAX)
        if context not in self._contexts:
            check_context(context)
        references = self._references(name, inputs)  # the last check: nothing has changed if it raises
        first = len(self._output_bytes)
        self._kind.append(self._kinds.setdefault(kind, len(self._kinds)))
        self._length_ns.append(length_ns)
        self._context.append(self._contexts.setdefault(context, len(self._contexts)))
        self._priority.append(priority)
        self._cores.append(cores)
        if estimate_ns:
            self._estimate_ns[self.task_count - 1] = estimate_ns
        if memory_bytes:
            self._memory_bytes[self.task_count - 1] = memory_bytes
        self._inputs.extend(references)
        self._input_start.append(len(self._inputs))
        self._output_bytes.extend(outputs_bytes)
        self._output_start.append(len(self._output_bytes))
        return TaskHandle(self.task_count - 1, tuple(range(first, len(self._output_bytes))))

    def object_id(self, reference: int) -> int:
        """The id that a reference has in a graph built now."""
        return reference if reference >= 0 else len(self._output_bytes) - 1 - reference

    def build(self) -> Graph:
        inputs = np.array(self._inputs, np.int64)
        outside = inputs < 0
        inputs[outside] = len(self._output_bytes) - 1 - inputs[outside]
        # np.array copies: a view would forbid the builder's arrays to grow.
        return Graph(
            kinds=tuple(self._kinds),
            contexts=tuple(self._contexts),
            kind=np.array(self._kind, np.int32),
            length_ns=np.array(self._length_ns, np.int64),
            context=np.array(self._context, np.int32),
            priority=np.array(self._priority, np.int32),
            cores=np.array(self._cores, np.int16),
            input_start=np.array(self._input_start, np.int64),
            inputs=inputs,
            output_start=np.array(self._output_start, np.int64),
            object_bytes=np.concatenate(
                [np.array(self._output_bytes, np.int64), np.array(self._external_bytes, np.int64)]
            ),
            estimate_ns=self._optional(self._estimate_ns),
            memory_bytes=self._optional(self._memory_bytes),
        )

    def _optional(self, known: dict[int, int]) -> Int64s | None:
        if not known:
            return None
        values = np.zeros(self.task_count, np.int64)
        values[list(known)] = list(known.values())
        return values

    def _references(self, name: str, inputs: Sequence[int | TaskHandle]) -> list[int]:
        references: list[int] = []
        for given in inputs:
            if isinstance(given, TaskHandle):
                if not given.outputs:
                    raise GraphError(
                        f"{name} cannot wait for task {given.id}, which makes no object; give it one of 0 bytes"
                    )
                references.extend(given.outputs)
            elif not -len(self._external_bytes) <= given < len(self._output_bytes):
                raise GraphError(f"{name} reads object {given}, which does not exist (yet)")
            else:
                references.append(given)
        return references
