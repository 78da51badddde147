"""The search for all that a session has in the store, for a client that attaches to it or ends it.

Each shard is asked page by page. First it says how far its log is, so that an end is seen either in what is found, or
in the log behind that number.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from daws.wire.store import LOG_END, AnswerType, FindHeld, HeldTask, HeldTasks, ReadLog

if TYPE_CHECKING:
    from daws.core.session import SessionCore

Found = Callable[["SessionCore", list[HeldTask], int], None]
"""Called when all shards have answered, with all tasks and the first number that is free."""


class Finding:
    """A search through all shards; a new one replaces the one before."""

    __slots__ = ("_found", "_left", "_next", "_session", "_spawned", "_tasks", "spawned")

    def __init__(self) -> None:
        self._session = 0
        self._left: dict[int, int] = {}  # shard -> from which task on it was asked
        self._tasks: list[HeldTask] = []
        self._next = 0
        self._found: Found | None = None
        self._spawned = False
        self.spawned = 0  # tasks that runs have created and that have not ended, if these were looked for

    @property
    def is_under_way(self) -> bool:
        return bool(self._left)

    def begins_with(self, shard: int) -> bool:
        """Nothing was found in this shard yet."""
        return self._left.get(shard) == 0

    def begin(self, core: "SessionCore", found: Found, reads_logs: bool, spawned: bool = False) -> None:
        """Begin a search; `spawned`: also for what the runs of the session have created."""
        self._spawned, self.spawned = spawned, 0
        self._session = core.session
        self._left = dict.fromkeys(range(core.shard_count), 0)
        self._tasks = []
        self._next = 0
        self._found = found
        for shard in self._left:
            if reads_logs:
                core.calls.ask(shard, ReadLog(LOG_END))
            core.calls.ask(shard, FindHeld(core.session, spawned=spawned))

    def begin_anew(self, core: "SessionCore", shard: int) -> None:
        """Another server answers for a shard: what was found there may be lost."""
        if self._left and self._found is not None:
            self.begin(core, self._found, False, self._spawned)

    def on_found(self, core: "SessionCore", shard: int, row: FindHeld, answer: AnswerType) -> None:
        if not isinstance(answer, HeldTasks) or row.session != self._session or self._left.get(shard) != row.start:
            return
        self._tasks += answer.tasks
        self._next = max(self._next, answer.next)
        if core.takes_tasks:
            for owner, ready in answer.ready:
                core.hand_outs.add(owner, ready)
            for submit in answer.unfinished:
                core.writing.complete(core, submit)
        if answer.more:
            self._left[shard] = answer.tasks[-1].task + 1
            core.calls.ask(shard, FindHeld(row.session, self._left[shard], spawned=self._spawned))
            return
        del self._left[shard]
        self.spawned += answer.spawned
        if not self._left and self._found is not None:
            tasks, self._tasks = self._tasks, []
            self._found(core, tasks, self._next)
