"""Facts about single tasks, for the question why: decisions, moves and runs, each with its place and time.

Nodes send facts as they happen; a process that may be asked keeps them, up to a number of tasks.
"""

from typing import Any

from msgspec import Struct

from daws.model.task import NodeId
from daws.runs.notes import News

TASKS_KEPT_MAX = 100_000
"""The number of tasks whose facts are kept; the oldest are dropped first."""


class Fact(Struct, frozen=True, array_like=True, tag=True):
    """`at_ns` is of the machine's monotonic clock."""

    task: int
    node: NodeId
    at_ns: int


class Decided(Fact, frozen=True):
    """An answer of the strategy was asked about the task; `reasons` are the numbers that it compared, and its choice.

    For `assign` the node is the one that was chosen, for all other decisions the one that asked.
    """

    decision: str
    answer: str
    reasons: dict[str, Any]


class Handed(Fact, frozen=True):
    """The node has claimed the task from another one. `why` is that of an Offer. `loads` are the loads of other nodes,
    as far as the thief knew them when it chose this one."""

    sender: NodeId
    why: int
    loads: tuple[tuple[NodeId, int], ...] = ()


class Sent(Fact, frozen=True):
    """A worker was given the task. `read_bytes` is the size of its inputs, `moved_bytes` of those that were made
    elsewhere."""

    slot: int
    attempt: int
    read_bytes: int
    moved_bytes: int


class RunFact(Fact, frozen=True):
    """A run came to its end, well or by raising something."""

    slot: int
    start_ns: int
    written_bytes: int
    is_good: bool


FactType = Decided | Handed | Sent | RunFact


class Facts:
    """Facts by task, in the order in which they arrived. One thread adds to them, any thread may read."""

    def __init__(self, tasks_max: int = TASKS_KEPT_MAX) -> None:
        self.tasks_max = tasks_max
        self._of: dict[int, list[FactType]] = {}

    def add(self, fact: FactType) -> None:
        known = self._of.get(fact.task)
        if known is not None:
            known.append(fact)
            return
        while len(self._of) >= self.tasks_max:
            del self._of[next(iter(self._of))]
        self._of[fact.task] = [fact]

    def ran(self, news: News) -> None:
        for task, _, node, slot, start_ns, end_ns, _, _, written, is_good in news.rows:
            self.add(RunFact(task, node, end_ns, slot, start_ns, written, bool(is_good)))

    def of(self, task: int) -> tuple[FactType, ...]:
        """The facts about a task in the order of their times; they may have arrived in another order."""
        return tuple(sorted(self._of.get(task, ()), key=lambda fact: fact.at_ns))

    def __repr__(self) -> str:
        return f"<Facts about {len(self._of):,} tasks>"
