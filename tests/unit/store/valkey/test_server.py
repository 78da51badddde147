"""Servers that refuse us, are gone, come back, are full, or are not what they should be: one line each, and no hang."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

import pytest

from daws.model.errors import ClosedError, DawsError, UnavailableError, UsageError
from daws.model.task import TaskSpec
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.blocking import BlockingValkeyStore
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.server import Address
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import Finish, Lease, Leased, Log, ReadLog, Submit
from tests.contract.store.desk import info
from tests.valkey import LocalServer

Start = Callable[..., LocalServer]
ANN = 1


def submit(task: int, payload: bytes = b"") -> Submit:
    return Submit(TaskSpec(task, payload=payload), (), ANN)


@contextlib.asynccontextmanager
async def opened(*urls: str, name: str = "main", patience_s: float | None = 20.0) -> AsyncIterator[ValkeyStore]:
    store = await ValkeyStore.open(Address(urls, name), patience_s=patience_s)
    try:
        yield store
    finally:
        await store.close()


def fails_to_open(address: Address) -> str:
    with pytest.raises(DawsError) as caught:
        BlockingValkeyStore(address, patience_s=0.1).close()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_wrong_password_is_said_in_a_line(start: Start):
    server = start(password="right")
    assert "password" in fails_to_open(Address((server.url,)))
    assert "password" in fails_to_open(Address((server.url,), password="wrong"))
    BlockingValkeyStore(Address((server.url,), password="right"), patience_s=5.0).close()


def test_a_wrong_address_is_said_in_a_line(tmp_path):
    assert f"unix://{tmp_path}/nobody does not answer" in fails_to_open(Address((f"unix://{tmp_path}/nobody",)))
    assert "127.0.0.1:1 does not answer" in fails_to_open(Address(("redis://127.0.0.1:1",)))


def test_an_error_names_the_server_but_not_the_password():
    message = fails_to_open(Address(("redis://user:secret@127.0.0.1:1/2",)))
    assert "127.0.0.1:1" in message and "secret" not in message


@pytest.mark.parametrize("url", ["http://localhost", "localhost:6379", ""])
def test_what_is_no_address_is_refused(url: str):
    with pytest.raises(UsageError, match="no address of a store"):
        Address((url,))


@pytest.mark.parametrize("name", ["", "a b", "a:b", "{a}", "a\n"])
def test_names_that_would_be_mistaken_are_refused(name: str):
    with pytest.raises(UsageError, match="cannot name a store"):
        Address(("redis://localhost",), name)


def test_a_server_that_throws_data_away_is_refused(start: Start):
    server = start("--maxmemory", "10mb", "--maxmemory-policy", "allkeys-lru")
    assert "maxmemory-policy noeviction" in fails_to_open(Address((server.url,)))


def test_a_store_of_another_format_is_refused(shared: LocalServer, name: str):
    shared.ask("HSET", f"{{daws:{name}}}:meta", "made", '{"format": 99}')
    assert "has format 99" in fails_to_open(Address((shared.url,), name))
    shared.ask("HSET", f"{{daws:{name}}}:meta", "made", "rubbish")
    assert "has format unknown" in fails_to_open(Address((shared.url,), name))


def test_a_store_keeps_what_it_was_made_with(shared: LocalServer, name: str):
    for shards in (3, 5):
        store = BlockingValkeyStore(Address((shared.url,), name), StoreOptions(shards))
        assert store.shard_count == 3
        store.close()


def test_stores_of_two_names_know_nothing_of_each_other(shared: LocalServer, name: str):
    one, other = (BlockingValkeyStore(Address((shared.url,), f"{name}-{number}")) for number in (1, 2))
    one.apply(0, [submit(1), Finish(1, 0, ANN)])
    assert one.apply(0, [ReadLog(0)]) == [Log(1, [1])]
    assert other.apply(0, [ReadLog(0)]) == [Log(0, [])]
    one.close()
    other.close()


def test_the_clock_of_leases_is_the_servers(shared: LocalServer, name: str):
    store = BlockingValkeyStore(Address((shared.url,), name), StoreOptions(lease_ns=10**12))
    (leased,) = store.apply(0, [Lease(ANN, 0, info(ANN))])
    assert isinstance(leased, Leased)
    seconds, _ = shared.ask("TIME")
    assert abs(store.store.server.now_ns() / 1e9 - int(seconds)) < 60
    store.close()


def test_calls_are_carried_out_in_order_and_together(shared: LocalServer, name: str):
    async def run() -> None:
        async with opened(shared.url, name=name) as store:
            calls = [store.call(0, [submit(task), Finish(task, 0, ANN)]) for task in range(50)]
            for answers in await asyncio.gather(*calls):
                assert answers == [None, None]
            assert store.position(0) <= 2, "those that came while one was under way are one update"
            assert await store.call(0, [ReadLog(0)]) == [Log(50, list(range(50)))]

    asyncio.run(run())


def test_a_server_that_is_killed_and_comes_back_has_lost_nothing(start: Start, caplog: pytest.LogCaptureFixture):
    server = start("--appendonly", "yes", "--appendfsync", "always")

    async def run() -> None:
        async with opened(server.url, patience_s=None) as store:
            await store.call(0, [submit(1)])
            identity = store.identity(0)
            server.kill()
            calls = [store.call(0, [submit(task)]) for task in (2, 3)]
            while "does not answer" not in caplog.text:
                await asyncio.sleep(0.001)
            await asyncio.to_thread(server.start)
            for answer in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(answer, StoreChangedError), "who knows what it has lost"
            assert store.identity(0) != identity
            await store.call(0, [submit(task) for task in (2, 3)])
            assert await store.call(0, [Finish(task, 0, ANN) for task in (1, 2, 3)]) == [None] * 3
            assert store.server.outage is not None

    with caplog.at_level(logging.WARNING, "daws.store"):
        asyncio.run(run())
    gone, back = caplog.messages
    assert gone.startswith(f"the store at {server.url} does not answer") and "\n" not in gone
    assert back == f"the store at {server.url} answers again"


def test_a_server_that_forgot_everything_is_told_from_one_that_lost_a_little(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("daws.store.valkey.store.WATCH_S", 0.001)
    monkeypatch.setattr("daws.store.valkey.safety.SETTLE_S", 0.0)
    server = start()

    async def run() -> None:
        async with opened(server.url) as store:
            await store.call(0, [submit(1)])
            while store.safe_position(0) < 1:
                await asyncio.sleep(0.001)
            server.kill()
            server.start()
            for task in (2, 3):
                with pytest.raises(UnavailableError, match="has lost data that was safe: set `appendonly") as caught:
                    await store.call(0, [submit(task)])
                assert not caught.value.retry

    asyncio.run(run())


def test_whoever_has_enough_patience_waits_for_a_server_that_is_full(start: Start, caplog: pytest.LogCaptureFixture):
    server = start("--maxmemory", "3mb")

    async def run() -> None:
        async with opened(server.url, patience_s=0.1) as store:
            with pytest.raises(UnavailableError, match="is full: raise its maxmemory"):
                for task in range(1000):
                    await store.call(0, [submit(task, bytes(100_000))])
            server_is_full = store.position(0)
            assert await store.call(0, [ReadLog(0)]) == [Log(0, [])], "one can still read"
            store.server.patience_s = None
            call = store.call(0, [submit(2000, bytes(100_000))])
            while "is full" not in caplog.text:
                await asyncio.sleep(0.001)
            server.ask("CONFIG", "SET", "maxmemory", "100mb")
            assert await call == [None]
            assert store.position(0) == server_is_full + 1

    with caplog.at_level(logging.WARNING, "daws.store"):
        asyncio.run(run())


def test_a_server_that_was_right_before_and_refuses_us_is_tried_again(start: Start, caplog: pytest.LogCaptureFixture):
    """Another server may be at its address for a while, or somebody is changing passwords."""
    server = start()

    def connections() -> int:
        return int(server.info("stats")["total_connections_received"])

    async def run() -> None:
        async with opened(server.url, patience_s=None) as store:
            await store.call(0, [submit(1)])
            server.ask("CONFIG", "SET", "requirepass", "changed")
            server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            before = connections()
            call = store.call(0, [submit(2)])
            while connections() < before + 2:
                await asyncio.sleep(0.001)
                assert not call.done()
            server.ask("CONFIG", "SET", "requirepass", "")
            assert await call == [None]

    with caplog.at_level(logging.WARNING, "daws.store"):
        asyncio.run(run())
    assert caplog.messages[-1].endswith("answers again")


def test_whoever_waits_when_the_store_is_closed_hears_of_it(start: Start):
    server = start()

    async def run() -> None:
        async with opened(server.url, patience_s=None) as store:
            await store.call(0, [submit(1)])
            server.kill()
            call = store.call(0, [submit(2)])
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(ClosedError):
            await store.call(0, [submit(3)])

    asyncio.run(run())


def test_with_several_addresses_the_one_that_takes_writes_is_used(start: Start):
    primary = start()
    replica = start("--replicaof", "127.0.0.1", "1")

    async def run() -> None:
        async with opened(replica.url, primary.url) as store:
            assert await store.call(0, [submit(1)]) == [None]
            assert store.server.where == primary.url

    asyncio.run(run())
