"""Records as they are on the server just now, for those who only look: outside of the rules, and of any update."""

from collections.abc import AsyncIterator, Sequence

from daws.store.memory.record import Record
from daws.store.valkey import cells
from daws.store.valkey.cells import STAMP_BYTES
from daws.store.valkey.scripts import Command, Keys, Script
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import LogRow

AT_ONCE = 1000

_RANGE = Script(b"""
-- KEYS cells; ARGV cursor, two numbers. Answers the next cursor, and names and cells of tasks from the first number to
-- the second, and perhaps of some beside (large numbers are rounded).
local page, found = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 1000), {}
local low, high = tonumber(ARGV[2]), tonumber(ARGV[3])
for i = 1, #page[2], 2 do
  local number = tonumber(page[2][i])
  if number and number >= low and number <= high and #page[2][i + 1] > 8 then
    found[#found + 1] = page[2][i]
    found[#found + 1] = page[2][i + 1]
  end
end
return {page[1], found}
""")


class Looking:
    """At one shard."""

    def __init__(self, store: ValkeyStore, shard: int = 0) -> None:
        self._server = store.server
        self._keys = Keys(store.server.address.name, shard)

    async def records(self, tasks: Sequence[int]) -> dict[int, Record | None]:
        """None stands for those that are not there, or have retired."""
        found: dict[int, Record | None] = {}
        for low in range(0, len(tasks), AT_ONCE):
            some = tasks[low : low + AT_ONCE]
            answers = await self._server.ask(Command(self._keys.cells, ("HMGET", self._keys.cells, *some)))
            for task, cell in zip(some, answers, strict=True):
                found[task] = cells.unpack(cell)[0] if cell else None
        return found

    async def between(self, low: int, high: int) -> AsyncIterator[tuple[int, Record]]:
        """All tasks from one number to before another that are there (a long search, for rare questions). What changes
        meanwhile may be seen before or after."""
        cursor = b"0"
        seen: set[int] = set()
        while True:
            command = Command(self._keys.cells, (cursor, low, high), _RANGE)
            cursor, found = await self._server.ask(command)
            for name, cell in zip(found[::2], found[1::2], strict=True):
                task = int(name)
                if low <= task < high and task not in seen:
                    seen.add(task)
                    record, _ = cells.unpack(cell)
                    if record is not None:
                        yield task, record
            if cursor == b"0":
                return

    async def log_length(self) -> int:
        return int(await self._server.ask(Command(self._keys.log, ("LLEN", self._keys.log))))

    async def log(self, start: int) -> list[bytes]:
        """Entries from this number on. Each is unlike any other ever was."""
        found: list[bytes] = await self._server.ask(Command(self._keys.log, ("LRANGE", self._keys.log, start, -1)))
        return found


def log_row(entry: bytes) -> LogRow:
    row: LogRow = cells.decode_log_row(memoryview(entry)[STAMP_BYTES:])
    return row
