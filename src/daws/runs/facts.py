"""Facts about single tasks, for the question why: decisions, moves and runs, each with its place and time.

Nodes send facts as they happen; a process that may be asked keeps them, up to a number of tasks.
"""

from daws.wire.notes import FactType, News, RunFact

TASKS_KEPT_MAX = 100_000
"""The number of tasks whose facts are kept; the oldest are dropped first."""


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
