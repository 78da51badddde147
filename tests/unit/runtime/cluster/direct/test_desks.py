"""The desk of a node: numbers, ends, and what it does for others; on a real server."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from daws.core.effects import CallStore
from daws.core.events import CallFine, CallsSafe, StoreAnswered
from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.session import SESSION_BITS, brought_id
from daws.model.states import FAILED
from daws.model.task import FIRST_SPAWNED_ID, FROM_OUTSIDE, Input, TaskSpec
from daws.net.config import ClusterConfig
from daws.runtime.cluster.direct import members
from daws.runtime.cluster.direct.ends import LogEnds
from daws.runtime.cluster.direct.members import NodeDesk
from daws.store.valkey import safety
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.numbers import new_number
from daws.store.valkey.scripts import ServerCommand
from daws.store.valkey.server import Address
from daws.store.valkey.store import ValkeyStore
from daws.wire.cluster import AskEnds, AskFunction, Enrol, Enrolled, Forgotten, OpenSessions
from daws.wire.cluster import Ends as Told
from daws.wire.ends import Outcome
from daws.wire.messages import Submission
from daws.wire.store import (
    TO_END,
    AnswerType,
    AttachSession,
    Cancel,
    DetachSession,
    Finish,
    Lease,
    ListSessions,
    ReadLog,
    Row,
    SessionAttached,
    SessionList,
    Submit,
    TrimLog,
    Watch,
    shard_of,
)
from daws.wire.worker import Learn
from tests.unit.runtime.cluster.machines import DEADLINE_S
from tests.valkey import LocalServer

T = TypeVar("T")
ANN = 1
NO_REACH: Any = SimpleNamespace(config=ClusterConfig(name="tests"))
SESSION = 5 << 34


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    made = LocalServer(tmp_path_factory.mktemp("server"))
    yield made
    made.kill()


def on(server: LocalServer, name: str, work: Callable[[ValkeyStore], Awaitable[None]]) -> None:
    async def run() -> None:
        store = await ValkeyStore.open(Address((server.url,), name), StoreOptions(direct=True))
        async with asyncio.timeout(DEADLINE_S):
            await work(store)
        await store.close()

    asyncio.run(run())


def desk_at(store: ValkeyStore, client_of: Callable[[int], Any] = lambda session: None) -> tuple[NodeDesk, list[Any]]:
    """Of a node, and what it hears."""
    heard: list[Any] = []
    peer: Any = SimpleNamespace(
        on_store=heard.extend, waits_for=list, tell_node=lambda node, message: None, client_of=client_of
    )
    return NodeDesk(NO_REACH, store, peer), heard


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0)


async def first_of(kind: type[T], heard: list[Any]) -> T:
    """The first message of a kind, which is taken off the list."""
    await until(lambda: any(isinstance(one, kind) for one in heard))
    found: T = next(one for one in heard if isinstance(one, kind))
    heard.remove(found)
    return found


def submit(task: int, node: int = ANN) -> Submit:
    return Submit(TaskSpec(task, 1, outputs=(task,)), (), node)


def test_numbers_are_never_given_twice_also_not_by_a_server_that_has_forgotten_the_last_ones(tmp_path: Path):
    server = LocalServer(tmp_path / "server", "--appendonly", "yes", "--appendfsync", "always")
    given: list[int] = []

    async def work(store: ValkeyStore) -> None:
        for _ in range(3):
            given.append(await new_number(store, "node"))

    try:
        on(server, "numbers", work)
        server.kill()
        server.start()
        on(server, "numbers", work)
    finally:
        server.kill()
    assert given == [1, 2, 3, 1000, 1001, 1002]


def test_ends_are_read_from_the_log_or_looked_up_when_it_is_another_one(server: LocalServer):
    async def work(store: ValkeyStore) -> None:
        desk, _ = desk_at(store)
        ends = desk.ends = LogEnds(desk, store.shard_count)
        tasks = [SESSION + number for number in range(4)]
        await store.call(0, [Submit(TaskSpec(task, 1, outputs=(task,)), (), ANN) for task in tasks])
        made = (Input(tasks[0], 3, tasks[0], (ANN,), b"yes"),)
        await store.call(0, [Finish(tasks[0], 0, ANN, made)])
        assert await ends.news(lambda: tasks) == [Outcome(tasks[0], made)]
        assert await ends.news(lambda: tasks[1:]) == []
        await store.call(0, [Finish(tasks[1], 0, ANN, (), "no", b"why")])
        await store.call(0, [Finish(tasks[2], 0, ANN, (Input(tasks[2], 0, tasks[2], (ANN,), b""),))])
        assert await ends.news(lambda: tasks[1:2]) == [Outcome(tasks[1], (), FAILED, "no", b"why")]
        read = store._lanes[0].caller._read
        read.update(dict.fromkeys(read, b"not what is there"))
        assert [one.task for one in await ends.news(lambda: tasks[1:])] == tasks[1:3]
        await store.call(0, [TrimLog(3), Finish(tasks[3], 0, ANN, ())])
        assert [one.task for one in await ends.news(lambda: tasks[3:])] == tasks[3:]
        await desk.close()

    on(server, "ends", work)


def test_an_end_is_read_of_that_is_wanted_only_while_the_log_is_read(server: LocalServer):
    async def work(store: ValkeyStore) -> None:
        desk, _ = desk_at(store)
        ends = LogEnds(desk, store.shard_count)
        first, *late = tasks = [SESSION + number for number in range(3)]
        await store.call(0, [Submit(TaskSpec(task, 1, outputs=(task,)), (), ANN) for task in tasks])
        wanted = {first}
        rows_of = desk.rows

        async def rows_late(shard: int, rows: Sequence[Row]) -> list[AnswerType]:
            if isinstance(rows[0], ReadLog):
                wanted.add(late[0])
                await store.call(0, [Finish(late.pop(0), 0, ANN, ())])
            return await rows_of(shard, rows)

        desk.rows = rows_late  # type: ignore[method-assign]
        assert [one.task for one in await ends.news(lambda: set(wanted))] == tasks[1:2]
        assert [one.task for one in await ends.news(lambda: set(wanted))] == tasks[2:]
        await desk.close()

    on(server, "late", work)


def test_a_call_that_changes_nothing_is_as_safe_as_what_was_before_it(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(safety, "SETTLE_S", 0.0)

    async def work(store: ValkeyStore) -> None:
        desk, heard = desk_at(store)
        await store.call(0, [Submit(TaskSpec(SESSION, 1, outputs=(SESSION,)), (), ANN)])
        for token in (7, 8):  # the second one was said before
            desk.send(CallStore(token, 0, [Finish(SESSION, 0, ANN, ())]))
            while CallsSafe(0, (token,)) not in heard:
                await asyncio.sleep(0)
        await desk.close()

    on(server, "nothing", work)


def test_what_a_task_has_raised_is_told_with_all_that_failed_because_of_it(server: LocalServer):
    async def work(store: ValkeyStore) -> None:
        desk, heard = desk_at(store)
        first, second = tasks = [SESSION, SESSION + 1]
        await store.call(0, [submit(first), Submit(TaskSpec(second, 1, outputs=(second,)), (first,), ANN)])
        error = f"task {first} failed: no"
        rows = [Finish(first, 0, ANN, (), error, b"why"), Cancel(second, ANN, error, first)]
        await store.call(0, rows)
        for asked, failures in ((tasks, [b"why", b""]), ([second], [b"why"])):
            desk.send(AskEnds(asked))
            told = await first_of(Told, heard)
            assert [one.failure for one in told.outcomes] == failures, "once in each message"
        await desk.close()

    on(server, "failure", work)


def test_a_node_hears_at_once_of_ends_that_it_asks_for_and_of_what_nobody_knows(server: LocalServer):
    async def work(store: ValkeyStore) -> None:
        desk, heard = desk_at(store)
        done, waits, unknown = SESSION, SESSION + 1, SESSION + 2
        await store.call(0, [Submit(TaskSpec(one, 1, outputs=(one,)), (), ANN) for one in (done, waits)])
        await store.call(0, [Finish(done, 0, ANN, ())])
        for have_ended in (False, True):
            desk.send(AskEnds([done, waits, unknown], have_ended))
            while Told([Outcome(done, ())]) not in heard:
                await asyncio.sleep(0)
            assert heard == [Told([Outcome(done, ())]), *([Forgotten([unknown])] * have_ended)]
            heard.clear()
        await desk.close()

    on(server, "asked", work)


def test_a_node_that_enrols_gets_a_number_of_its_own_and_forgets_its_calls(server: LocalServer):
    async def work(store: ValkeyStore) -> None:
        desk, heard = desk_at(store)
        numbers = []
        for _ in range(2):
            desk.send(CallStore(7, 0, [Watch(0)]))
            desk.send(Enrol())
            enrolled = await first_of(Enrolled, heard)
            numbers.append(enrolled.node)
            assert enrolled.shard_count == store.shard_count and enrolled.strategy
        assert len(set(numbers)) == 2 and desk.user.node == numbers[-1]
        assert not [one for one in heard if isinstance(one, StoreAnswered)], "these were calls of the life before"
        await desk.close()

    on(server, "enrol", work)


def test_a_function_is_found_as_soon_as_it_is_brought_in(server: LocalServer):
    async def work(store: ValkeyStore) -> None:
        desk, heard = desk_at(store)
        desk.send(AskFunction(SESSION))
        await asyncio.sleep(0)
        made = (Input(SESSION, 4, SESSION, (), b"code"),)
        await store.call(0, [Submit(TaskSpec(SESSION, FROM_OUTSIDE, outputs=(SESSION,)), (), -1, made)])
        assert await first_of(Learn, heard) == Learn(SESSION, b"code")
        await desk.close()

    on(server, "function", work)


def test_a_function_of_a_session_that_has_ended_is_not_asked_for_any_more(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(members, "LOOK_S", 0.01)
    monkeypatch.setattr(members, "ASK_AGAIN_S", 0.001)

    async def work(store: ValkeyStore) -> None:
        desk, heard = desk_at(store)
        desk.send(Enrol())
        await first_of(Enrolled, heard)
        (attached,) = await store.call(0, [AttachSession(b"n" * 16)])
        assert isinstance(attached, SessionAttached)
        ask, reads = store.server.ask, 0

        async def counted(command: ServerCommand) -> object:
            nonlocal reads
            reads += command.words[0] == "HMGET"
            return await ask(command)

        monkeypatch.setattr(store.server, "ask", counted)
        for function in (attached.session << SESSION_BITS, brought_id(attached.session, b"digest")):
            desk.send(AskFunction(function))
        await until(lambda: reads > 10)
        await store.call(0, [DetachSession(b"n" * 16, attached.session, False)])
        before = 0
        while reads > before:  # until none comes for a while
            before = reads
            await asyncio.sleep(0.2)
        (attached,) = await store.call(0, [AttachSession(b"m" * 16)])
        await first_of(OpenSessions, heard)
        while OpenSessions([attached.session]) not in heard:  # type: ignore[union-attr]
            await asyncio.sleep(0.01)  # a node hears of it, and asks again if a failover had hidden it
        await desk.close()

    on(server, "functions", work)


def test_a_client_is_told_at_once_of_ends_and_of_what_its_caller_can_cache(server: LocalServer):
    async def work(store: ValkeyStore) -> None:
        said: list[Any] = []

        class Link:
            send = said.append

        link = Link()
        desk, heard = desk_at(store, lambda session: link if session == SESSION >> SESSION_BITS else None)
        desk.user.node = ANN
        spawned, other = FIRST_SPAWNED_ID + 64, SESSION + (1 << SESSION_BITS)
        tasks = [SESSION, SESSION + 1, spawned, other]
        for task in tasks:
            await store.call(shard_of(task, store.shard_count), [submit(task)])
        for token, task in enumerate(tasks):
            row = Finish(task, 0, ANN, (Input(task, 1, task, (ANN,), b"v"),), "no" if task == SESSION + 1 else "")
            desk.send(CallStore(token, shard_of(task, store.shard_count), [row]))
        await until(lambda: sum(isinstance(one, CallFine | StoreAnswered) for one in heard) == len(tasks))
        assert [one.task for word in said for one in word.outcomes] == [SESSION], "of a failure the store says more"
        own = [one.task for word in heard if isinstance(word, Told) for one in word.outcomes]
        assert own == [spawned], "a run here may wait for it"
        await desk.close()

    on(server, "told", work)


def test_the_first_node_sweeps_sessions_and_what_its_sweeper_hears_is_not_for_the_node(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(members, "LOOK_S", 0.01)
    monkeypatch.setattr(safety, "SETTLE_S", 0.0)

    async def work(store: ValkeyStore) -> None:
        desk, heard = desk_at(store)
        desk.send(Enrol())
        node = (await first_of(Enrolled, heard)).node
        desk.send(CallStore(1, 0, [Lease(node, 0, NodeInfo(node, (ExecutorClass(1),)))]))
        await first_of(StoreAnswered, heard)
        (attached,) = await store.call(0, [AttachSession(b"n" * 16)])
        assert isinstance(attached, SessionAttached)
        rows = [
            AttachSession(b"n" * 16, session=attached.session, why=TO_END),
            DetachSession(b"n" * 16, attached.session, True),
        ]
        await store.call(0, rows)

        async def is_gone() -> bool:
            (answer,) = await store.call(0, [ListSessions()])
            return isinstance(answer, SessionList) and not answer.sessions

        while not await is_gone():
            await asyncio.sleep(0.01)
        tokens = {one.token for one in heard if isinstance(one, StoreAnswered | CallFine)}
        safe = {token for one in heard if isinstance(one, CallsSafe) for token in one.tokens}
        assert not tokens and safe <= {1}
        await desk.close()

    on(server, "sweeps", work)


def test_a_node_takes_what_a_client_that_is_gone_has_not_told_it(server: LocalServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(members, "LOOK_S", 0.01)

    async def work(store: ValkeyStore) -> None:
        desk, heard = desk_at(store)
        desk.send(Enrol())
        node = (await first_of(Enrolled, heard)).node
        (attached,) = await store.call(0, [AttachSession(b"n" * 16, kept=True)])
        assert isinstance(attached, SessionAttached)
        task = attached.session << SESSION_BITS
        await store.call(shard_of(task, store.shard_count), [submit(task, node)])
        await until(lambda: bool(desk._clients))
        await store.call(0, [DetachSession(b"n" * 16, attached.session, True)])
        submission = await first_of(Submission, heard)
        assert [one.spec.id for one in submission.tasks] == [task]
        await desk.close()

    on(server, "gone", work)
