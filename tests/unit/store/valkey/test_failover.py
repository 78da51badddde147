"""Rule 11 on real servers: a replica that lags becomes the primary, and acknowledged writes are gone."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from daws.model.task import Input, TaskSpec
from daws.store.valkey import store as module
from daws.store.valkey.attempt import StoreOptions, Tidy
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.safety import ReplicaOffsets, read_replicas
from daws.store.valkey.scripts import ServerCommand
from daws.store.valkey.server import Address
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import CLIENT_HOLDER, Finish, Log, ReadLog, Register, Release, Row, Submit, Watch
from tests.valkey import LocalServer, free_port

Start = Callable[..., LocalServer]
ANN = 1
SMALL = [(Submit(TaskSpec(task), (), ANN), Finish(task, 0, ANN)) for task in range(4)]


def a_pair(start: Start) -> tuple[LocalServer, LocalServer]:
    primary = start("--repl-diskless-sync-delay", "0", port=free_port())
    replica = start("--replicaof", "127.0.0.1", str(primary.port))
    return primary, replica


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not happened():
            await asyncio.sleep(0.001)


def is_in_step(primary: LocalServer, replica: LocalServer) -> bool:
    ours, theirs = primary.info("replication"), replica.info("replication")
    return (
        theirs.get("master_link_status") == "up"
        and "slave0" in ours
        and ours["master_repl_offset"] == theirs["master_repl_offset"]
    )


def test_what_was_acknowledged_and_lost_is_noticed_before_anything_else_is_done(start: Start):
    primary, replica = a_pair(start)

    async def run() -> None:
        store = await ValkeyStore.open(Address((primary.url, replica.url)))
        await store.call(0, SMALL[0])
        assert await store.call(0, [ReadLog(0)]) == [Log(1, [0])]
        await until(lambda: is_in_step(primary, replica))
        replica.ask("REPLICAOF", "NO", "ONE")
        await store.call(0, SMALL[1])
        identity, position = store.identity(0), store.position(0)
        assert position == 2 and store.safe_position(0) < 2
        primary.kill()
        calls = [store.call(0, SMALL[2]), store.call(0, SMALL[3])]
        for lost in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(lost, StoreChangedError) and lost.retry
        assert store.identity(0) != identity
        with pytest.raises(StoreChangedError):
            await store.call(0, SMALL[2], identity=identity)
        assert await store.call(0, [ReadLog(0)]) == [Log(1, [0])], "nothing of these calls was carried out"
        for rows in SMALL[1:]:
            await store.call(0, rows, identity=store.identity(0))
        assert await store.call(0, [ReadLog(0)]) == [Log(4, [0, 1, 2, 3])]
        await store.close()

    asyncio.run(run())


def test_a_failover_is_told_of_although_only_a_call_for_nobody_has_met_it(start: Start):
    """What one shard leaves to do in another is nobody's call."""
    server = start()

    async def run() -> None:
        store = await ValkeyStore.open(Address((server.url,)), StoreOptions(2, direct=True))
        changed: list[int] = []
        store.on_changed = changed.append
        await store.call(1, [Submit(TaskSpec(64), (), ANN)])
        server.kill()
        server.start()
        store._enter(store._lanes[1], module._QueuedCall((Tidy(64),), None, None))
        await until(lambda: changed)
        assert set(changed) == {1}
        await store.close()

    asyncio.run(run())


def test_leases_do_not_wait_for_what_another_shard_has(start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "ELSEWHERE_S", 0.01)
    server = start()

    async def run() -> None:
        store = await ValkeyStore.open(Address((server.url,)), StoreOptions(2, direct=True))
        await store.call(
            0, [Submit(TaskSpec(0, outputs=(0,)), (), ANN), Finish(0, 0, ANN, (Input(0, 9, 0, (ANN,), b"x"),))]
        )
        await store.call(0, [Register(0, 64)])
        ask, is_away = store.server.ask, asyncio.Event()

        async def ask_who_is_there(command: ServerCommand) -> object:
            if ":1}" in command.key:
                await is_away.wait()
            return await ask(command)

        monkeypatch.setattr(store.server, "ask", ask_who_is_there)
        async with asyncio.timeout(30):
            await store.call(0, [Release(0, CLIENT_HOLDER), Watch(0)])
        (record,) = (await store.records([0])).values()
        assert record is not None, "it stays, since nobody knows what became of its child"
        await store.close()

    asyncio.run(run())


def test_a_failover_is_noticed_by_those_who_have_lost_nothing_and_say_nothing_as_well(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    """What others have lost may concern them: a task that was claimed from them is theirs again."""
    monkeypatch.setattr(module, "WATCH_S", 0.01)
    monkeypatch.setattr("daws.store.valkey.safety.SETTLE_S", 0.0)
    primary, replica = a_pair(start)

    async def run() -> None:
        store = await ValkeyStore.open(Address((primary.url, replica.url)))
        changed: list[int] = []
        store.on_changed = changed.append
        await store.call(0, SMALL[0])
        await until(lambda: store.safe_position(0) == 1)
        identity = store.identity(0)
        await until(lambda: is_in_step(primary, replica))
        primary.kill()
        replica.ask("REPLICAOF", "NO", "ONE")
        await until(lambda: changed)
        assert changed == [0] and store.identity(0) != identity
        await store.call(0, SMALL[0])  # said again, it changes nothing
        assert await store.call(0, [ReadLog(0)]) == [Log(1, [0])]
        await store.close()

    asyncio.run(run())


def test_updates_become_safe_when_the_replica_has_them(start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WATCH_S", 0.01)
    monkeypatch.setattr("daws.store.valkey.safety.SETTLE_S", 0.0)
    looks: list[ReplicaOffsets] = []

    def look(info: bytes) -> ReplicaOffsets:
        looks.append(read_replicas(info))
        return looks[-1]

    monkeypatch.setattr(module, "read_replicas", look)
    primary, replica = a_pair(start)

    async def run() -> None:
        store = await ValkeyStore.open(Address((primary.url, replica.url)), replicas_min=1)
        await until(lambda: is_in_step(primary, replica))
        await store.call(0, SMALL[0])
        safe: list[int] = []
        store.on_safe = safe.append
        await until(lambda: store.safe_position(0) == store.position(0) == 1)
        assert safe == [0]
        replica.ask("REPLICAOF", "NO", "ONE")
        await until(lambda: "slave0" not in primary.info("replication"))
        await store.call(0, SMALL[1])
        looks.clear()
        await until(lambda: len(looks) > 2)
        assert store.safe_position(0) == 1, "nobody else has it"
        await store.close()

    asyncio.run(run())


def test_a_server_that_is_killed_again_and_again_commits_every_task_once(start: Start):
    """Callers that say again what was not answered; what was, is on disk."""
    server = start("--appendonly", "yes", "--appendfsync", "always")
    kills, callers = 3, 3

    async def carry_out(store: ValkeyStore, rows: Sequence[Row]) -> None:
        while True:
            try:
                await store.call(0, rows)
                return
            except StoreChangedError:
                continue

    async def work(store: ValkeyStore, first: int, over: asyncio.Event) -> int:
        task = first
        while not over.is_set():
            await carry_out(store, [Submit(TaskSpec(task), (), ANN)])
            await carry_out(store, [Finish(task, 0, ANN)])
            task += callers
        return task

    async def run() -> None:
        stores = [await ValkeyStore.open(Address((server.url,))) for _ in range(callers)]
        over = asyncio.Event()
        workers = [asyncio.create_task(work(store, first, over)) for first, store in enumerate(stores)]
        for _ in range(kills):
            before = stores[0].position(0)
            await until(lambda before=before: stores[0].position(0) > before + 20)  # type: ignore[misc]
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        over.set()
        ends = await asyncio.gather(*workers)
        (log,) = await stores[0].call(0, [ReadLog(0)])
        assert isinstance(log, Log)
        every = [task for first, end in enumerate(ends) for task in range(first, end, callers)]
        assert sorted(row for row in log.rows if isinstance(row, int)) == sorted(every)
        for store in stores:
            await store.close()

    asyncio.run(run())
