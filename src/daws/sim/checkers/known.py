"""Facts that the checkers have collected so far."""

from collections import defaultdict
from typing import TYPE_CHECKING, NoReturn

from daws.core.effects import StartRun
from daws.model.errors import InternalError
from daws.model.task import NodeId

if TYPE_CHECKING:
    from daws.sim.kernel import Kernel

NODE_BITS = 64
NODE_MASK = (1 << NODE_BITS) - 1


def run_key(node: NodeId, attempt: int) -> int:
    """A run as one number. A first attempt is named by its node: that number exists already, so it costs no memory."""
    return attempt << NODE_BITS | node if attempt else node


class Sparse(dict[int, int | None]):
    """A number per task where graphs grow: the ids of spawned tasks are no indices."""

    def __missing__(self, task: int) -> None:
        return None


def _never(task: int) -> bool:
    return False


PerTask = list[int | None] | Sparse
"""A number per task, None while it has none. Eight bytes per task, in all graphs but those that grow."""


class Violation(InternalError):
    """Something happened that the rules forbid."""


class Known:
    """Facts that more than one checker needs.

    Nearly every task has one attempt, started and committed once: these facts are kept in columns. The facts about all
    other tasks are in dictionaries that stay small.
    """

    def __init__(self, kernel: "Kernel") -> None:
        self.kernel = kernel
        self.graph = kernel.graph
        self.count = kernel.graph.task_count
        self.committed = self.per_task()  # the run that won, of a remade task the latest
        self.started = self.per_task()  # who ran the first attempt first
        self.first: dict[int, int] = {}  # the attempt that won where it was not the first one
        self.remade: dict[int, int] = {}  # which attempt the store let somebody have, to make lost objects again
        self.ended: dict[int, int] = {}  # final state of those that did not end well
        self.attempts: dict[int, int] = {}  # the latest attempt that was started, where it was not the first one
        self.attempted_ns: dict[int, int] = {}  # when it was started
        self.eventful = False  # some task has failed, was cancelled or was started a second time
        self.running: defaultdict[NodeId, dict[int, StartRun]] = defaultdict(dict)  # by node and task
        self.may_be_lost = _never  # can nobody make again what this task has made?

    def per_task(self) -> PerTask:
        return Sparse() if self.graph.growth else [None] * self.count

    def fail(self, what: str) -> NoReturn:
        raise Violation(f"at {self.kernel.now_ns / 1e9:.6f} s of seed {self.kernel.seed}: {what}")

    def has_ended(self, task: int) -> bool:
        return self.committed[task] is not None or task in self.ended

    @property
    def healed_ns(self) -> int:
        """The time after which no fault happens any more, and every node knows of all the faults before."""
        faults = self.kernel.faults
        return 0 if faults is None else int(faults.plan.horizon_ns + self.kernel.config.lease_ns)
