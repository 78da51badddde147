"""Reads of clients and people: the numbered commits of a shard (rule 10), and the story of one task."""

from collections.abc import Iterable

from daws.model.states import REMAKING, WAITING
from daws.store.memory.record import Rare, has_ended
from daws.store.memory.store import MemoryStore, Shard, serves
from daws.wire import store as wire
from daws.wire.store import DONE, LOG_END, NO_SESSION, OK, UNKNOWN, AnswerType, session_of


@serves(wire.ReadLog)
def read_log(store: MemoryStore, shard: Shard, row: wire.ReadLog, now_ns: int) -> AnswerType:
    store.touched -= 1
    first = shard.trimmed
    if row.start == LOG_END:
        return wire.Log(first + len(shard.log), [])
    start = max(row.start, first)
    rows = shard.log[start - first : start - first + row.limit]
    found = rows if row.session == NO_SESSION else rows_of(rows, row.session)
    return wire.Log(start + len(rows), found, start - row.start)


@serves(wire.TrimLog)
def trim_log(store: MemoryStore, shard: Shard, row: wire.TrimLog, now_ns: int) -> AnswerType:
    store.touched -= 1
    count = min(row.before - shard.trimmed, len(shard.log))
    if count > 0:
        del shard.log[:count]
        shard.trimmed += count
    return OK


def rows_of(rows: Iterable[wire.LogRow], session: int) -> list[wire.LogRow]:
    """The commits of one session, among those of all."""
    return [row for row in rows if session_of(wire.logged_task(row)) == session]


@serves(wire.Inspect)
def inspect(store: MemoryStore, shard: Shard, row: wire.Inspect, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return DONE if store.has_retired(shard, row.task) else UNKNOWN
    rare = record.rare or Rare()
    waiting = record.edges if isinstance(record.edges, (tuple, set)) and not row.brief else ()
    # A remake that waits for its own lost inputs will read them; an unclaimed remake is no reader.
    state = REMAKING if rare.remaking and record.state != WAITING else record.state
    history = tuple(rare.history)
    edges, ended = tuple(sorted(waiting)), has_ended(record)
    return wire.Story(
        state,
        record.owner,
        record.move,
        record.attempt,
        edges,
        rare.error,
        history,
        ended,
        record.spec.kind,
        rare.failure,
        rare.cause,
    )
