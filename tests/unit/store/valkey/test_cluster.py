"""A Valkey Cluster of three primaries and three replicas: a store spreads over all of them, and survives a kill."""

import asyncio
import time
from collections.abc import Callable

import pytest

from daws.model.task import TaskSpec
from daws.store.valkey.attempt import Options
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.server import Address
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import Finish, Log, ReadLog, Submit, shard_of
from tests.valkey import LocalServer, free_port

Start = Callable[..., LocalServer]
SLOTS = 16384
SHARDS = 8
ANN = 1


def a_cluster(start: Start, primaries: int = 3) -> list[LocalServer]:
    def a_member() -> LocalServer:
        return start(
            *("--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", str(free_port())),
            *("--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0"),
            port=free_port(),
        )

    servers = [a_member() for _ in range(2 * primaries)]
    names = [server.ask("CLUSTER", "MYID").decode() for server in servers]
    for number, server in enumerate(servers):
        if number < primaries:
            first, last = number * SLOTS // primaries, (number + 1) * SLOTS // primaries - 1
            server.ask("CLUSTER", "ADDSLOTSRANGE", str(first), str(last))
            server.ask("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
        bus = server.options[server.options.index("--cluster-port") + 1]
        servers[0].ask("CLUSTER", "MEET", "127.0.0.1", str(server.port), bus)
    _until(lambda: all(len(_nodes(server)) == 2 * primaries for server in servers))
    for number in range(primaries, 2 * primaries):
        _until(lambda number=number: names[number - primaries] in _nodes(servers[number]))  # type: ignore[misc]
        servers[number].ask("CLUSTER", "REPLICATE", names[number - primaries])
    _until(lambda: all(_is_well(server) for server in servers))
    _until(lambda: all("slave0" in server.info("replication") for server in servers[:primaries]))
    _until(lambda: all(server.info("replication")["role"] == "slave" for server in servers[primaries:]))
    return servers


def _nodes(server: LocalServer) -> list[str]:
    lines = server.ask("CLUSTER", "NODES").decode().splitlines()
    return [line.split()[0] for line in lines if "handshake" not in line]


def _is_well(server: LocalServer) -> bool:
    return b"cluster_state:ok" in server.ask("CLUSTER", "INFO")


def _is_in_step(primary: LocalServer, replica: LocalServer) -> bool:
    offsets = [server.info("replication")["master_repl_offset"] for server in (primary, replica)]
    return offsets[0] == offsets[1]


def _until(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < until, "the cluster did not come up"
        time.sleep(0.01)


@pytest.mark.slow
def test_a_store_spreads_over_a_cluster_and_survives_the_death_of_a_primary(start: Start):
    servers = a_cluster(start)

    async def run() -> None:
        urls = tuple(server.url for server in servers[:3])
        store = await ValkeyStore.open(Address(urls), Options(SHARDS, direct=True))
        tasks = range(0, 64 * SHARDS * 4, 64)  # one of each block: all shards have some

        async def carry_out(task: int) -> None:
            """As the core would: what was lost is said again."""
            while True:
                try:
                    await store.call(shard_of(task, SHARDS), [Submit(TaskSpec(task), (), ANN), Finish(task, 0, ANN)])
                    return
                except StoreChangedError:
                    continue

        half = len(tasks) // 2
        await asyncio.gather(*map(carry_out, tasks[:half]))
        assert all(int(server.ask("DBSIZE")) > 0 for server in servers[:3]), "each server has a part"
        await asyncio.to_thread(
            _until, lambda: all(_is_in_step(*pair) for pair in zip(servers, servers[3:], strict=False))
        )
        servers[0].kill()
        await asyncio.gather(*map(carry_out, tasks[half:]))
        found: list[int] = []
        for shard in range(SHARDS):
            (log,) = await store.call(shard, [ReadLog(0)])
            assert isinstance(log, Log)
            found += [row for row in log.rows if isinstance(row, int)]
        assert sorted(found) == list(tasks), "all were committed, and once"
        await store.close()

    async def bounded() -> None:
        async with asyncio.timeout(90):
            await run()

    asyncio.run(bounded())
