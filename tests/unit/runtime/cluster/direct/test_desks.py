"""What desks keep on the server beside tasks: sessions, ends, numbers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from daws.core.effects import CallStore
from daws.core.events import CallFine, CallsSafe
from daws.data.tags import rooted
from daws.model.states import FAILED
from daws.model.task import FIRST_SPAWNED_ID, TaskSpec
from daws.net.config import ClusterConfig
from daws.runtime.cluster.direct.book import ENDING, SessionBook
from daws.runtime.cluster.direct.ends import Ends
from daws.runtime.cluster.direct.members import NodeDesk
from daws.runtime.cluster.direct.words import Batches
from daws.runtime.cluster.words import SESSION_BITS, AskEnds, Forgotten, KeepFailure, OpenSessions
from daws.runtime.cluster.words import Ends as Told
from daws.store.valkey import safety
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.looking import Looking
from daws.store.valkey.notes import FAILURES, FUNCTIONS, ClusterNotes
from daws.store.valkey.server import Address
from daws.store.valkey.store import ValkeyStore
from daws.wire.ends import Outcome
from daws.wire.store import CLIENT_HOLDER, Finish, Release, Submit
from daws.wire.worker import Learn
from tests.unit.runtime.cluster.machines import DEADLINE_S
from tests.valkey import LocalServer

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


def desk_at(store: ValkeyStore) -> tuple[NodeDesk, list[object]]:
    """Of a node, and what it hears."""
    heard: list[object] = []
    return NodeDesk(NO_REACH, store, heard.extend, list, lambda node, message: None), heard


def test_a_name_belongs_to_one_session_and_changes_are_made_by_one_of_many(server: LocalServer):
    async def work(store: ValkeyStore) -> None:
        book = SessionBook(ClusterNotes(store))
        first = await book.open("work", True, 1.0, b"one")
        assert first is not None and await book.named("work") == first
        assert await book.open("work", False, 2.0, b"two") is None
        taken = await book.change(first, nonce=b"two")
        assert taken is not None and taken.nonce == b"two"
        assert await book.change(first, state=ENDING) is None, "it has changed meanwhile"
        await book.end(taken)
        assert await book.named("work") is None
        again = await book.open("work", False, 3.0, b"three")
        assert again is not None and again.number > first.number

    on(server, "book", work)


def test_a_session_that_the_server_has_forgotten_is_written_again(server: LocalServer):
    async def work(store: ValkeyStore) -> None:
        notes = ClusterNotes(store)
        book = SessionBook(notes)
        entry = await book.open("work", True, 1.0, b"one")
        assert entry is not None
        await notes.drop("sessions", [entry.number])
        assert await book.named("work") is None
        assert await book.restore(entry) and await book.named("work") == entry

    on(server, "forgotten", work)


def test_numbers_are_never_given_twice_also_not_by_a_server_that_has_forgotten_the_last_ones(tmp_path: Path):
    server = LocalServer(tmp_path / "server", "--appendonly", "yes", "--appendfsync", "always")
    given: list[int] = []

    async def work(store: ValkeyStore) -> None:
        for _ in range(3):
            given.append(await ClusterNotes(store).new_number("node"))

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
        notes, looking = ClusterNotes(store), Looking(store)
        ends = Ends(looking, notes)
        tasks = [SESSION + number for number in range(4)]
        await store.call(0, [Submit(TaskSpec(task, 1, outputs=(task,)), (), ANN) for task in tasks])
        made = ((tasks[0], 3, tasks[0], (ANN,), b"yes"),)
        await store.call(0, [Finish(tasks[0], 0, ANN, made)])
        assert await ends.news(lambda: tasks) == [Outcome(tasks[0], made)]
        assert await ends.news(lambda: tasks[1:]) == []
        await notes.put(FAILURES, (tasks[1], b"why"))
        await store.call(0, [Finish(tasks[1], 0, ANN, (), "no")])
        await store.call(0, [Finish(tasks[2], 0, ANN, ((tasks[2], 0, tasks[2], (ANN,), b""),))])
        assert await ends.news(lambda: tasks[1:2]) == [Outcome(tasks[1], (), FAILED, "no", b"why")]
        ends._readers[0].last = b"not what is there"
        assert [one.task for one in await ends.news(lambda: tasks[1:])] == tasks[1:3]
        found = [task async for task, _ in looking.between(SESSION, SESSION + 3)]
        assert sorted(found) == tasks[:3]
        assert [one.task for one in await ends.of([tasks[3], 77], unknown_are_lost=True)] == [77]

    on(server, "ends", work)


def test_an_end_is_read_of_that_is_wanted_only_while_the_log_is_read(server: LocalServer):
    async def work(store: ValkeyStore) -> None:
        looking = Looking(store)
        ends = Ends(looking, ClusterNotes(store))
        first, late, *_ = tasks = [SESSION + number for number in range(3)]
        await store.call(0, [Submit(TaskSpec(task, 1, outputs=(task,)), (), ANN) for task in tasks])
        wanted = {first}
        length_of, log_of = looking.log_length, looking.log

        async def length_late(shard: int) -> int:
            wanted.add(late)
            await store.call(0, [Finish(late, 0, ANN, ())])
            return await length_of(shard)

        async def log_late(shard: int, start: int) -> list[bytes]:
            wanted.add(tasks[2])
            await store.call(0, [Finish(tasks[2], 0, ANN, ())])
            return await log_of(shard, start)

        looking.log_length, looking.log = length_late, log_late  # type: ignore[method-assign]
        assert [one.task for one in await ends.news(lambda: set(wanted))] == [late]
        assert [one.task for one in await ends.news(lambda: set(wanted))] == [tasks[2]]

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


def test_no_end_is_written_before_the_failure_that_explains_it_is(server: LocalServer):
    async def work(store: ValkeyStore) -> None:
        desk, heard = desk_at(store)
        task, other = SESSION, SESSION + 1
        await store.call(0, [Submit(TaskSpec(one, 1, outputs=(one,)), (), ANN) for one in (task, other)])
        put, may_note = desk.notes.put, asyncio.Event()

        async def put_late(*what: Any) -> None:
            await may_note.wait()
            await put(*what)

        desk.notes.put = put_late  # type: ignore[method-assign,assignment]
        desk.send(KeepFailure(task, b"why"))
        desk.send(CallStore(7, 0, [Finish(task, 0, ANN, (), "no")]))
        desk.send(CallStore(8, 0, [Finish(other, 0, ANN, ())]))
        await desk.notes.look()  # whatever was sent before is done by now
        assert not await desk.ends.of([task, other], unknown_are_lost=True)
        may_note.set()
        while CallFine(8) not in heard:
            await asyncio.sleep(0)
        ended = await desk.ends.of([task, other], unknown_are_lost=True)
        assert [(one.task, one.failure) for one in ended] == [(task, b"why"), (other, b"")]
        desk.send(CallStore(9, 0, [Finish(other, 0, ANN, ())]))
        assert not desk._held, "nothing waits where nothing is to be noted"
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


def test_what_tasks_raised_that_runs_have_created_goes_when_nobody_holds_them(server: LocalServer):
    async def run(store: ValkeyStore) -> None:
        desk, _ = desk_at(store)
        held, failed, unknown = [FIRST_SPAWNED_ID + number for number in range(3)]
        await store.call(0, [Submit(TaskSpec(one, 1, outputs=(one,)), (), ANN) for one in (held, failed)])
        for task in (held, failed, unknown, SESSION):
            desk.send(KeepFailure(task, b"why"))
        while len(desk._unclaimed) < 3:
            await asyncio.sleep(0)
        await store.call(0, [Finish(one, 0, ANN, (), "no") for one in (held, failed)])
        await store.call(0, [Release(failed, CLIENT_HOLDER)])
        await desk._sweep_failures()
        assert await desk.notes.get(FAILURES, [held, failed, unknown, SESSION]) == [b"why", b"", b"", b"why"]
        assert desk._unclaimed == [held]
        await desk.close()

    on(server, "raised", run)


def test_functions_that_runs_have_brought_in_go_with_their_session(server: LocalServer):
    async def run(store: ValkeyStore) -> None:
        desk, heard = desk_at(store)
        opened = [await desk.book.open("", False, 1.0, b"me") for _ in range(3)]
        ended, hidden, other = [one for one in opened if one is not None]
        for number, entry in enumerate((ended, hidden, other)):
            desk.send(Learn(100 + number, rooted(entry.number << SESSION_BITS, b"code")))
        await desk.book.end(ended)
        heard.clear()
        await desk._forget_functions([other.number])  # a failover has hidden one
        assert sorted(desk._taught) == [101, 102]
        assert [*map(bool, await desk.notes.get(FUNCTIONS, [100, 101, 102]))] == [False, True, True]
        assert OpenSessions([other.number, hidden.number]) in heard
        await desk.close()

    on(server, "functions", run)


def test_batches_of_different_senders_differ_and_grow():
    ann, bob, session = Batches(1, True), Batches(2, True), Batches(1, False)
    given = [one() for one in (ann, bob, session) for _ in range(1000)]
    assert len(set(given)) == 3000 and given[:1000] == sorted(given[:1000])
    assert max(given) < 1 << 63
