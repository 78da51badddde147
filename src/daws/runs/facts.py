"""What is remembered of single tasks for those who ask why: decisions, moves and runs, each with its place and time.

Nodes tell facts as they happen; whoever may be asked keeps them, up to a number of tasks.
"""

from typing import Any

from msgspec import Struct

from daws.model.task import NodeId
from daws.runs.notes import News

TASKS_KEPT_MAX = 100_000
"""Of so many tasks the facts are kept; those heard of first are forgotten first."""


class Fact(Struct, frozen=True, array_like=True, tag=True):
    """`at_ns` is of the machine's monotonic clock."""

    task: int
    node: NodeId
    at_ns: int


class Decided(Fact, frozen=True):
    """An answer of the strategy was asked about the task; `reasons` are the numbers that it compared, and its choice.

    For `assign` the node is the one that was chosen, for all others the one that asked.
    """

    decision: str
    answer: str
    reasons: dict[str, Any]


class Handed(Fact, frozen=True):
    """The node has claimed the task from another one. `why` is that of an Offer; `loads` is what a thief knew of others
    when it turned to this one, and how much they had to steal."""

    sender: NodeId
    why: int
    loads: tuple[tuple[NodeId, int], ...] = ()


class Sent(Fact, frozen=True):
    """A worker was given the task. `read_bytes` is what it reads, `moved_bytes` what of that was made elsewhere."""

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
    """By task, in the order in which they were told. Added to by one thread, read by any."""

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
        """In the order of their times: two nodes may be heard in another one."""
        return tuple(sorted(self._of.get(task, ()), key=lambda fact: fact.at_ns))

    def __repr__(self) -> str:
        return f"<Facts about {len(self._of):,} tasks>"
