"""Records as they are on the server now, for reads outside of the rules and of any update."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from daws.store.memory.record import Record
from daws.store.valkey import cells
from daws.store.valkey.cells import STAMP_BYTES
from daws.store.valkey.scripts import RANGE, ServerCommand, ShardKeys
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import LogRow, shard_of

AT_ONCE = 1000


class Looking:
    """A reader of all shards."""

    def __init__(self, store: ValkeyStore) -> None:
        self.shard_count = store.shard_count
        self._server = store.server
        self._keys = [ShardKeys(store.server.address.name, shard) for shard in range(store.shard_count)]

    async def records(self, tasks: Sequence[int]) -> dict[int, Record | None]:
        """The records of tasks, in the given order; None for those that do not exist or have retired."""
        by_shard: dict[int, list[int]] = {}
        for task in tasks:
            by_shard.setdefault(shard_of(task, self.shard_count), []).append(task)
        found: dict[int, Record | None] = dict.fromkeys(tasks)
        await asyncio.gather(*[self._find(self._keys[shard].cells, some, found) for shard, some in by_shard.items()])
        return found

    async def _find(self, key: str, tasks: list[int], found: dict[int, Record | None]) -> None:
        for low in range(0, len(tasks), AT_ONCE):
            some = tasks[low : low + AT_ONCE]
            answers = await self._server.ask(ServerCommand(key, ("HMGET", key, *some)))
            for task, cell in zip(some, answers, strict=True):
                found[task] = cells.unpack(cell)[0] if cell else None

    async def between(self, low: int, high: int) -> AsyncIterator[tuple[int, Record]]:
        """All tasks from one number to before another that exist (a long search, for rare questions). A change during
        the search may be included or not."""
        for keys in self._keys:
            cursor = b"0"
            seen: set[int] = set()
            while True:
                cursor, found = await self._server.ask(ServerCommand(keys.cells, (cursor, low, high), RANGE))
                for name, cell in zip(found[::2], found[1::2], strict=True):
                    task = int(name)
                    if low <= task < high and task not in seen:
                        seen.add(task)
                        record, _ = cells.unpack(cell)
                        if record is not None:
                            yield task, record
                if cursor == b"0":
                    break

    async def log_length(self, shard: int) -> int:
        key = self._keys[shard].log
        return int(await self._server.ask(ServerCommand(key, ("LLEN", key))))

    async def log(self, shard: int, start: int) -> list[bytes]:
        """The entries of a shard's log from this number on. No two entries, ever, are equal."""
        key = self._keys[shard].log
        found: list[bytes] = await self._server.ask(ServerCommand(key, ("LRANGE", key, start, -1)))
        return found


def log_row(entry: bytes) -> LogRow:
    row: LogRow = cells.decode_log_row(memoryview(entry)[STAMP_BYTES:])
    return row
