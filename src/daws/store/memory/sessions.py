"""Sessions: their clients, the sessions that go on without one, and their tasks in a shard.

The list of sessions lives in shard 0. A session's client renews a lease by the store's clock, as nodes do. When the
lease has expired, another client may attach to a session that is kept; a sweeper ends the others. A shard that was told
that a session is closed takes no more tasks of it, so late messages of a dead client do no harm.

Runs of a session create tasks, and bring in functions that only these tasks need. Both belong to the session, which
follows from their numbers alone (`owner_of`): no field of a task or row is spent on it. Tasks that runs have created
and not waited for may outlive the client of their session, and may create others. A closed shard therefore still takes
such tasks and functions. The client or sweeper that ends the session waits until all of them have ended
(`HeldTasks.spawned`). Then it lets go of functions and all else, and has everything forgotten (`ForgetSession`). A
task can be missed, because shards are searched one after the other. Then its creator has ended between the searches of
the two shards. The task fails if it needs a function that is gone: a shard that has forgotten a session takes no more
functions of it, since nobody would let go of them.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from daws.model.states import DONE as STATE_DONE
from daws.model.states import FINAL, READY, WAITING
from daws.model.task import AGAIN, FIRST_SPAWNED_ID, FROM_OUTSIDE, NOBODY, NodeId, Ready
from daws.store.memory.closed import FUNCTIONS, close
from daws.store.memory.record import Record, has_ended, is_held, ready_of
from daws.store.memory.references import forget, has_intent
from daws.store.memory.store import MemoryStore, Shard, serves
from daws.wire import store as wire
from daws.wire.store import (
    CANCELLED,
    NO_SESSION,
    OK,
    REFUSED,
    SESSION_BITS,
    TO_END,
    TO_SWEEP,
    TO_USE,
    UNDERWAY,
    AnswerType,
    HeldTask,
    SessionEntry,
    Submit,
    owner_of,
    shard_of,
)


def is_attached(store: MemoryStore, entry: SessionEntry, now_ns: int) -> bool:
    return bool(entry.nonce) and store.session_leases.get(entry.number, 0) > now_ns


def attachment(store: MemoryStore, row: wire.AttachSession, now_ns: int) -> SessionEntry | int:
    """The entry of a session as it is when the caller has it, or the reason why the caller cannot have it. Changes
    nothing."""
    entry = _meant(store, row)
    if entry is None:
        if row.session != NO_SESSION or row.why != TO_USE:
            return REFUSED
        number = row.proposal if row.proposal != NO_SESSION else store.session_count + 1
        return SessionEntry(number, row.name or f"session-{number}", row.kept, row.nonce, now_ns)
    if entry.nonce != row.nonce:
        if row.why != TO_END and is_attached(store, entry, now_ns):
            return UNDERWAY
        if row.why == TO_USE and row.session != NO_SESSION:
            return REFUSED  # this client was away for too long, and another one came
        if row.why == TO_SWEEP and not entry.nonce and not entry.ending:
            return REFUSED  # its client has left it in good order
    if row.why == TO_USE and entry.ending:
        return CANCELLED
    ends = row.why == TO_END or (row.why == TO_SWEEP and not entry.kept)
    clients = entry.clients + (entry.nonce != row.nonce)
    kept, ending = entry.kept or row.kept, entry.ending or ends
    return replace(entry, nonce=row.nonce, kept=kept, ending=ending, clients=clients)


def _meant(store: MemoryStore, row: wire.AttachSession) -> SessionEntry | None:
    if row.session != NO_SESSION:
        return store.sessions.get(row.session)
    for entry in store.sessions.values():
        if entry.nonce == row.nonce or (row.name and entry.name == row.name):
            return entry
    return None


@serves(wire.AttachSession)
def attach(store: MemoryStore, shard: Shard, row: wire.AttachSession, now_ns: int) -> AnswerType:
    store.touched -= 1  # repeated as a lease is
    entry = attachment(store, row, now_ns)
    if isinstance(entry, int):
        return entry
    store.sessions[entry.number] = entry
    store.session_count = max(store.session_count, entry.number)
    store.session_leases[entry.number] = now_ns + store.lease_ns
    return wire.SessionAttached(entry.number, entry.name, entry.kept, entry.ending, entry.clients)


@serves(wire.DetachSession)
def detach(store: MemoryStore, shard: Shard, row: wire.DetachSession, now_ns: int) -> AnswerType:
    entry = store.sessions.get(row.session)
    if entry is None or entry.nonce != row.nonce:
        goes_on = entry is not None and entry.kept and not entry.ending
        return OK if goes_on or not row.keep else REFUSED
    store.session_leases.pop(row.session, None)
    if row.keep:
        store.sessions[row.session] = replace(entry, kept=True, nonce=b"")
    else:
        del store.sessions[row.session]
    return OK


@serves(wire.ListSessions)
def list_sessions(store: MemoryStore, shard: Shard, row: wire.ListSessions, now_ns: int) -> AnswerType:
    entries = tuple(store.sessions.values())
    attached = tuple([one.number for one in entries if is_attached(store, one, now_ns)])
    return wire.SessionList(entries, attached, tuple([store.session_leases[number] for number in attached]))


@serves(wire.CloseSession)
def close_session(store: MemoryStore, shard: Shard, row: wire.CloseSession, now_ns: int) -> AnswerType:
    close(shard.closed, row.session)
    return OK


@serves(wire.ForgetSession)
def forget_session(store: MemoryStore, shard: Shard, row: wire.ForgetSession, now_ns: int) -> AnswerType:
    left = False
    for task, record in list(shard.records.items()):
        if record is None or owner_of(task, record.spec.kind) != row.session:
            continue
        if has_ended(record) and not is_held(record) and not has_intent(shard, task):
            forget(store, shard, task)
        else:
            left = True
    if left:
        return UNDERWAY
    close(shard.closed, row.session)
    close(shard.closed, FUNCTIONS + row.session)
    shard.drop_retired((row.session, FUNCTIONS + row.session))
    for spawned in (False, True):  # searches whose clients have died
        shard.found.pop((row.session, spawned), None)
    return OK


@serves(wire.FindHeld)
def find_held(store: MemoryStore, shard: Shard, row: wire.FindHeld, now_ns: int) -> AnswerType:
    key = row.session, row.spawned
    records = shard.records
    found = shard.found.pop(key, None) if row.start else None
    if found is None:
        found = tasks_of(row, ((task, record) for task, record in records.items() if record is not None))
    at = bisect_left(found.tasks, row.start)
    some: list[tuple[int, Record]] = []
    while at < len(found.tasks) and len(some) < row.limit:
        record = records.get(found.tasks[at])
        if record is not None:  # else it has retired since
            some.append((found.tasks[at], record))
        at += 1
    if at < len(found.tasks):
        keep_found(shard.found, key, found)
    return held_tasks(store.shard_count, found, some, at < len(found.tasks))


class FoundTasks(NamedTuple):
    """The result of a search for the tasks of a session in a shard. It serves all parts of the answer, so that the
    shard is not searched anew for each of them.

    `tasks` are in order. `next_task` is a number above those of clients. `spawned` is the number of tasks that runs
    have created and that have not ended.
    """

    tasks: list[int]
    next_task: int
    spawned: int


FOUND_MAX = 16
"""The number of searches that a shard keeps until all of their parts were asked for. An asker may die before that."""


def keep_found(searches: dict[tuple[int, bool], FoundTasks], key: tuple[int, bool], found: FoundTasks) -> None:
    """Keep what was found, by session and whether tasks of runs were looked for, until the next part is asked for."""
    searches[key] = found
    if len(searches) > FOUND_MAX:
        del searches[next(iter(searches))]


def tasks_of(row: wire.FindHeld, records: Iterable[tuple[int, Record]]) -> FoundTasks:
    """Choose those among records that an answer to this row lists."""
    session, tasks = row.session, list[int]()
    next_task, spawned = session << SESSION_BITS, 0
    for task, record in records:
        if owner_of(task, record.spec.kind) != session:
            continue
        if task < FIRST_SPAWNED_ID:
            next_task = max(next_task, task + 1)
        elif not row.spawned:
            continue
        elif not has_ended(record):
            spawned += 1
            continue
        elif not is_held(record):
            continue
        tasks.append(task)
    tasks.sort()
    return FoundTasks(tasks, next_task, spawned)


def held_tasks(shard_count: int, found: FoundTasks, some: Iterable[tuple[int, Record]], more: bool) -> wire.HeldTasks:
    """The answer with some of the tasks that a search has found; `more`: others follow."""
    tasks: list[HeldTask] = []
    ready: list[tuple[NodeId, Ready]] = []
    unfinished: list[Submit] = []
    for task, record in some:
        tasks.append(_held_task(task, record))
        if task >= FIRST_SPAWNED_ID:
            continue
        if record.state == READY and not record.attempt and record.edges in (None, task):
            ready.append((record.owner, ready_of(record, AGAIN)))
        elif (submit := unfinished_of(task, record, shard_count)) is not None:
            unfinished.append(submit)
    return wire.HeldTasks(found.next_task, tuple(tasks), tuple(ready), tuple(unfinished), more, found.spawned)


def _held_task(task: int, record: Record) -> HeldTask:
    spec = record.spec
    state = record.state if record.state in FINAL or not has_ended(record) else STATE_DONE
    listed = task < FIRST_SPAWNED_ID and not (spec.leaf or is_function(record))
    return HeldTask(task, len(spec.outputs), state, record.held, listed)


def is_function(record: Record) -> bool:
    """Functions lie in the store alone. Other objects from outside are on nodes, or were, if these have died."""
    return record.spec.kind == FROM_OUTSIDE and any(one.value and not one.places for one in record.outputs)


def unfinished_of(task: int, record: Record, shard_count: int) -> Submit | None:
    """The Submit to repeat for a waiting task whose client may have died in the middle of it; None if there is none.

    Such a task waits for itself, or for a parent in another shard, which may not know of it.
    """
    if record.state != WAITING or not isinstance(record.edges, tuple | set):
        return None
    home = shard_of(task, shard_count)
    parents = tuple(sorted(parent for parent in record.edges if parent != task))
    if task not in record.edges and all(shard_of(parent, shard_count) == home for parent in parents):
        return None
    return Submit(record.spec, parents, NOBODY)
