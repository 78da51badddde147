"""The store on a Valkey server, for those who live on an event loop.

Each shard has a lane: calls that come while one is under way wait, and are then carried out together as one update. So
calls of one process to one shard are carried out in order, and the more there is to do the larger the updates are.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from daws.model.errors import DawsError, UsageError
from daws.store.valkey.caller import Caller, Commit, Done, Request, WritesLostError
from daws.store.valkey.scripts import Keys, command_of
from daws.store.valkey.server import FORMAT, Address, Server
from daws.store.valkey.view import Options
from daws.wire.store import AnswerType, Row


class _Call:
    """Rows that somebody, or nobody, waits for."""

    __slots__ = ("answers", "now_ns", "rows")

    def __init__(
        self, rows: Sequence[Row], now_ns: int | None, answers: "asyncio.Future[list[AnswerType]] | None"
    ) -> None:
        self.rows = rows
        self.now_ns = now_ns
        self.answers = answers


class ValkeyStore:
    """Make one with `ValkeyStore.open`, on the loop where it will be used."""

    def __init__(self, server: Server, options: Options) -> None:
        self.shard_count = options.shard_count
        self.options = options
        self.server = server
        self._keys = [Keys(server.address.name, shard) for shard in range(options.shard_count)]
        self._callers = [Caller(options, shard) for shard in range(options.shard_count)]
        self._waiting: list[deque[_Call]] = [deque() for _ in range(options.shard_count)]
        self._lanes: list[asyncio.Task[None] | None] = [None] * options.shard_count

    @classmethod
    async def open(
        cls, address: Address, options: Options | None = None, patience_s: float | None = None
    ) -> "ValkeyStore":
        """`options` are for a new store; one that is there keeps its own. `patience_s`: see `Server`."""
        wanted = Options() if options is None else options
        server = Server(address, patience_s)
        try:
            made = await server.open(_written(wanted))
            return cls(server, _read(made, address.name))
        except BaseException:
            await server.close()
            raise

    def call(self, shard: int, rows: Sequence[Row], now_ns: int | None = None) -> "asyncio.Future[list[AnswerType]]":
        """Carry out rows, after all calls to this shard before. `now_ns` stands in for the server's clock."""
        answers: asyncio.Future[list[AnswerType]] = asyncio.get_running_loop().create_future()
        self._enter(shard, _Call(rows, now_ns, answers))
        return answers

    def identity(self, shard: int) -> str:
        """Another one from when on the server has lost something that it had acknowledged."""
        return self._callers[shard].identity

    def position(self, shard: int) -> int:
        """The number of the last update of ours that was acknowledged, counted anew for each identity."""
        return self._callers[shard].position

    async def idle(self) -> None:
        """Returns when nothing is under way."""
        while busy := [lane for lane in self._lanes if lane is not None]:
            await asyncio.wait(busy)

    async def close(self) -> None:
        """Calls that were not answered yet are given up."""
        for lane in self._lanes:
            if lane is not None:
                lane.cancel()
        await asyncio.gather(*(lane for lane in self._lanes if lane is not None), return_exceptions=True)
        await self.server.close()

    def _enter(self, shard: int, call: _Call) -> None:
        self._waiting[shard].append(call)
        if self._lanes[shard] is None:
            self._lanes[shard] = asyncio.get_running_loop().create_task(self._go(shard))

    async def _go(self, shard: int) -> None:
        waiting = self._waiting[shard]
        try:
            while waiting:
                calls = [waiting.popleft()]
                while waiting and waiting[0].now_ns == calls[0].now_ns:
                    calls.append(waiting.popleft())
                try:
                    await self._carry_out(shard, calls)
                except DawsError as error:
                    for call in calls:
                        if call.answers is not None and not call.answers.done():
                            call.answers.set_exception(error)
                except BaseException:
                    for call in (*calls, *waiting):
                        if call.answers is not None:
                            call.answers.cancel()
                    raise
        finally:
            self._lanes[shard] = None

    async def _carry_out(self, shard: int, calls: list[_Call]) -> None:
        rows = calls[0].rows if len(calls) == 1 else [row for call in calls for row in call.rows]
        now_ns = calls[0].now_ns
        done = await self._drive(shard, rows, self.server.now_ns() if now_ns is None else now_ns)
        start = 0
        for call in calls:
            if call.answers is not None and not call.answers.done():
                call.answers.set_result(done.answers[start : start + len(call.rows)])
            start += len(call.rows)
        for other, row in done.afterwards:
            self._enter(other, _Call((row,), now_ns, None))

    async def _drive(self, shard: int, rows: Sequence[Row], now_ns: int) -> Done:
        """Ask the server what the caller wants to know, until it is done."""
        script = self._callers[shard].carry_out(rows, now_ns)
        answer: Any = None
        while True:
            try:
                request: Request = script.send(answer)
            except StopIteration as end:
                done: Done = end.value
                return done
            answer = await self.server.ask(command_of(request, self._keys[request.shard]))
            if isinstance(request, Commit):
                outcome, clock, *rest = answer
                self.server.heard(*map(int, clock))
                answer = (outcome, *rest)


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


__all__ = ["ValkeyStore", "WritesLostError"]
