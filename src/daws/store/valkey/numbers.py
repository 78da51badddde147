"""Numbers that are never given twice, on the server of a live cluster beside its tasks: of nodes, and of sessions.

The store's rules do not protect them, so a server that may have forgotten the last ones skips some.
"""

from daws.store.valkey.scripts import Script, ServerCommand
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import MEMBERSHIP_SHARD

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


async def new_number(store: ValkeyStore, what: str) -> int:
    """A number that was never given out before, from 1 on."""
    key = f"{{daws:{store.server.address.name}:{MEMBERSHIP_SHARD}}}:numbers"
    return int(await store.server.ask(ServerCommand(key, (what, AT_ONCE), _NUMBER)))
