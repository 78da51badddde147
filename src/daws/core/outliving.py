"""Runs that have outlived all tasks that they created, and so need not wait until these are safe (rule 11).

A run ends no sooner than what it has created is safe, because a store of several shards may forget the one and remember
the other. That is for tasks which are yet to run, and for others which need them. The tasks that a run holds serve the
run itself and the other tasks that it has created. If all of these have ended, they have had their effect, and no task
is left that could miss them. Therefore the node asks the store once when such a run ends. If one of them has not ended,
all have to be safe: it may need another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from daws.core.empty import shared_part
from daws.core.executors import Run
from daws.core.store_calls import ask
from daws.model.task import spawned_id
from daws.wire.store import CLIENT_HOLDER, Inspect, Release

if TYPE_CHECKING:
    from daws.core.node import NodeCore


class Spawning:
    """Tasks that runs of this node create, and functions that they bring in."""

    __slots__ = ("brought", "growing", "outliving")

    def __init__(self) -> None:
        # By task and by whether the task waits: those on their way through the store. If the store has forgotten
        # things, a task may be created that waits already.
        self.growing: dict[tuple[int, bool], Any] = {}
        # By function that is on its way to the store: the runs that have brought it in.
        self.brought: dict[int, list[Run]] = {}
        # By task: the run that created it and has ended, and those of its tasks that have not.
        self.outliving: dict[int, tuple[Run, set[int]]] = {}

    def bring_in(self, function: int, run: Run) -> None:
        self.brought.setdefault(function, []).append(run)

    def brought_in(self, function: int) -> list[Run]:
        """The runs that have waited until the store has this function."""
        return self.brought.pop(function, [])


NO_SPAWNING = shared_part(Spawning())
"""Shared by all nodes whose runs create no tasks. `own_spawning` creates a node's own."""


def own_spawning(core: NodeCore) -> Spawning:
    """The `Spawning` of this node, to change something."""
    if core.spawning is NO_SPAWNING:
        core.spawning = Spawning()
    return core.spawning


def end_waiting(core: NodeCore, task: int) -> None:
    """A run is over: it waits for nothing any more."""
    core.spawning.growing.pop((task, True), None)


def spawned_by(run: Run) -> list[int]:
    return [spawned_id(run.ready.spec.id, run.ready.attempt, number) for number in range(run.spawned)]


def ask_whether_outlived(core: NodeCore, run: Run) -> None:
    """A run has ended, and what it has created is not safe."""
    names = spawned_by(run)
    left = set(names)
    outliving = own_spawning(core).outliving
    for name in names:
        outliving[name] = (run, left)
        ask(core, name, Inspect(name, brief=True))


def outlived_by(core: NodeCore, task: int) -> Run | None:
    """A task has ended. The run that created it, if that has ended too, and this was the last of its tasks."""
    run, left = core.spawning.outliving.get(task, (None, set()))
    left.discard(task)
    return None if left else run


def forget_spawned(core: NodeCore, names: list[int]) -> None:
    """The run that has created them is over."""
    if core.spawning.outliving:
        for name in names:
            core.spawning.outliving.pop(name, None)


def let_go_of_spawned(core: NodeCore, run: Run) -> None:
    """A run is over: it neither waits for the tasks that it spawned nor asks for what they made."""
    names = spawned_by(run)
    forget_spawned(core, names)
    for name in names:
        ask(core, name, Release(name, CLIENT_HOLDER))
