"""The contract of stores, on a real Valkey server: plain, and with all that can be asked for."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.blocking import BlockingValkeyStore
from daws.store.valkey.server import Address
from tests.contract.store_suite import StoreContract
from tests.valkey import LocalServer

_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    server = LocalServer(tmp_path_factory.mktemp("valkey"))
    yield server
    server.stop()


def snapshot(server: LocalServer, name: str, shard_count: int) -> object:
    """Every byte but those that say who called."""
    tags = [f"{{daws:{name}:{shard}}}" for shard in range(shard_count)]
    return [
        (sorted(batched(server.ask("HGETALL", f"{tag}:cells"))), server.ask("LRANGE", f"{tag}:log", "0", "-1"))
        for tag in tags
    ]


def batched(words: list[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(words[::2], words[1::2], strict=True))


class TestPlain(StoreContract):
    history = False
    direct = False
    shards = 1

    @pytest.fixture(autouse=True)
    def _one_server(self, server: LocalServer) -> Iterator[None]:
        self.server = server
        self.stores: list[BlockingValkeyStore] = []
        yield
        for store in self.stores:
            store.close()

    def make(self, **options: Any) -> BlockingValkeyStore:
        address = Address((self.server.url,), f"contract-{next(_numbers)}")
        wanted = StoreOptions(options.get("shards", self.shards), self.lease_ns, 2, self.history, self.direct)
        self.stores.append(BlockingValkeyStore(address, wanted))
        return self.stores[-1]

    def snapshot(self, store: Any) -> object:
        return snapshot(self.server, store.store.server.address.name, store.shard_count)


class TestDirectInShards(TestPlain):
    """Children in the same shard are told by the commit itself; in this suite most are in other shards."""

    history = True
    direct = True
    shards = 3
