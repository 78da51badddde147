"""The outbox of a shard: intents that outlive the node that had them (rules 1, 5 and 9).

An intent is written by the update that makes it necessary, and stays until its holder says that it was carried out.
Each write has a mark of its own, so a late Clear erases no newer intent under the same key.
"""

from typing import Any

from daws.model.task import NodeId
from daws.store.memory.record import audience
from daws.store.memory.references import retire
from daws.store.memory.store import HeldIntent, MemoryStore, Others, Shard, serves
from daws.wire import store as wire
from daws.wire.store import OK, SATISFY, AnswerType


def intend(shard: Shard, key: int, node: NodeId, others: Others) -> None:
    """Write an intent (None: for all children). An older intent under the same key is merged, not lost."""
    known = shard.outbox.get(key)
    if known is not None and others is not None:
        before = known.others
        if before is None and key & 3 == SATISFY:
            record = shard.records[key >> 2]
            before = tuple((child, 0) for child in audience(record)) if record is not None else ()
        others = None if before is None else tuple(dict.fromkeys((*before, *others)))
    shard.marks += 1
    shard.outbox[key] = HeldIntent(node, others, shard.marks)


@serves(wire.Clear)
def clear(store: MemoryStore, shard: Shard, row: wire.Clear, now_ns: int) -> AnswerType:
    store.touched -= 1
    for number, key in enumerate(row.keys):
        entry = shard.outbox.get(key)
        if entry is not None and entry.holder == row.node and (not row.marks or row.marks[number] == entry.mark):
            del shard.outbox[key]
            record = shard.records.get(key >> 2)
            if record is not None and record.freed:
                retire(store, record)  # this intent was all that kept it
    return OK


def unzip(pairs: tuple[Any, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(task for task, _ in pairs), tuple(need for _, need in pairs)
