"""Futures can be awaited, beside everything else that an event loop does."""

import asyncio

import daws


async def main() -> None:
    with daws.Cluster(workers=2) as cluster:
        print(await cluster.submit(pow, 2, 10))  # prints: 1024

        async def both() -> object:
            return await cluster.submit(abs, -1) + await cluster.submit(abs, -2)

        print(await asyncio.gather(both(), both()))  # prints: [3, 3]


asyncio.run(main())
