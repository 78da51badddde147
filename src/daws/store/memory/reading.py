"""Reads of clients and people: the numbered commits of a shard (rule 10), and the story of one task."""

from daws.model.states import REMAKING, WAITING
from daws.store.memory.record import Rare
from daws.store.memory.store import MemoryStore, Shard, serves
from daws.wire import store as wire
from daws.wire.store import DONE, UNKNOWN, AnswerType


@serves(wire.ReadLog)
def read_log(store: MemoryStore, shard: Shard, row: wire.ReadLog, now_ns: int) -> AnswerType:
    store.touched -= 1
    rows = shard.log[row.start : row.start + row.limit]
    return wire.Log(row.start + len(rows), rows)


@serves(wire.Inspect)
def inspect(store: MemoryStore, shard: Shard, row: wire.Inspect, now_ns: int) -> AnswerType:
    record = shard.records.get(row.task)
    if record is None:
        return DONE if store.has_retired(shard, row.task) else UNKNOWN
    rare = record.rare or Rare()
    waiting = record.edges if isinstance(record.edges, (tuple, set)) and not row.brief else ()
    # A remake that waits for its own lost inputs will read them; an unclaimed remake is no reader.
    state = REMAKING if rare.remaking and record.state != WAITING else record.state
    return wire.Story(
        state, record.owner, record.move, record.attempt, tuple(sorted(waiting)), rare.error, tuple(rare.history)
    )
