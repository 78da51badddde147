"""Calls to a store that is reached directly, in memory: what is answered, what is safe, and what a failover changes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from daws.core.effects import CallStore
from daws.core.events import CallFine, CallsSafe, StoreAnswered, StoreChanged
from daws.runtime.cluster.direct.calls import DirectCalls
from daws.store.valkey.caller import StoreChangedError
from daws.wire.store import OK, UNKNOWN, AnswerType, Inspect, Row


class Store:
    """As far as the calls ask a store on a server. Calls are answered when a test says so."""

    def __init__(self, shards: int = 2) -> None:
        self.shard_count = shards
        self.names = ["first"] * shards
        self.positions = [0] * shards
        self.safe = [0] * shards
        self.made: list[tuple[int, Sequence[Row], str, asyncio.Future[list[AnswerType]]]] = []
        self.on_changed: Callable[[int], None] = lambda shard: None
        self.on_safe: Callable[[int], None] = lambda shard: None

    def call(self, shard: int, rows: Sequence[Row], identity: str = "") -> "asyncio.Future[list[AnswerType]]":
        answers: asyncio.Future[list[AnswerType]] = asyncio.get_running_loop().create_future()
        self.made.append((shard, rows, identity, answers))
        return answers

    def identity(self, shard: int) -> str:
        return self.names[shard]

    def position(self, shard: int) -> int:
        return self.positions[shard]

    def safe_position(self, shard: int) -> int:
        return self.safe[shard]

    def all_is_safe(self, shard: int = 0) -> None:
        self.safe[shard] = self.positions[shard]
        self.on_safe(shard)


class Caller:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.heard: list[Any] = []
        self.errors: list[BaseException] = []
        self.noted: list[tuple[int, list[AnswerType]]] = []
        self.calls = DirectCalls(
            cast(Any, store),
            self.heard.append,
            self.errors.append,
            lambda call, answers: self.noted.append((call.token, answers)),
        )

    def say(self, token: int, shard: int = 0) -> None:
        self.calls.carry_out(CallStore(token, shard, [Inspect(token)]))

    async def answer(self, *answers: AnswerType, writes: bool = True, error: Exception | None = None) -> None:
        """The store answers the oldest call."""
        shard, _, _, asked = self.store.made.pop(0)
        if error is not None:
            asked.set_exception(error)
        else:
            self.store.positions[shard] += writes
            asked.set_result([*answers])
        await asyncio.sleep(0)

    def news(self) -> list[Any]:
        heard, self.heard[:] = [*self.heard], []
        return heard


def with_caller(work: Callable[[Caller], Awaitable[None]]) -> None:
    async def run() -> None:
        await work(Caller(Store()))

    asyncio.run(run())


def test_a_call_is_answered_and_then_safe():
    async def work(caller: Caller) -> None:
        caller.say(7)
        caller.say(8)
        await caller.answer(None)
        assert caller.news() == [CallFine(7)]
        await caller.answer(UNKNOWN)
        assert caller.news() == [StoreAnswered(8, [UNKNOWN])]
        assert caller.noted == [(7, [None]), (8, [UNKNOWN])]
        caller.store.safe[0] = 1
        caller.store.on_safe(0)
        assert caller.news() == [CallsSafe(0, (7,))]
        caller.store.all_is_safe()
        assert caller.news() == [CallsSafe(0, (8,))]
        caller.store.all_is_safe()
        assert not caller.news(), "it is said once"

    with_caller(work)


def test_calls_that_are_safe_together_are_told_of_together_and_by_shard():
    async def work(caller: Caller) -> None:
        for token, shard in ((7, 0), (8, 1), (9, 0)):
            caller.say(token, shard)
        for _ in range(3):
            await caller.answer(None)
        caller.news()
        caller.store.all_is_safe(0)
        assert caller.news() == [CallsSafe(0, (7, 9))]
        caller.store.all_is_safe(1)
        assert caller.news() == [CallsSafe(1, (8,))]

    with_caller(work)


def test_a_call_that_changes_nothing_is_as_safe_as_what_was_before_it():
    async def work(caller: Caller) -> None:
        caller.say(7)
        await caller.answer(None)
        caller.store.all_is_safe()
        caller.news()
        caller.say(8)
        await caller.answer(OK, writes=False)
        assert caller.news() == [StoreAnswered(8, [OK]), CallsSafe(0, (8,))]

    with_caller(work)


def test_a_call_that_is_repeated_while_it_is_under_way_is_made_once():
    async def work(caller: Caller) -> None:
        for _ in range(3):
            caller.say(7)
        assert len(caller.store.made) == 1
        await caller.answer(None)
        caller.say(7)
        assert len(caller.store.made) == 1, "its answer may have been lost"

    with_caller(work)


def test_answers_for_an_earlier_life_are_dropped():
    async def work(caller: Caller) -> None:
        caller.say(7)
        await caller.answer(None)
        caller.say(8)
        life = caller.calls._lives[0]
        caller.news()
        caller.calls.begin_life()
        assert caller.calls._lives[0] != life
        caller.say(8)  # the number is given again by another incarnation
        await caller.answer(UNKNOWN)
        assert not caller.news() and len(caller.noted) == 1
        caller.store.all_is_safe()
        assert not caller.news(), "7 was not made in this life"
        await caller.answer(None)
        assert CallFine(8) in caller.news()

    with_caller(work)


def test_another_server_is_told_of_before_anything_that_it_answers():
    async def work(caller: Caller) -> None:
        caller.say(7)
        await caller.answer(None)
        caller.say(8)
        caller.say(9, 1)
        caller.news()
        caller.store.names[0] = "second"
        await caller.answer(error=StoreChangedError())
        assert caller.news() == [StoreChanged(0)]
        caller.say(8)
        assert caller.store.made[-1][2] == "second", "it is known now"
        caller.store.on_changed(0)
        assert not caller.news(), "once for each server"
        await caller.answer(None)
        assert caller.news() == [CallFine(9)], "the other shard has lost nothing"
        await caller.answer(None)
        caller.store.all_is_safe()
        assert caller.news() == [CallFine(8), CallsSafe(0, (8,))], "7 is not safe: it was lost"

    with_caller(work)


def test_a_change_is_noticed_without_a_call():
    async def work(caller: Caller) -> None:
        caller.say(7)
        caller.store.names[:] = ["second", "second"]
        caller.store.on_changed(1)
        assert caller.news() == [StoreChanged(0), StoreChanged(1)]
        await caller.answer(None)
        assert not caller.news(), "the answer is of the server before"
        caller.say(7)
        assert len(caller.store.made) == 1, "it is made again"

    with_caller(work)


def test_after_the_end_a_change_is_nobodys_concern():
    async def work(caller: Caller) -> None:
        caller.calls.is_closed = True
        caller.store.names[0] = "second"
        caller.store.on_changed(0)
        assert not caller.news()

    with_caller(work)


def test_an_error_that_no_repetition_helps_against_is_reported():
    async def work(caller: Caller) -> None:
        caller.say(7)
        error = ValueError("nonsense")
        await caller.answer(error=error)
        assert caller.errors == [error] and not caller.news()
        caller.say(8)
        caller.store.made.pop()[3].cancel()
        await asyncio.sleep(0)
        assert len(caller.errors) == 1, "a call that was cancelled is no error"

    with_caller(work)


def test_rows_are_refused_by_a_server_that_is_not_known_yet():
    async def work(caller: Caller) -> None:
        caller.store.names[0] = "second"
        asked = caller.calls.rows(0, [Inspect(1)])
        assert caller.store.made[0][2] == "first"
        await caller.answer(error=StoreChangedError())
        with pytest.raises(StoreChangedError):
            await asked
        assert not caller.news() and not caller.errors

    with_caller(work)
