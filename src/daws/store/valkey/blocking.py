"""The Valkey store without an event loop: for tools, and for the tests that all stores have to pass."""

import asyncio
from collections.abc import Sequence

from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.server import Address
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import AnswerType, Row


class BlockingValkeyStore:
    """The port `daws.store.port.Store`. Updates of other shards that a call causes are done when it returns."""

    def __init__(self, address: Address, options: StoreOptions | None = None, patience_s: float | None = 10.0) -> None:
        self._loop = asyncio.Runner()
        try:
            self.store = self._loop.run(ValkeyStore.open(address, options, patience_s))
        except BaseException:
            self._loop.close()
            raise
        self.shard_count = self.store.shard_count

    def apply(self, shard: int, rows: Sequence[Row], now_ns: int | None = None) -> list[AnswerType]:
        """Carry out rows. `now_ns` replaces the server's clock."""
        return self._loop.run(self._apply(shard, rows, now_ns))

    async def _apply(self, shard: int, rows: Sequence[Row], now_ns: int | None) -> list[AnswerType]:
        while True:
            try:
                answers = await self.store.call(shard, rows, now_ns)
            except StoreChangedError:
                continue  # rows may be repeated, and this caller waits for each answer, so nothing else is under way
            await self.store.idle()
            return answers

    def close(self) -> None:
        self._loop.run(self.store.close())
        self._loop.close()
