"""Ends of tasks: told as they happen, and again to callers that ask.

A client or node that was not connected when a task ended asks for it by the task. The record has the outcome as long as
the task is held.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from daws.model.states import CANCELLED, DONE, FAILED
from daws.model.task import NodeId
from daws.runtime.blame import path_of
from daws.store.memory import MemoryStore
from daws.store.memory.record import Record, has_ended
from daws.wire.ends import Outcome
from daws.workers.roots import FailureBook, once_each

FAILURES_MIN = 1000
LOST = "the store does not know task {} any more: it was restarted without what it knew, or its session has ended"


class Ends:
    """The ends of tasks in a store of one shard. It empties the log of that shard."""

    def __init__(self, store: MemoryStore) -> None:
        self._shard = store.shards[0]
        self._shard.log.clear()  # callers know of these ends, or ask
        self.failures: dict[int, bytes] = {}  # what the last run of a task raised, or of the one to blame
        self._roots = FailureBook()  # those of tasks that were let go of as well
        self._sweep_at = FAILURES_MIN

    def keep_failure(self, task: int, failure: bytes) -> None:
        self.failures[task] = failure
        self._roots.keep(task, failure)

    def forget(self, task: int) -> None:
        """Its client has let go of it."""
        if self.failures:
            self.failures.pop(task, None)

    def news(self) -> list[Outcome]:
        """The outcomes of tasks that were committed since the last call."""
        log = self._shard.log
        rows = log[:]
        log.clear()
        outcomes: list[Outcome] = []
        record_of, is_usual = self._shard.records.get, not self.failures
        for row in rows:
            task = row if isinstance(row, int) else row[0]
            record = record_of(task)
            if is_usual and record is not None and record.state == DONE:
                outcomes.append(Outcome(task, record.outputs))  # as `_outcome` would
            elif record is not None:  # else it is not held, and already forgotten
                outcomes.append(self._outcome(task, record))
            elif not isinstance(row, int) and row[1] != DONE:
                outcomes.append(Outcome(task, (), row[1], row[2], self.failures.get(task, b"")))
        if len(self.failures) >= self._sweep_at:
            self._sweep()
        return outcomes

    def _sweep(self) -> None:
        """Drop failures of tasks that the store has forgotten. No client releases tasks that were not held when they
        failed, or tasks that runs have created."""
        records = self._shard.records
        self.failures = {task: one for task, one in self.failures.items() if records.get(task) is not None}
        self._sweep_at = max(FAILURES_MIN, 2 * len(self.failures))

    def of(self, tasks: Iterable[int], unknown_are_lost: bool) -> list[Outcome]:
        """The outcomes of those tasks that have ended. With `unknown_are_lost`, a task that the store does not know has
        failed."""
        outcomes: list[Outcome] = []
        records = self._shard.records
        for task in tasks:
            record = records.get(task)
            if record is None:
                if unknown_are_lost:
                    outcomes.append(Outcome(task, (), FAILED, LOST.format(task)))
            elif has_ended(record):
                outcomes.append(self._outcome(task, record))
        return outcomes

    def forgotten(self, tasks: Iterable[int]) -> list[int]:
        return [task for task in tasks if self._shard.records.get(task) is None]

    def creator_of(self, task: int) -> NodeId:
        """The node of the run that has created a task."""
        record = self._shard.records.get(task)
        return -1 if record is None else record.spec.home

    def _outcome(self, task: int, record: Record) -> Outcome:
        if record.state in (FAILED, CANCELLED):
            error = record.rare.error if record.rare is not None else ""
            failure = self._failure(task, error)
            return Outcome(task, (), record.state, error, failure, path_of(record, self._shard.records.get))
        self.forget(task)  # of an earlier run
        return Outcome(task, record.outputs)

    def _failure(self, task: int, error: str) -> bytes:
        """The exception of a task, or of the task that it failed because of. It is kept, because a holder of the task
        may ask again."""
        failure = self.failures.get(task, b"")
        if not failure and (failure := self._roots.find(task, error)[1]):
            self.failures[task] = failure
        return failure


def with_each_failure_once(outcomes: list[Outcome]) -> list[Outcome]:
    """Keep each failure in one outcome only, for a message to one listener. A hundred thousand tasks may have failed
    because of one."""
    bad = [at for at, one in enumerate(outcomes) if one.failure]
    if len(bad) > 1:
        for at, failure in zip(bad, once_each([(outcomes[at].error, outcomes[at].failure) for at in bad]), strict=True):
            if not failure:
                outcomes[at] = replace(outcomes[at], failure=b"")
    return outcomes
