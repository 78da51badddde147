"""The commands for the server: a few scripts, and a plain command.

All keys of a shard have the same hash tag, so that a Valkey Cluster keeps them on one server and scripts may touch all
of them. `cells` has the tasks and the other data of the shard, `log` its commits, `callers` the number of each caller's
last commit. The scripts know nothing of tasks.
"""

from hashlib import sha1
from itertools import chain
from typing import Any

import hiredis
from msgspec import Struct

from daws.store.valkey.caller import Commit, Drop, Fetch, Heads, Range, Request, Scan, Tail
from daws.store.valkey.link import ServerConnection, Word

_COMMIT = b"""
-- KEYS cells, log, callers; ARGV caller, acknowledged, number, how many writes, how many other reads, stamps of both in
-- one string, then names and cells to write in turns, then the other names, then entries of the log.
-- Answers {how it ended (0 well, 1 others came in between, 2 the past), time, place and cell of what has changed}.
local PART = 4000 -- values on Lua's stack
local ARGV, sub, unpack, time = ARGV, string.sub, unpack, redis.call('TIME')
local known = tonumber(redis.call('HGET', KEYS[3], ARGV[1]) or 0)
local number = tonumber(ARGV[3])
if known < tonumber(ARGV[2]) then return {2, time} end
if number > 0 and known >= number then return {0, time} end
local writes, others, stamps = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local names, found = {}, {}
for i = 1, writes do names[i] = ARGV[5 + 2 * i] end
for i = 1, others do names[writes + i] = ARGV[6 + 2 * writes + i] end
local none, changed = string.rep('\\0', 8), {}
for first = 1, #names, PART do
  local last = math.min(first + PART - 1, #names)
  local cells = redis.call('HMGET', KEYS[1], unpack(names, first, last))
  for i = 1, last - first + 1 do
    local cell = cells[i]
    found[first + i - 1] = cell and sub(cell, 1, 8) or none
  end
end
if table.concat(found) ~= stamps then
  for place = 1, #names do
    if found[place] ~= sub(stamps, 8 * place - 7, 8 * place) then
      changed[#changed + 1] = place
      changed[#changed + 1] = redis.call('HGET', KEYS[1], names[place]) or ''
    end
  end
  return {1, time, changed}
end
if number > 0 then
  local to = 6 + 2 * writes
  for first = 7, to, PART do
    redis.call('HSET', KEYS[1], unpack(ARGV, first, math.min(first + PART - 1, to)))
  end
  for first = to + others + 1, #ARGV, PART do
    redis.call('RPUSH', KEYS[2], unpack(ARGV, first, math.min(first + PART - 1, #ARGV)))
  end
  redis.call('HSET', KEYS[3], ARGV[1], number)
end
return {0, time}
"""

_SCAN = b"""
-- KEYS cells; ARGV cursor, a node. Answers the next cursor, and names and cells that have this node at their head.
local page, found = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 1000), {}
for i = 1, #page[2], 2 do
  local name, cell = page[2][i], page[2][i + 1]
  if #cell > 11 and string.find(name, '^%d') then
    local owners, replicas, holders = string.byte(cell, 9, 11)
    if string.find(string.sub(cell, 12, 11 + 8 * (owners + replicas + holders)), ARGV[2], 1, true) then
      found[#found + 1] = name
      found[#found + 1] = cell
    end
  end
end
return {page[1], found}
"""

_HEADS = b"""
-- KEYS cells; ARGV cursor. Answers the next cursor, and the nodes that cells have at their heads, each of them once.
local page, seen, found = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 1000), {}, {}
for i = 1, #page[2], 2 do
  local name, cell = page[2][i], page[2][i + 1]
  if #cell > 11 and string.find(name, '^%d') then
    local owners, replicas, holders = string.byte(cell, 9, 11)
    for first = 12, 11 + 8 * (owners + replicas + holders), 8 do
      local node = string.sub(cell, first, first + 7)
      if not seen[node] then
        seen[node] = true
        found[#found + 1] = node
      end
    end
  end
end
return {page[1], found}
"""

_RANGE = b"""
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
"""

_DROP = b"""
-- KEYS cells; ARGV cursor, two numbers. Deletes the cells of retired tasks from the first number to the one before the
-- second (of large numbers perhaps not all). Answers the next cursor.
local page, gone = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 1000), {}
local low, high = tonumber(ARGV[2]), tonumber(ARGV[3])
for i = 1, #page[2], 2 do
  local number = tonumber(page[2][i])
  if number and number >= low and number < high and #page[2][i + 1] == 8 then
    gone[#gone + 1] = page[2][i]
  end
end
if #gone > 0 then redis.call('HDEL', KEYS[1], unpack(gone)) end
return page[1]
"""

_TAIL = b"""
-- KEYS cells, log; ARGV a number, how many. Answers the number of the first entry that counts, the number of the next
-- one, and entries from the given number on. The entry before the first one that counts is still in the list.
local first = tonumber(redis.call('HGET', KEYS[1], 'trimmed') or 0)
local gone, count = math.max(first - 1, 0), tonumber(ARGV[2])
local low = math.max(tonumber(ARGV[1]) - gone, 0)
local found = count > 0 and redis.call('LRANGE', KEYS[2], low, low + count - 1) or {}
return {first, gone + redis.call('LLEN', KEYS[2]), found}
"""

_TRIM = b"""
-- KEYS cells, log; ARGV a number. From now on no entry with a lower number counts.
local first = tonumber(redis.call('HGET', KEYS[1], 'trimmed') or 0)
local gone = math.max(first - 1, 0)
local last = math.min(tonumber(ARGV[1]), gone + redis.call('LLEN', KEYS[2]))
if last > first then
  redis.call('LTRIM', KEYS[2], last - 1 - gone, -1)
  redis.call('HSET', KEYS[1], 'trimmed', last)
end
return last
"""

_CHECK = b"""
-- KEYS callers; ARGV caller. Answers the number of its last commit, and what is known of replicas.
return {tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0), redis.call('INFO', 'replication')}
"""

_AGREE = b"""
-- KEYS meta; ARGV what a new store is made with. Answers what it was made with.
redis.call('HSETNX', KEYS[1], 'made', ARGV[1])
return redis.call('HGET', KEYS[1], 'made')
"""


class Script:
    """A script, named by its hash. A server that does not know the hash gets the text."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.hash = sha1(text, usedforsecurity=False).hexdigest()


COMMIT, SCAN, HEADS, RANGE, DROP = map(Script, (_COMMIT, _SCAN, _HEADS, _RANGE, _DROP))
TAIL, TRIM = Script(_TAIL), Script(_TRIM)
CHECK, AGREE = Script(_CHECK), Script(_AGREE)
TIME = "TIME"


class ServerCommand(Struct, frozen=True):
    """The words of a command for the server that has this key; for a script, the other keys and arguments follow."""

    key: str
    words: tuple[Word, ...]
    script: Script | None = None
    keys: int = 1

    async def say(self, link: ServerConnection) -> Any:
        if self.script is None:
            return await link.ask(self.words)
        rest = (self.keys, self.key, *self.words)
        try:
            return await link.ask(("EVALSHA", self.script.hash, *rest))
        except hiredis.ReplyError as error:
            if not str(error).startswith("NOSCRIPT"):
                raise
        return await link.ask(("EVAL", self.script.text, *rest))


class ShardKeys:
    """The keys of one shard of a store."""

    def __init__(self, name: str, shard: int) -> None:
        tag = f"{{daws:{name}:{shard}}}"
        self.cells = f"{tag}:cells"
        self.log = f"{tag}:log"
        self.callers = f"{tag}:callers"


def meta_key(name: str) -> str:
    return f"{{daws:{name}}}:meta"


def command_of(request: Request, keys: ShardKeys) -> ServerCommand:
    if isinstance(request, Commit):
        writes, others = request.writes, request.others
        head = (request.caller, request.acknowledged, request.number, len(writes), len(others), request.stamps)
        pairs = chain.from_iterable(writes.items())
        return ServerCommand(keys.cells, (keys.log, keys.callers, *head, *pairs, *others, *request.log), COMMIT, 3)
    if isinstance(request, Fetch):
        return ServerCommand(keys.cells, ("HMGET", keys.cells, *request.names))
    if isinstance(request, Scan):
        return ServerCommand(keys.cells, (request.cursor, request.node), SCAN)
    if isinstance(request, Heads):
        return ServerCommand(keys.cells, (request.cursor,), HEADS)
    if isinstance(request, Range):
        return ServerCommand(keys.cells, (request.cursor, request.low, request.high), RANGE)
    if isinstance(request, Drop):
        return ServerCommand(keys.cells, (request.cursor, request.low, request.high), DROP)
    if isinstance(request, Tail):
        return ServerCommand(keys.cells, (keys.log, request.start, request.count), TAIL, 2)
    return ServerCommand(keys.cells, (keys.log, request.before), TRIM, 2)
