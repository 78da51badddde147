"""How tasks end, as nodes and stores tell it to clients and to the runs that have created the tasks."""

from msgspec import Struct

from daws.model.task import Input

Path = tuple[tuple[int, int], ...]
"""The path from a task that was not run towards its root, which is not part of it: tasks with the numbers of their
functions."""


class Outcome(Struct, frozen=True, array_like=True, gc=False):
    """How a task ended: its outputs, or its state, the reason, and the exception as it travels.

    `state` is 0 if all went well. `path` leads from a task that failed because of another task to that task (see
    `daws.workers.roots`).
    """

    task: int
    outputs: tuple[Input, ...] = ()
    state: int = 0
    error: str = ""
    failure: bytes = b""
    path: Path = ()
