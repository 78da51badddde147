"""The ends of tasks for a client, from the store's log: each end once, with the outputs or the exception.

Ends that were passed on are removed from the log: it has no other reader, and a session may go on for days.
"""

from daws.model.task import Input
from daws.runtime.blame import outcomes_of
from daws.store.memory import MemoryStore
from daws.store.memory.commits import CommitReader
from daws.wire.ends import Outcome
from daws.wire.store import LogRow, small_output

NODE = 0
"""The only node of a cluster whose node is in the client's process."""
LEASE_NS = 1 << 60
COPIES_MAX = 100
RETIRED_MAX = 1 << 14
"""How many tasks that are not needed any more the store of a live session remembers. On one machine messages are not
lost and come soon, so there are no messages about older tasks."""


def new_store() -> MemoryStore:
    """The store of a live session. The strategy decides how many copies of a task may race, and can be changed."""
    return MemoryStore(lease_ns=LEASE_NS, replicas_max=COPIES_MAX, direct=True, retired_max=RETIRED_MAX)


def ended_here(task: int, made: tuple[Input, ...] | bytes) -> Outcome:
    """The outcome of a task that ended well on the only node, from the answer of `Outcomes.done`."""
    return Outcome(task, made if isinstance(made, tuple) else small_output(task, NODE, made))


class Outcomes:
    """Stands beside a store of one shard, and empties its log."""

    def __init__(self, store: MemoryStore) -> None:
        self._commits = CommitReader(store)
        self._record_of = self._commits.record_of
        self.log: list[LogRow] = self._commits.rows

    def done(self) -> tuple[list[int], list[tuple[Input, ...] | bytes]] | None:
        """The tasks that were committed since the last call, with their outputs (bytes: the value of a single small
        object). None if there is more to report, as for failed tasks; then `news` has it."""
        return self._commits.take_plain()

    def news(self) -> list[Outcome]:
        """The outcomes of tasks that were committed since the last call."""
        return outcomes_of(self._commits.take(), self._record_of)
