"""A Valkey Cluster of three primaries and three replicas: a store spreads over all of them, and survives a kill."""

import asyncio
from collections.abc import Callable

import pytest

from daws.model.task import TaskSpec
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.caller import StoreChangedError
from daws.store.valkey.server import Address
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import Finish, Log, ReadLog, Submit, shard_of
from tests.valkey import LocalServer, a_cluster, is_in_step, wait_until

Start = Callable[..., LocalServer]
SHARDS = 8
ANN = 1


@pytest.mark.slow
def test_a_store_spreads_over_a_cluster_and_survives_the_death_of_a_primary(start: Start):
    servers = a_cluster(start)

    async def run() -> None:
        urls = tuple(server.url for server in servers[:3])
        store = await ValkeyStore.open(Address(urls), StoreOptions(SHARDS, direct=True))
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
            wait_until, lambda: all(is_in_step(*pair) for pair in zip(servers, servers[3:], strict=False))
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
