"""The contract of stores, on the store in memory: plain, in several shards, direct, and with histories."""

from typing import Any

from daws.store.memory import MemoryStore
from daws.store.memory.record import Rare, Record
from tests.contract.store_suite import StoreContract

_PLAIN = Rare()
_RARE = tuple(name for name in Rare.__slots__ if name != "history")


def _look_at(record: Record | None) -> object:
    if record is None:
        return None
    edges = tuple(sorted(record.edges)) if isinstance(record.edges, set) else record.edges
    rare = record.rare or _PLAIN
    return (
        *(record.spec, record.state, record.owner, record.children, edges, record.inputs, record.outputs),
        *(record.move, record.attempt, record.freed, record.held, *(repr(getattr(rare, name)) for name in _RARE)),
    )


def snapshot(store: MemoryStore) -> object:
    shards = [
        (
            {task: _look_at(record) for task, record in shard.records.items()},
            dict(shard.outbox),
            list(shard.log),
            set(shard.dead),
            list(shard.closed),
            shard.trimmed,
        )
        for shard in store.shards
    ]
    sessions = dict(store.sessions), store.session_count
    nodes = dict(store.leases), dict(store.infos), dict(store.orphans), set(store.buried), store.members, store.strategy
    numbers = dict(store.enrolled), store.node_count, store.strategy_since
    return shards, sessions, nodes, numbers


class TestPlain(StoreContract):
    history = False
    direct = False
    shards = 1

    def make(self, **options: Any) -> MemoryStore:
        shards = options.get("shards", self.shards)
        return MemoryStore(shards, self.lease_ns, history=self.history, direct=self.direct)

    def snapshot(self, store: Any) -> object:
        return snapshot(store)


class TestShards(TestPlain):
    shards = 3


class TestDirect(TestPlain):
    """Children in the same shard are told by the commit itself; in this suite most are in other shards."""

    direct = True
    shards = 3


class TestHistory(TestPlain):
    history = True
