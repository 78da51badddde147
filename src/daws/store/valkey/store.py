"""The store on a Valkey server, for those who live on an event loop.

Each shard has a lane: calls that come while one is under way wait, and are then carried out together as one update. So
calls of one process to one shard are carried out in order, and the more there is to do the larger the updates are.

A server that loses what it had acknowledged (rule 11) is noticed with the next call, or by the watch that looks after
what is not safe yet. All calls to that shard that were not answered end with `WritesLostError`, and its `identity` is
another one from then on. What had a higher `position` than `safe_position` may be lost: send it again.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from daws.model.errors import DawsError, UnavailableError, UsageError
from daws.store.valkey.caller import Caller, Commit, Done, Request, WritesLostError
from daws.store.valkey.safety import Safety, read_replicas
from daws.store.valkey.scripts import CHECK, Command, Keys, command_of
from daws.store.valkey.server import FORMAT, Address, Server
from daws.store.valkey.view import Options
from daws.wire.store import AnswerType, Row

WATCH_S = 0.25
"""So often is asked how much of what is not safe yet has become so."""

Answers = asyncio.Future[list[AnswerType]]


class _Call:
    """Rows that somebody, or nobody, waits for."""

    __slots__ = ("answers", "now_ns", "rows")

    def __init__(self, rows: Sequence[Row], now_ns: int | None, answers: Answers | None) -> None:
        self.rows = rows
        self.now_ns = now_ns
        self.answers = answers

    def fail(self, error: Exception) -> None:
        if self.answers is not None and not self.answers.done():
            self.answers.set_exception(error)


class _Lane:
    """All that concerns one shard."""

    def __init__(self, options: Options, name: str, shard: int, replicas_min: int) -> None:
        self.shard = shard
        self.keys = Keys(name, shard)
        self.caller = Caller(options, shard)
        self.safety = Safety(replicas_min)
        self.waiting: deque[_Call] = deque()
        self.at_work: asyncio.Task[None] | None = None


class ValkeyStore:
    """Make one with `ValkeyStore.open`, on the loop where it will be used."""

    def __init__(self, server: Server, options: Options, replicas_min: int = 0) -> None:
        self.shard_count = options.shard_count
        self.options = options
        self.server = server
        self.on_lost: Callable[[int], None] | None = None  # a shard has another identity, and nobody was calling it
        name = server.address.name
        self._lanes = [_Lane(options, name, shard, replicas_min) for shard in range(options.shard_count)]
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, address: Address, options: Options | None = None, patience_s: float | None = None, replicas_min: int = 0
    ) -> "ValkeyStore":
        """`options` are for a new store; one that is there keeps its own. `patience_s`: see `Server`. `replicas_min`:
        nothing counts as safe while fewer replicas are attached."""
        server = Server(address, patience_s)
        try:
            made = await server.open(_written(Options() if options is None else options))
            return cls(server, _read(made, address.name), replicas_min)
        except BaseException:
            server.close()
            raise

    def call(self, shard: int, rows: Sequence[Row], now_ns: int | None = None, identity: str | None = None) -> Answers:
        """Carry out rows, after all calls to this shard before. `now_ns` stands in for the server's clock. With an
        `identity` that is no longer the shard's, the call ends as if it had been under way when that was lost."""
        answers: Answers = asyncio.get_running_loop().create_future()
        if identity is not None and identity != self.identity(shard):
            answers.set_exception(WritesLostError(shard))
        else:
            self._enter(self._lanes[shard], _Call(rows, now_ns, answers))
        return answers

    def identity(self, shard: int) -> str:
        """Another one from when on the server has lost something that it had acknowledged."""
        return self._lanes[shard].caller.name.hex()

    def position(self, shard: int) -> int:
        """The number of our last update that was acknowledged, counted anew for each identity."""
        return self._lanes[shard].caller.position

    def safe_position(self, shard: int) -> int:
        """The number of our last update that is where no failover can lose it."""
        return self._lanes[shard].safety.safe

    async def idle(self) -> None:
        """Returns when nothing is under way."""
        while busy := [lane.at_work for lane in self._lanes if lane.at_work is not None]:
            await asyncio.wait(busy)

    async def close(self) -> None:
        """Calls that were not answered yet are given up."""
        tasks = [lane.at_work for lane in self._lanes if lane.at_work is not None]
        if self._watching is not None:
            tasks.append(self._watching)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.server.close()

    # -- calls -----------------------------------------------------------------------------------------

    def _enter(self, lane: _Lane, call: _Call) -> None:
        lane.waiting.append(call)
        if lane.at_work is None:
            lane.at_work = asyncio.get_running_loop().create_task(self._work(lane))

    async def _work(self, lane: _Lane) -> None:
        waiting = lane.waiting
        calls: list[_Call] = []
        try:
            while waiting:
                calls = [waiting.popleft()]
                while waiting and waiting[0].now_ns == calls[0].now_ns:
                    calls.append(waiting.popleft())
                try:
                    await self._carry_out(lane, calls)
                except WritesLostError as error:
                    lane.safety.begin_anew()
                    calls += waiting  # whatever was said since knows nothing of it
                    waiting.clear()
                    wrong = await self._is_it_all_gone() or error
                    for call in calls:
                        call.fail(wrong)
                except DawsError as error:
                    for call in calls:
                        call.fail(error)
        except BaseException:  # it was cancelled, or we have a bug: nobody is to wait for ever
            for call in (*calls, *waiting):
                if call.answers is not None:
                    call.answers.cancel()
            raise
        finally:
            lane.at_work = None
        if self._watching is None and lane.caller.position > lane.safety.safe:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _carry_out(self, lane: _Lane, calls: list[_Call]) -> None:
        rows = calls[0].rows if len(calls) == 1 else [row for call in calls for row in call.rows]
        now_ns = calls[0].now_ns
        done = await self._drive(lane.caller, rows, now_ns)
        start = 0
        for call in calls:
            if call.answers is not None and not call.answers.done():
                call.answers.set_result(done.answers[start : start + len(call.rows)])
            start += len(call.rows)
        for other, row in done.afterwards:
            self._enter(self._lanes[other], _Call((row,), now_ns, None))

    async def _drive(self, caller: Caller, rows: Sequence[Row], now_ns: int | None) -> Done:
        """Ask the server what the caller wants to know, until it is done."""
        if now_ns is None:
            script = caller.carry_out(rows, self.server.now_ns(), self.server.outage)
        else:
            script = caller.carry_out(rows, now_ns)
        answer: Any = None
        while True:
            try:
                request: Request = script.send(answer)
            except StopIteration as end:
                done: Done = end.value
                return done
            answer = await self.server.ask(command_of(request, self._lanes[request.shard].keys))
            if isinstance(request, Commit):
                outcome, clock, *rest = answer
                self.server.heard(*map(int, clock))
                answer = (outcome, *rest)

    async def _is_it_all_gone(self) -> DawsError | None:
        name = self.server.address.name
        if await self.server.is_there():
            return None
        said = f"the store {name!r} at {self.server.where} has forgotten everything: set `appendonly yes` on the server"
        return UnavailableError(said, retry=False)

    # -- what is safe ----------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Until all is safe."""
        try:
            while any(lane.caller.position > lane.safety.safe for lane in self._lanes):
                await asyncio.sleep(WATCH_S)
                for lane in self._lanes:
                    if lane.caller.position > lane.safety.safe:
                        await self._look_after(lane)
        finally:
            self._watching = None

    async def _look_after(self, lane: _Lane) -> None:
        name, acknowledged = lane.caller.name, lane.caller.position
        known, replication = await self.server.ask(Command(lane.keys.callers, (name,), CHECK))
        if lane.caller.name != name:
            return  # meanwhile a call has found out
        if known >= acknowledged:
            lane.safety.learn(acknowledged, read_replicas(replication), time.monotonic())
        elif lane.at_work is None:
            lane.caller.begin_anew()
            lane.safety.begin_anew()
            if self.on_lost is not None:
                self.on_lost(lane.shard)


def _written(options: Options) -> str:
    return msgspec.json.encode({"format": FORMAT, "options": options}).decode()


def _read(made: str, name: str) -> Options:
    try:
        about = msgspec.json.decode(made)
        if about["format"] == FORMAT:
            return msgspec.convert(about["options"], Options)
    except (msgspec.MsgspecError, KeyError, TypeError):
        about = {"format": "unknown"}
    raise UsageError(
        f"the store {name!r} has format {about['format']}, this daws reads {FORMAT}: choose another name for a new one"
    )
