"""Failures that nobody has asked about, so that closing the cluster can tell of them."""

from typing import Any

NAMED_MAX = 64
"""The number of failures whose errors are kept."""
COUNTED_MAX = 1 << 17
"""The number of failed tasks that are known by their numbers."""


class Unseen:
    """Tasks that failed, and tasks of `map` with items that failed, until somebody asks how they ended.

    Failures are added by the thread of the engine, and removed by any thread.
    """

    __slots__ = ("_items", "_left_out", "_named", "_spoiled")

    def __init__(self) -> None:
        self._items: dict[int, int] = {}  # by task: how many of its items failed, 0 if the task itself did
        self._named: dict[int, Any] = {}  # by task, of the first ones: what it raised
        self._spoiled: dict[int, None] = {}  # tasks with items that failed, also if these were asked about
        self._left_out = False

    def __bool__(self) -> bool:
        return bool(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, task: int, what: Any, items: int = 0) -> None:
        """`what` is how the task ended, the exception that ended it, or what its first failed item raised as text."""
        if len(self._items) >= COUNTED_MAX:
            self._left_out = True
            return
        self._items[task] = items
        if len(self._named) < NAMED_MAX:
            self._named[task] = what

    def add_items(self, task: int, items: int, first: str) -> None:
        """Count items of a task that have failed; the task may not have ended yet."""
        self._spoiled[task] = None
        if len(self._spoiled) > COUNTED_MAX:
            del self._spoiled[next(iter(self._spoiled))]
        self.add(task, first, items)

    def remove(self, task: int) -> None:
        """Somebody knows how this task ended."""
        self._items.pop(task, None)
        self._named.pop(task, None)

    def has_failed_items(self, task: int) -> bool:
        """May items of this task have failed? Not if it has ended and nothing was said."""
        return task in self._spoiled or len(self._spoiled) >= COUNTED_MAX

    def take(self) -> tuple[str, tuple[int, Any] | None]:
        """How many tasks and items failed, in words, and one of them: its task, and what it raised. Empty if none did.

        From now on they count as asked about.
        """
        counts = [*self._items.copy().values()]
        named = next(iter(self._named.copy().items()), None)
        self._items.clear()
        self._named.clear()
        tasks, items = counts.count(0), sum(counts)
        parts = [
            f"{count:,} {noun if count == 1 else nouns}"
            for count, noun, nouns in ((tasks, "task", "tasks"), (items, "item of a map", "items of maps"))
            if count
        ]
        return ("more than " if self._left_out and parts else "") + " and ".join(parts), named
