"""Data of a live cluster on the server beside its tasks: sessions, functions, failures, and numbers given out.

All of it lies beside one shard (the same hash tag), so commands are carried out in the order in which they are sent.
The store's rules do not protect it: a note that is needed after a failover has to be written again.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from daws.store.valkey.link import Word
from daws.store.valkey.scripts import Script, ServerCommand
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import MEMBERSHIP_SHARD

FUNCTIONS, FAILURES, SESSIONS, NAMES, SEEN, ENDED, NUMBERS = (
    "functions",
    "failures",
    "sessions",
    "names",
    "seen",
    "ended",
    "numbers",
)
STRATEGY = "strategy"
"""The name of the strategy's version, among the numbers."""
NOTES_SHARD = MEMBERSHIP_SHARD
"""The shard beside which the notes lie."""
AT_ONCE = 1000

_NUMBER = Script(b"""
-- KEYS numbers; ARGV what, how many a failover may have lost. Answers a number that was never given before.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
local last = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
local by = redis.call('HGET', KEYS[1], ARGV[1] .. ' by')
local number, gap = last + 1, tonumber(ARGV[2])
if by and by ~= run then number = (math.floor(last / gap) + 1) * gap end
redis.call('HSET', KEYS[1], ARGV[1], number, ARGV[1] .. ' by', run)
return number
""")

_SWAP = Script(b"""
-- KEYS a hash; ARGV field, what is expected there ('' for nothing), what is to be there ('' for nothing).
-- Answers what is there now.
local found = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if found ~= ARGV[2] then return found end
if ARGV[3] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) else redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) end
return ARGV[3]
""")

_BEAT = Script(b"""
-- KEYS sessions, seen, ended; ARGV a session. It is alive: answers its entry, and whether it was ended.
redis.call('HINCRBY', KEYS[2], ARGV[1], 1)
return {redis.call('HGET', KEYS[1], ARGV[1]) or '', redis.call('HEXISTS', KEYS[3], ARGV[1])}
""")

_LOOK = Script(b"""
-- KEYS sessions, seen, numbers; ARGV a field. Answers all of the first two, and the field of the third.
return {redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]), redis.call('HGET', KEYS[3], ARGV[1]) or ''}
""")


class ClusterNotes:
    def __init__(self, store: ValkeyStore) -> None:
        self._server = store.server
        self._tag = f"{{daws:{store.server.address.name}:{NOTES_SHARD}}}"

    def key(self, what: str) -> str:
        return f"{self._tag}:{what}"

    async def new_number(self, what: str) -> int:
        """A number that was never given out before, from 1 on. A server that begins anew, or another one, may have
        forgotten the last ones, so it skips some."""
        return int(await self._server.ask(ServerCommand(self.key(NUMBERS), (what, AT_ONCE), _NUMBER)))

    async def swap(self, what: str, field: int | str, expected: bytes, wanted: bytes) -> bytes:
        """Write a field if it still has the expected value, b"" if there is none. Returns the current value."""
        return bytes(await self._server.ask(ServerCommand(self.key(what), (field, expected, wanted), _SWAP)))

    async def put(self, what: str, *values: tuple[int | str, bytes | str]) -> None:
        """Write (field, value) pairs."""
        for low in range(0, len(values), AT_ONCE):
            await self._do(what, ("HSET", self.key(what), *chain.from_iterable(values[low : low + AT_ONCE])))

    async def get(self, what: str, fields: Sequence[int | str]) -> list[bytes]:
        """The values of fields; b"" for those that do not exist."""
        if not fields:
            return []
        found = await self._do(what, ("HMGET", self.key(what), *fields))
        return [bytes(one or b"") for one in found]  # type: ignore[attr-defined]

    async def fields(self, what: str) -> list[int]:
        """The numbers of all fields."""
        found = await self._do(what, ("HKEYS", self.key(what)))
        return [int(one) for one in found]  # type: ignore[attr-defined]

    async def drop(self, what: str, fields: Iterable[int | str]) -> None:
        some = list(fields)
        for low in range(0, len(some), AT_ONCE):
            await self._do(what, ("HDEL", self.key(what), *some[low : low + AT_ONCE]))

    async def beat(self, session: int) -> tuple[bytes, bool]:
        """Record that the client of a session is alive. Returns the session's entry, and whether it has ended."""
        keys = (self.key(SEEN), self.key(ENDED))
        entry, ended = await self._server.ask(ServerCommand(self.key(SESSIONS), (*keys, session), _BEAT, 3))
        return bytes(entry), bool(ended)

    async def look(self) -> tuple[dict[int, bytes], dict[int, bytes], str]:
        """All sessions, how often their clients were seen, and the strategy ("" if none was chosen)."""
        keys = (self.key(SEEN), self.key(NUMBERS))
        entries, seen, strategy = await self._server.ask(ServerCommand(self.key(SESSIONS), (*keys, STRATEGY), _LOOK, 3))
        return _by_number(entries), _by_number(seen), bytes(strategy).decode()

    async def _do(self, what: str, words: tuple[Word, ...]) -> object:
        return await self._server.ask(ServerCommand(self.key(what), words))


def _by_number(found: Sequence[bytes]) -> dict[int, bytes]:
    return {int(name): bytes(value) for name, value in zip(found[::2], found[1::2], strict=True)}
