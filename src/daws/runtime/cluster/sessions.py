"""The sessions of a cluster: what clients have left in the store, and who waits for it.

A session ends when its client says so, or when a client is gone for longer than a lease and had not asked to keep it.
Then what has not ended is cancelled (by a node, as any cancel), and what has is let go of. Tasks that its runs have
created and not waited for still run; its functions stay until they have.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from daws.model.states import CANCELLED, DONE, FAILED, FINAL, READY
from daws.model.task import AGAIN, FIRST_SPAWNED_ID, FROM_OUTSIDE, Ready
from daws.runtime.cluster.book import Entry
from daws.runtime.cluster.words import SESSION_BITS, SessionInfo, session_of
from daws.store.memory import MemoryStore
from daws.store.memory.record import Record, has_ended, ready_of
from daws.wire.store import AnswerType, Submit

if TYPE_CHECKING:
    from daws.runtime.cluster.callers import Caller

CANCELLED_AT_ONCE = 4096
LINGER_S = 5.0
"""How often a session that is about to end checks whether the tasks that it has to wait for have ended."""


class Session:
    """A session and its client. `nonce` identifies the client that has opened it, in case it asks twice."""

    def __init__(self, entry: Entry, nonce: bytes = b"") -> None:
        self.entry = entry
        self.nonce = nonce
        self.client: Caller | None = None
        self.gone_at_s = 0.0  # since when it has no client
        self.is_ending = False
        self.notes = (False, False)  # does its client want to hear of runs, and of decisions?
        self.look_at_s = 0.0  # when it is looked at again whether it can end

    def is_away(self, now_s: float, patience_s: float) -> bool:
        return self.client is None and now_s - self.gone_at_s > patience_s

    def is_abandoned(self, now_s: float, patience_s: float) -> bool:
        return not self.entry.kept and self.is_away(now_s, patience_s)


def records_of(store: MemoryStore, session: int) -> Iterator[tuple[int, Record]]:
    """All that a session has in the store (a long search, for rare questions)."""
    for task, record in store.shards[0].records.items():
        if record is not None and session_of(task) == session:
            yield task, record


def is_function(record: Record) -> bool:
    """Functions are kept like objects that were put in, except that they are at no place."""
    return record.spec.kind == FROM_OUTSIDE and bool(record.outputs) and not record.outputs[0][3]


def kinds_needed(store: MemoryStore) -> set[int]:
    """The kinds of tasks that runs have created and that have not ended. Such tasks may outlive the session of these
    runs."""
    return {
        record.spec.kind
        for task, record in store.shards[0].records.items()
        if task >= FIRST_SPAWNED_ID and record is not None and record.state not in FINAL
    }


def tasks_of(store: MemoryStore, session: int) -> tuple[list[tuple[int, int]], int]:
    """The tasks that a session holds, with the number of their outputs, and the first number that is free. Leaves are
    left out: clients make them to read something."""
    tasks: list[tuple[int, int]] = []
    next_task = session << SESSION_BITS
    for task, record in records_of(store, session):
        next_task = max(next_task, task + 1)
        if record.held and not record.spec.leaf and not is_function(record):
            tasks.append((task, len(record.spec.outputs)))
    return sorted(tasks), next_task


def unfinished_of(store: MemoryStore, session: int) -> list[int]:
    """Some of the tasks that have not ended."""
    found: list[int] = []
    for task, record in records_of(store, session):
        if not has_ended(record):
            found.append(task)
            if len(found) == CANCELLED_AT_ONCE:
                break
    return found


def held_of(store: MemoryStore, session: int) -> list[int]:
    return [task for task, record in records_of(store, session) if record.held]


def info_of(store: MemoryStore, session: Session) -> SessionInfo:
    waiting = done = failed = 0
    for _, record in records_of(store, session.entry.number):
        if record.spec.kind == FROM_OUTSIDE or not record.held:
            continue
        if record.state in (FAILED, CANCELLED):
            failed += 1
        elif record.state == DONE:
            done += 1
        else:
            waiting += 1
    entry = session.entry
    return SessionInfo(
        entry.number, entry.name, entry.kept, session.client is not None, entry.since, waiting, done, failed
    )


def to_hand_out(store: MemoryStore, row: Submit, answer: AnswerType, is_known: bool) -> Ready | None:
    """A task of a client that its owner has yet to hear of. If it was known before, because the client says it again,
    the owner may have heard of it."""
    if row.outputs:
        return None
    if is_known:
        record = store.record(row.spec.id)
        if record is None or record.state != READY or record.owner != row.node:
            return None
        return ready_of(record, AGAIN)
    if isinstance(answer, Ready):
        return answer
    return None if row.parents else Ready(row.spec, 0, 0)
