"""`python -m bench.stores`: what a task costs in the store, on a Valkey server beside the store in memory.

    python -m bench.stores                            a server of its own, on a unix socket
    python -m bench.stores --url redis://host:6379    or yours

Each task is submitted and finished, in calls of so many rows; callers are processes of their own, all at one shard. In
chains each task is told by the commit of the one before it.
"""

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

from daws.model.task import Input, TaskSpec
from daws.store.memory import MemoryStore
from daws.store.valkey.attempt import StoreOptions
from daws.store.valkey.link import connect
from daws.store.valkey.server import Address
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import Finish, Row, Submit
from tests.valkey import LocalServer

AIM_TASKS_PER_S = 10_000
CHAIN = 10
NODE = 1


def calls(first: int, tasks: int, size: int, chains: bool) -> Iterator[list[Row]]:
    for low in range(first, first + tasks, size):
        numbers = range(low, low + size)
        parents = {task: (task - 1,) if chains and task % CHAIN else () for task in numbers}
        yield [
            Submit(TaskSpec(task, 1, 0, parents[task], (task,), payload=b"some arguments"), parents[task], NODE)
            for task in numbers
        ]
        yield [Finish(task, 0, NODE, (Input(task, 20, task, (NODE,), b"what came out of it!"),)) for task in numbers]


def in_memory(tasks: int, size: int, chains: bool) -> tuple[float, float]:
    store = MemoryStore(direct=True)
    todo = list(calls(0, tasks, size, chains))
    began_s, busy_s = time.perf_counter(), time.process_time()
    for rows in todo:
        store.apply(0, rows, 0)
    return time.perf_counter() - began_s, time.process_time() - busy_s


async def _call(url: str, name: str, who: int, tasks: int, size: int, chains: bool) -> tuple[float, float]:
    store = await ValkeyStore.open(Address((url,), name), StoreOptions(direct=True))
    todo = list(calls(who * tasks, tasks, size, chains))
    began_s, busy_s = time.perf_counter(), time.process_time()
    for rows in todo:
        await store.call(0, rows)
    took = time.perf_counter() - began_s, time.process_time() - busy_s
    await store.close()
    return took


def _caller(job: tuple[str, str, int, int, int, bool]) -> tuple[float, float]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_call(*job))


def on_valkey(url: str, callers: int, tasks: int, size: int, chains: bool) -> tuple[float, float]:
    """Seconds until all callers are through, and seconds of their processors."""
    name = f"bench-{time.time_ns()}"
    with multiprocessing.get_context("spawn").Pool(callers) as pool:
        jobs = [(url, name, who, tasks // callers, size, chains) for who in range(callers)]
        took = pool.map(_caller, jobs, 1)
    return max(wall_s for wall_s, _ in took), sum(busy_s for _, busy_s in took)


async def _server_busy_s(url: str) -> float:
    ((place, access),) = Address((url,)).targets()
    link = await connect(place, access)
    said = bytes(await link.ask(("INFO", "cpu"))).decode()
    link.close()
    used = dict(line.split(":") for line in said.split() if line.startswith("used_cpu_"))
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def server_busy_s(url: str) -> float:
    return asyncio.run(_server_busy_s(url))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.stores", description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="of a server; without it one is started")
    parser.add_argument("--tasks", type=int, default=40_000)
    parser.add_argument("--rows", type=int, default=100, help="rows of a call")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = None if options.url else LocalServer(Path(folder))
        try:
            measure(options.url or server.url, options.tasks, options.rows)  # type: ignore[union-attr]
        finally:
            if server is not None:
                server.stop()


def measure(url: str, tasks: int, size: int) -> None:
    for chains in (False, True):
        what = f"chains of {CHAIN}" if chains else "single tasks"
        wall_s, memory_s = in_memory(tasks, size, chains)
        print(f"{what}, in memory: {_rate(tasks, wall_s)}, {_each(tasks, memory_s)}")
        for callers in (1, 4):
            before_s = server_busy_s(url)
            wall_s, busy_s = on_valkey(url, callers, tasks, size, chains)
            server_s = server_busy_s(url) - before_s
            aim = "" if callers == 1 or tasks / wall_s >= AIM_TASKS_PER_S else f"  <- below {AIM_TASKS_PER_S:,}"
            print(
                f"{what}, Valkey, {callers} callers: {_rate(tasks, wall_s)}, {_each(tasks, busy_s)} of a caller "
                f"({busy_s / memory_s:.1f} × memory), {_each(tasks, server_s)} of the server{aim}",
                flush=True,
            )


def _rate(tasks: int, wall_s: float) -> str:
    return f"{tasks / wall_s:,.0f} tasks/s"


def _each(tasks: int, busy_s: float) -> str:
    return f"{busy_s / tasks * 1e6:.1f} µs of a processor"


if __name__ == "__main__":
    main()
