"""The desk of a client: calls, what travels with new tasks, and what is asked beside calls; without a server."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from daws.core.effects import CallStore
from daws.core.events import CallFine, NewStrategy, StoreAnswered
from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.errors import UnavailableError
from daws.model.session import NO_SESSION
from daws.model.states import FAILED
from daws.model.task import Input, Ready, TaskSpec
from daws.net.config import ClusterConfig
from daws.runtime.cluster.direct import desk
from daws.runtime.cluster.direct.desk import Desk
from daws.store.memory import MemoryStore
from daws.store.memory.record import Record
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.caller import StoreChangedError
from daws.wire.cluster import AskCluster, AskEnds, ClusterIs, Ends, Refused
from daws.wire.messages import CancelOrder, Submission
from daws.wire.session import Fresh
from daws.wire.store import CLIENT_HOLDER, AnswerType, Finish, Release, Row, Submit, UseStrategy, Watch

ANN = 1
BASE = 5 << 34


class Store:
    """As far as a desk asks a store on a server. It answers in the next turn of the loop."""

    def __init__(self) -> None:
        self.options = StoreOptions(direct=True)
        self.shard_count = self.options.shard_count
        self.memory = MemoryStore(self.shard_count, direct=True)
        self.memory.join([NodeInfo(ANN, (ExecutorClass(1),))])
        self.server = SimpleNamespace(address=SimpleNamespace(name="tests"))
        self.caches: dict[int, dict[int, Any]] = {}
        self.name = "first"
        self.error: Exception | None = None
        self.is_closed = False
        self.on_changed = self.on_safe = lambda shard: None

    def call(self, shard: int, rows: Sequence[Row], identity: str = "") -> "asyncio.Future[list[AnswerType]]":
        loop = asyncio.get_running_loop()
        answers: asyncio.Future[list[AnswerType]] = loop.create_future()
        if self.error is not None:
            answers.set_exception(self.error)
        elif identity not in ("", self.name):
            answers.set_exception(StoreChangedError())
        else:
            answers.set_result(self.memory.apply(shard, rows, 0))
        return answers

    def cache_of(self, task: int) -> dict[int, Any]:
        return self.caches.setdefault(task >> 6, {})

    def identity(self, shard: int) -> str:
        return self.name

    def position(self, shard: int) -> int:
        return 1

    def safe_position(self, shard: int) -> int:
        return 0

    async def records(self, tasks: Sequence[int]) -> dict[int, Record | None]:
        return {task: self.memory.record(task) for task in tasks}

    async def idle(self) -> None:
        pass

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    given = iter(range(1, 100))

    async def new_number(store: Any, what: str) -> int:
        return next(given)

    monkeypatch.setattr(desk, "new_number", new_number)


class Site:
    def __init__(self) -> None:
        self.store = Store()
        self.heard: list[Any] = []
        reach: Any = SimpleNamespace(config=ClusterConfig(name="tests"))
        self.desk = Desk(reach, cast(Any, self.store), self.heard.extend)

    async def says(self, *said: Any) -> list[Any]:
        """What is heard after this was said."""
        for word in said:
            self.desk.send(word)
        for _ in range(20):
            await asyncio.sleep(0)
        heard, self.heard[:] = [*self.heard], []
        return heard


def at_desk(work: Callable[[Site], Awaitable[None]]) -> None:
    async def run() -> None:
        site = Site()
        try:
            await work(site)
        finally:
            await site.desk.close()
        assert site.store.is_closed

    asyncio.run(run())


def submit(task: int) -> Submit:
    return Submit(TaskSpec(task, 1, outputs=(task,)), (), ANN)


def test_calls_are_answered_as_the_server_of_an_embedded_store_does():
    async def work(site: Site) -> None:
        assert await site.says(CallStore(1, 0, [submit(BASE)])) == [CallFine(1)]
        (answered,) = await site.says(CallStore(2, 0, [Watch(0)]))
        assert isinstance(answered, StoreAnswered) and answered.token == 2

    at_desk(work)


def test_a_cluster_is_described_with_a_number_for_a_session_that_nobody_else_gets():
    async def work(site: Site) -> None:
        (one,), (two,) = await site.says(AskCluster(True)), await site.says(AskCluster(True))
        assert isinstance(one, ClusterIs) and isinstance(two, ClusterIs)
        assert one.members.nodes == (ANN,) and one.shard_count == site.store.shard_count and one.strategy
        assert one.proposal != two.proposal
        (tools,) = await site.says(AskCluster())
        assert tools.proposal == NO_SESSION, "numbers are not wasted on tools"

    at_desk(work)


def test_a_cluster_is_described_after_a_failover(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(desk, "AGAIN_S", 0.0)

    async def work(site: Site) -> None:
        site.store.name = "second"
        heard = await site.says(AskCluster())
        assert isinstance(heard[-1], ClusterIs) and heard[-1].members.nodes == (ANN,)

    at_desk(work)


def test_a_strategy_is_kept_in_the_store():
    async def work(site: Site) -> None:
        await site.says(NewStrategy("flds"))
        (cluster,) = await site.says(AskCluster())
        assert cluster.strategy.startswith("flds") and cluster.members.strategy == cluster.strategy

    at_desk(work)


def test_a_strategy_is_kept_though_another_client_has_changed_it_meanwhile():
    async def work(site: Site) -> None:
        call, memory = site.store.call, site.store.memory

        def call_late(shard: int, rows: Sequence[Row], identity: str = "") -> "asyncio.Future[list[AnswerType]]":
            if isinstance(rows[0], UseStrategy):
                site.store.call = call  # type: ignore[method-assign]
                memory.apply(0, [UseStrategy("match", memory.members_now().version)], 0)
            return call(shard, rows, identity)

        site.store.call = call_late  # type: ignore[method-assign]
        await site.says(NewStrategy("flds"))
        assert memory.members_now().strategy.startswith("flds")

    at_desk(work)


def test_ends_are_answered_with_what_tasks_have_raised():
    async def work(site: Site) -> None:
        await site.says(CallStore(1, 0, [submit(BASE), submit(BASE + 1), submit(BASE + 2)]))
        made = (Input(BASE, 1, BASE, (), b"v"),)
        site.store.memory.apply(0, [Finish(BASE, 0, ANN, made), Finish(BASE + 1, 0, ANN, (), "no", b"why")], 0)
        (ends,) = await site.says(AskEnds([BASE, BASE + 1, BASE + 2, 77]))
        known = {one.task: one for one in ends.outcomes}
        assert isinstance(ends, Ends) and known[BASE].outputs == made and BASE + 2 not in known
        assert (known[BASE + 1].state, known[BASE + 1].error, known[BASE + 1].failure) == (FAILED, "no", b"why")
        assert "does not know" in known[77].error

    at_desk(work)


def test_new_tasks_travel_with_what_is_known_of_their_cells():
    async def work(site: Site) -> None:
        submission = Submission(-1, 5, (Ready(TaskSpec(BASE), 0, 0),))
        fresh = site.desk.dress(ANN, submission)
        assert isinstance(fresh, Fresh) and fresh.submission == submission
        order = CancelOrder(-1, 6, (BASE,))
        assert site.desk.dress(ANN, order) is order

    at_desk(work)


def test_a_task_that_is_let_go_of_before_it_has_ended_is_not_cached_any_more(monkeypatch: pytest.MonkeyPatch):
    forgotten: list[list[int]] = []
    monkeypatch.setattr(desk, "forget_unended", lambda cache_of, tasks: forgotten.append([*tasks]))

    async def work(site: Site) -> None:
        await site.says(CallStore(1, 0, [submit(BASE)]))
        assert not forgotten
        await site.says(CallStore(2, 0, [Release(BASE, CLIENT_HOLDER), Release(BASE + 1, CLIENT_HOLDER)]))
        assert forgotten == [[BASE, BASE + 1]]

    at_desk(work)


def test_a_store_that_serves_no_more_is_a_refusal():
    async def work(site: Site) -> None:
        site.store.error = UnavailableError("it was set up for another cluster", retry=False)
        assert await site.says(CallStore(1, 0, [submit(BASE)])) == [Refused("it was set up for another cluster")]

    at_desk(work)


def test_nothing_is_heard_of_a_desk_that_is_closed():
    async def work(site: Site) -> None:
        site.desk.send(CallStore(1, 0, [submit(BASE)]))
        await site.desk.close()
        assert not await site.says() and site.store.is_closed

    at_desk(work)
