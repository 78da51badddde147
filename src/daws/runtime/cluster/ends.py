"""Ends of tasks: told as they happen, and again to callers that ask.

A client or node that was not connected when a task ended asks for it by the task. The record has the outcome as long as
the task is held.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from daws.model.states import CANCELLED, DONE, FAILED
from daws.model.task import NodeId
from daws.runtime.blame import path_of, raised_of
from daws.store.memory import MemoryStore
from daws.store.memory.record import Record, has_ended
from daws.store.memory.snapshot import commit_count, commits_since
from daws.wire.ends import Outcome
from daws.workers.roots import once_each

LOST = "the store does not know task {} any more: it was restarted without what it knew, or its session has ended"


class StoreEnds:
    """The ends of tasks in a store of one shard, read from its log."""

    def __init__(self, store: MemoryStore) -> None:
        self.read_to = commit_count(store, 0)  # callers know of the ends before, or ask
        self._store = store

    def news(self) -> list[Outcome]:
        """The outcomes of tasks that were committed since the last call."""
        rows = commits_since(self._store, 0, self.read_to)
        self.read_to += len(rows)
        outcomes: list[Outcome] = []
        record_of = self._store.record
        for row in rows:
            task = row if isinstance(row, int) else row[0]
            record = record_of(task)
            if record is not None and record.state == DONE:
                outcomes.append(Outcome(task, record.outputs))  # as `_outcome` would
            elif record is not None:  # else it is not held, and already forgotten
                outcomes.append(self._outcome(task, record))
            elif not isinstance(row, int) and row[1] != DONE:
                outcomes.append(Outcome(task, (), row[1], row[2]))
        return outcomes

    def of(self, tasks: Iterable[int], unknown_are_lost: bool) -> list[Outcome]:
        """The outcomes of those tasks that have ended. With `unknown_are_lost`, a task that the store does not know has
        failed."""
        outcomes: list[Outcome] = []
        for task in tasks:
            record = self._store.record(task)
            if record is None:
                if unknown_are_lost:
                    outcomes.append(Outcome(task, (), FAILED, LOST.format(task)))
            elif has_ended(record):
                outcomes.append(self._outcome(task, record))
        return outcomes

    def forgotten(self, tasks: Iterable[int]) -> list[int]:
        return [task for task in tasks if self._store.record(task) is None]

    def creator_of(self, task: int) -> NodeId:
        """The node of the run that has created a task."""
        record = self._store.record(task)
        return -1 if record is None else record.spec.home

    def _outcome(self, task: int, record: Record) -> Outcome:
        if record.state not in (FAILED, CANCELLED):
            return Outcome(task, record.outputs)
        find = self._store.record
        error = record.rare.error if record.rare is not None else ""
        return Outcome(task, (), record.state, error, raised_of(record, find), path_of(record, find))


def with_each_failure_once(outcomes: list[Outcome]) -> list[Outcome]:
    """Keep each failure in one outcome only, for a message to one listener. A hundred thousand tasks may have failed
    because of one."""
    bad = [at for at, one in enumerate(outcomes) if one.failure]
    if len(bad) > 1:
        for at, failure in zip(bad, once_each([(outcomes[at].error, outcomes[at].failure) for at in bad]), strict=True):
            if not failure:
                outcomes[at] = replace(outcomes[at], failure=b"")
    return outcomes
