"""The store on a Valkey server, for callers on an event loop.

Each shard has a lane: calls that come while one is under way wait, and are then carried out together as one update.
Calls of one process to one shard are therefore carried out in order, and updates grow with the load.

Rule 11: when another server answers for a shard, or the same one begun anew, it may have lost acknowledged updates,
ours or those of other callers. The next call notices that, or the watch, which follows updates that are not safe yet
and connections that are lost. All unanswered calls to that shard end with `StoreChangedError`, and its `identity`
changes. Updates with a higher `position` than `safe_position` may be lost: send them again.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from daws.model.errors import DawsError, UnavailableError, UsageError
from daws.store.memory.record import Record
from daws.store.valkey import cells
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.caller import CallResult, Commit, Fetch, Request, ShardCaller, StoreChangedError
from daws.store.valkey.link import ServerConnection
from daws.store.valkey.safety import Safety, read_replicas
from daws.store.valkey.scripts import CHECK, ServerCommand, ShardKeys, command_of
from daws.store.valkey.server import FORMAT, Address, Server
from daws.store.valkey.view import Cache
from daws.wire.store import MEMBERSHIP_SHARD, SHARD_BLOCK_BITS, AnswerType, Row, shard_of

log = logging.getLogger("daws.store")

SHARDS_PER_PRIMARY = 4
"""The number of shards per primary of a Cluster. Hashes of names choose the primary of each shard; with fewer shards,
some primaries would get none."""
ELSEWHERE_S = 0.5
"""The time without an answer after which a shard counts as unreachable for the renewal of leases."""
AT_ONCE = 1000
"""The number of records that are read by one command."""
WATCH_S = 0.25
"""The time between looks at which updates have become safe."""

Answers = asyncio.Future[list[AnswerType]]


class _QueuedCall:
    """Rows that wait for their turn. The answers are None if no caller waits for them."""

    __slots__ = ("answers", "now_ns", "rows")

    def __init__(self, rows: Sequence[Row], now_ns: int | None, answers: Answers | None) -> None:
        self.rows = rows
        self.now_ns = now_ns
        self.answers = answers

    def fail(self, error: Exception) -> None:
        if self.answers is None:
            log.warning("an update that follows another call failed: %s", error)
        elif not self.answers.done():
            self.answers.set_exception(error)


class _Lane:
    """The state of one shard."""

    def __init__(self, options: StoreOptions, name: str, shard: int, replicas_min: int) -> None:
        self.shard = shard
        self.keys = ShardKeys(name, shard)
        self.caller = ShardCaller(options, shard)
        self.safety = Safety(replicas_min)
        self.link: ServerConnection | None = None  # by which the last answer came
        self.waiting: deque[_QueuedCall] = deque()
        self.at_work: asyncio.Task[None] | None = None

    @property
    def wants_looking_after(self) -> bool:
        return self.caller.position > self.safety.safe or (self.link is not None and not self.link.is_open)

    def begin_anew(self) -> None:
        self.link = None
        self.caller.begin_anew()
        self.safety.begin_anew()


class ValkeyStore:
    """The store on an event loop, made with `ValkeyStore.open` on the loop where it will be used."""

    def __init__(self, server: Server, options: StoreOptions, replicas_min: int = 0) -> None:
        self.shard_count = options.shard_count
        self.options = options
        self.server = server
        self.calls = 0
        self.rows = 0  # number of rows requested
        self.on_changed: Callable[[int], None] | None = None  # a shard has another identity; may repeat itself
        self.on_safe: Callable[[int], None] | None = None  # a shard has another safe position
        server.on_link_lost = self._look_around
        name = server.address.name
        self._lanes = [_Lane(options, name, shard, replicas_min) for shard in range(options.shard_count)]
        self._watching: asyncio.Task[None] | None = None
        self._closed = False
        self._broken: DawsError | None = None  # the reason why nothing can be done any more

    @classmethod
    async def open(
        cls,
        address: Address,
        options: StoreOptions | None = None,
        patience_s: float | None = None,
        replicas_min: int = 0,
        is_trial: bool = False,
    ) -> "ValkeyStore":
        """Open a store.

        `options` are for a new store; one that exists keeps its own. A `shard_count` of 0 chooses the number by the
        server: one, or some for each primary of a Cluster. `patience_s`: see `Server`. `replicas_min`: nothing counts
        as safe while fewer replicas are attached. With `is_trial` the patience holds for the opening alone, and a
        failure is not logged.
        """
        server = Server(address, patience_s)
        server.is_quiet = is_trial
        try:
            options = StoreOptions() if options is None else options
            if not options.shard_count:
                primaries = await server.primaries()
                shard_count = SHARDS_PER_PRIMARY * primaries if primaries > 1 else 1
                options = msgspec.structs.replace(options, shard_count=shard_count)
            made = await server.agree(_written(options))
            if is_trial:
                server.patience_s, server.is_quiet = None, False
            return cls(server, _read(made, address.name), replicas_min)
        except BaseException:
            server.close()
            raise

    def call(self, shard: int, rows: Sequence[Row], now_ns: int | None = None, identity: str | None = None) -> Answers:
        """Carry out rows, after all earlier calls to this shard. `now_ns` replaces the server's clock.

        If `identity` is given and no longer the shard's, the call ends as if it had been under way when the identity
        changed.
        """
        answers: Answers = asyncio.get_running_loop().create_future()
        self.calls += 1
        self.rows += len(rows)
        if self._broken is not None:
            answers.set_exception(self._broken)
        elif identity is not None and identity != self.identity(shard):
            answers.set_exception(StoreChangedError())
        else:
            self._enter(self._lanes[shard], _QueuedCall(rows, now_ns, answers))
        return answers

    async def records(self, tasks: Sequence[int]) -> dict[int, Record | None]:
        """The records of tasks as they are on the server now, in the given order, outside of the rules and of any
        update. None for those that do not exist or have retired."""
        by_shard: dict[int, list[int]] = {}
        for task in tasks:
            by_shard.setdefault(shard_of(task, self.shard_count), []).append(task)
        found: dict[int, Record | None] = dict.fromkeys(tasks)
        await asyncio.gather(
            *[self._find(self._lanes[shard].keys.cells, some, found) for shard, some in by_shard.items()]
        )
        return found

    async def _find(self, key: str, tasks: list[int], found: dict[int, Record | None]) -> None:
        for low in range(0, len(tasks), AT_ONCE):
            some = tasks[low : low + AT_ONCE]
            answers = await self.server.ask(ServerCommand(key, ("HMGET", key, *some)))
            for task, cell in zip(some, answers, strict=True):
                found[task] = cells.unpack(cell)[0] if cell else None

    def cache_of(self, task: int) -> Cache:
        """The cached cells of this task's shard. Other callers may know more (`daws.store.valkey.told`)."""
        return self._lanes[(task >> SHARD_BLOCK_BITS) % self.shard_count].caller.cache  # as `shard_of`, for every task

    def identity(self, shard: int) -> str:
        """The identity of a shard's server. It changes when another server answers, or one that has lost something."""
        return self._lanes[shard].caller.name.hex()

    def position(self, shard: int) -> int:
        """The number of our last acknowledged update, counted anew for each identity."""
        return self._lanes[shard].caller.position

    def safe_position(self, shard: int) -> int:
        """The number of our last update that no failover can lose."""
        return self._lanes[shard].safety.safe

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        while busy := [lane.at_work for lane in self._lanes if lane.at_work is not None]:
            await asyncio.wait(busy)

    async def close(self) -> None:
        """Close the store. Calls without an answer are given up."""
        self._closed = True
        tasks = [lane.at_work for lane in self._lanes if lane.at_work is not None]
        if self._watching is not None:
            tasks.append(self._watching)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.server.close()

    # -- calls -----------------------------------------------------------------------------------------

    def _enter(self, lane: _Lane, call: _QueuedCall) -> None:
        lane.waiting.append(call)
        if lane.at_work is None:
            lane.at_work = asyncio.get_running_loop().create_task(self._work(lane))

    async def _work(self, lane: _Lane) -> None:
        waiting = lane.waiting
        calls: list[_QueuedCall] = []
        try:
            while waiting:
                calls = [waiting.popleft()]
                while waiting and waiting[0].now_ns == calls[0].now_ns:
                    calls.append(waiting.popleft())
                name, safe = lane.caller.name, lane.safety.safe
                try:
                    await self._carry_out(lane, calls)
                except StoreChangedError as error:
                    lane.begin_anew()
                    calls += waiting  # calls since then do not know of the change either
                    waiting.clear()
                    if self.on_changed is not None:  # perhaps no caller waits for these calls
                        self.on_changed(lane.shard)
                    wrong = await self._look_at_new_server(lane, name, safe) or error
                    if self._broken is not None:
                        calls += waiting
                        waiting.clear()
                    for call in calls:
                        call.fail(wrong)
                except Exception as error:
                    for call in calls:
                        call.fail(error)
        except BaseException:  # it was cancelled: no caller may wait for ever
            for call in (*calls, *waiting):
                if call.answers is not None:
                    call.answers.cancel()
            raise
        finally:
            lane.at_work = None
        self._look_around()

    async def _carry_out(self, lane: _Lane, calls: list[_QueuedCall]) -> None:
        rows = calls[0].rows if len(calls) == 1 else [row for call in calls for row in call.rows]
        now_ns = calls[0].now_ns
        done = await self._drive(lane, rows, now_ns)
        start = 0
        for call in calls:
            if call.answers is not None and not call.answers.done():
                call.answers.set_result(done.answers[start : start + len(call.rows)])
            start += len(call.rows)
        for other, row in done.afterwards:
            self._enter(self._lanes[other], _QueuedCall((row,), now_ns, None))

    async def _drive(self, lane: _Lane, rows: Sequence[Row], now_ns: int | None) -> CallResult:
        """Send the caller's requests to the server until it is done."""
        if now_ns is None:
            script = lane.caller.carry_out(rows, self.server.now_ns(), self.server.outage)
        else:
            script = lane.caller.carry_out(rows, now_ns)
        answer: Any = None
        while True:
            try:
                request: Request = script.send(answer)
            except StopIteration as end:
                done: CallResult = end.value
                return done
            asked = self._lanes[request.shard]
            if asked is not lane:
                answer = await self._look_elsewhere(lane, request, asked)
                continue
            answer, lane.link = await self.server.ask_the_same(command_of(request, lane.keys), lane.link)
            if isinstance(request, Commit):
                outcome, clock, *rest = answer
                if request.shard == MEMBERSHIP_SHARD:  # other servers of a Cluster have clocks of their own
                    self.server.heard(*map(int, clock))
                answer = (outcome, *rest)

    async def _look_elsewhere(self, lane: _Lane, request: Request, asked: _Lane) -> Any:
        """The answer of another shard. If that shard is unreachable, the renewal of leases goes on without it, as if it
        were empty: then records are kept that could have been dropped."""
        command = command_of(request, asked.keys)
        if lane.shard != MEMBERSHIP_SHARD or not isinstance(request, Fetch):
            return await self.server.ask(command)
        try:
            async with asyncio.timeout(ELSEWHERE_S):
                return await self.server.ask(command)
        except TimeoutError:
            return [None] * len(request.names)

    async def _look_at_new_server(self, lane: _Lane, name: bytes, safe: int) -> DawsError | None:
        """Check a new server. It may have lost updates that were not safe, but not those that were. Returns the error,
        if any."""
        try:
            known, _ = await self.server.ask(ServerCommand(lane.keys.callers, (name,), CHECK))
            if known >= safe:
                await self.server.agree(_written(self.options))
                return None
        except DawsError as error:
            return error
        where = f"{self.server.address.name!r} at {self.server.where}"
        cure = "set `appendonly yes` on the server, or give it replicas"
        self._broken = UnavailableError(f"the store {where} has lost data that was safe: {cure}", retry=False)
        return self._broken

    # -- what is safe ----------------------------------------------------------------------------------

    def _look_around(self) -> None:
        if self._watching is None and not self._closed and any(lane.wants_looking_after for lane in self._lanes):
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        """Check unsafe lanes and lost connections until all is safe and connected."""
        try:
            while todo := [lane for lane in self._lanes if lane.wants_looking_after]:
                await asyncio.sleep(WATCH_S)
                await asyncio.gather(*map(self._look_after, todo))
        except DawsError as error:
            log.warning("cannot tell which updates are safe: %s", error)  # the next call starts it again
        finally:
            self._watching = None

    async def _look_after(self, lane: _Lane) -> None:
        name, acknowledged, safe = lane.caller.name, lane.caller.position, lane.safety.safe
        command = ServerCommand(lane.keys.callers, (name,), CHECK)
        known = -1  # if another server would answer
        with contextlib.suppress(StoreChangedError):
            (known, replication), link = await self.server.ask_the_same(command, lane.link)
        if lane.caller.name != name:
            return  # meanwhile a call has noticed
        if known >= acknowledged:
            lane.link = link
            lane.safety.learn(acknowledged, read_replicas(replication), time.monotonic())
            if lane.safety.safe != safe and self.on_safe is not None:
                self.on_safe(lane.shard)
        elif lane.at_work is None:  # else a call is about to notice
            lane.begin_anew()
            if self.on_changed is not None:
                self.on_changed(lane.shard)
            await self._look_at_new_server(lane, name, safe)


def _written(options: StoreOptions) -> str:
    return msgspec.json.encode({"format": FORMAT, "options": options}).decode()


def _read(made: str, name: str) -> StoreOptions:
    try:
        about = msgspec.json.decode(made)
        if about["format"] == FORMAT:
            return msgspec.convert(about["options"], StoreOptions)
    except (msgspec.MsgspecError, KeyError, TypeError):
        about = {"format": "unknown"}
    raise UsageError(
        f"the store {name!r} has format {about['format']}, this daws reads {FORMAT}: choose another name for a new one"
    )
