"""`python -m bench.workers`: what a pool of workers costs, beside bare processes on socket pairs in the same run.

The floor speaks the same messages in the same batches, and does nothing else: no fork server, no bookkeeping of runs,
no capture of output, no watch. Machines are noisy: read the ratios.
"""

import asyncio
import os
import pickle
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import uvloop

from daws.wire.frames import FrameReader
from daws.wire.worker import ORDERS, REPORTS, Ended, Execute, ReportType, apart, frame_of
from daws.workers.pool import WorkerPool

ROUNDS = 5
RUNS = 100_000
AHEAD = 200
TRIPS = 1000
SLOTS = 2
NOTHING = pickle.dumps(((), {}), 5)
Give = Callable[[int, int], None]


def no_op() -> object:
    return None


class Side:
    """Something that executes no-ops: `give(slot, run)` and `flush()`; each report calls `on_reports`."""

    give: Give
    flush: Callable[[], None]

    def __init__(self) -> None:
        self.on_reports: Callable[[int, int], None] = lambda slot, count: None

    async def throughput(self) -> float:
        """No-ops per second, with so many sent ahead to each worker."""
        done = asyncio.get_running_loop().create_future()
        given = ended = 0

        def on_reports(slot: int, count: int) -> None:
            nonlocal given, ended
            ended += count
            for run in range(given, min(given + count, RUNS)):
                self.give(slot, run)
            given = min(given + count, RUNS)
            self.flush()
            if ended == RUNS:
                done.set_result(None)

        self.on_reports = on_reports
        began = time.perf_counter()
        for slot in range(SLOTS):
            for _ in range(AHEAD):
                self.give(slot, given)
                given += 1
        self.flush()
        await done
        return RUNS / (time.perf_counter() - began)

    async def round_trip_s(self) -> float:
        """The median time from giving a no-op to an idle worker until its report is here."""
        done = asyncio.Event()
        self.on_reports = lambda slot, count: done.set()
        took = []
        for run in range(TRIPS):
            done.clear()
            began = time.perf_counter()
            self.give(0, run)
            self.flush()
            await done.wait()
            took.append(time.perf_counter() - began)
        return statistics.median(took)


class Floor(Side):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[socket.socket] = []
        self.children: list[int] = []
        self.orders: list[list[Execute]] = [[] for _ in range(SLOTS)]
        self.buffer = bytearray()
        for _ in range(SLOTS):
            ours, theirs = socket.socketpair()
            child = os.fork()
            if not child:
                for link in (ours, *self.links):
                    link.close()
                serve(theirs)
            theirs.close()
            self.links.append(ours)
            self.children.append(child)

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        readers = [FrameReader() for _ in range(SLOTS)]
        for slot, link in enumerate(self.links):
            loop.add_reader(link.fileno(), self.on_readable, slot, link, readers[slot])

    def on_readable(self, slot: int, link: socket.socket, reader: FrameReader) -> None:
        for frame in reader.arrived(link.recv_into(reader.room)):
            self.on_reports(slot, len(REPORTS.decode(frame)))

    def give(self, slot: int, run: int) -> None:
        self.orders[slot].append(Execute(run, 0, NOTHING))

    def flush(self) -> None:
        for orders, link in zip(self.orders, self.links, strict=True):
            if orders:
                frame_of(orders, self.buffer)
                link.sendall(self.buffer)
                orders.clear()

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        for link in self.links:
            loop.remove_reader(link.fileno())
            link.close()
        for child in self.children:
            os.waitpid(child, 0)


def serve(link: socket.socket) -> None:
    """A worker without anything."""
    reader, buffer = FrameReader(), bytearray()
    while count := link.recv_into(reader.room):
        for frame in reader.arrived(count):
            reports: list[ReportType] = []
            for order in ORDERS.decode(frame):
                assert isinstance(order, Execute)
                began = time.monotonic_ns()
                args, kwargs = pickle.loads(order.arguments)
                result = pickle.dumps(no_op(*args, **kwargs), 5)
                reports.append(Ended(order.run, time.monotonic_ns() - began, (result,)))
            frame_of(reports, buffer)
            link.sendall(buffer)
    os._exit(0)


class Pool(Side):
    def __init__(self, folder: str, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.slots: dict[int, int] = {}  # by run
        self.pool = WorkerPool(SLOTS, folder, loop, self.on_batch)
        self.pool.learn(0, b"cbench.workers\nno_op\n.")

    def on_batch(self, batch: list[ReportType]) -> None:
        batch = apart(batch)
        first = batch[0]
        if not isinstance(first, Ended):
            sys.exit(f"bench: {first}")
        self.on_reports(self.slots[first.run], len(batch))

    def give(self, slot: int, run: int) -> None:
        self.slots[run] = slot
        self.pool.execute(slot, Execute(run, 0, NOTHING))

    def flush(self) -> None:
        self.pool.flush()


FIRST = """
import time
began = time.perf_counter()
import tempfile
folder = tempfile.mkdtemp()
from daws.workers.server import ForkServer
server = ForkServer(folder)
import asyncio, pickle, uvloop
from daws.wire.worker import Execute
from daws.workers.pool import WorkerPool
imported = time.perf_counter()
async def main():
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    pool = WorkerPool(2, folder, loop, lambda batch: done.set_result(time.perf_counter()), server=server)
    pool.learn(0, b"cbuiltins\\nlen\\n.")
    pool.begin()
    pool.execute(0, Execute(0, 0, pickle.dumps((([],), {}))))
    pool.flush()
    first = await done
    await pool.close()
    print((imported - began) * 1e3, (first - began) * 1e3)
uvloop.run(main())
"""


def first_result() -> tuple[float, float]:
    """In a fresh process: ms until everything is imported, and until the first result is there."""
    shown = subprocess.run([sys.executable, "-c", FIRST], check=True, capture_output=True, text=True).stdout
    imported, first = map(float, shown.split())
    return imported, first


async def ready_ms() -> float:
    """Until two workers take orders, all imports of the owner aside."""
    began = time.perf_counter()
    pool = WorkerPool(SLOTS, tempfile.mkdtemp(), asyncio.get_running_loop(), lambda batch: None)
    await pool.start()
    took = time.perf_counter() - began
    await pool.close()
    return took * 1e3


def show(what: str, unit: str, figures: list[float], floor: list[float] | None = None) -> None:
    middle = statistics.median(figures)
    beside = ""
    if floor:
        ratio = statistics.median(ours / bare for ours, bare in zip(figures, floor, strict=True))
        beside = f"   floor {statistics.median(floor):10,.0f}   ratio {ratio:.2f}"
    print(f"{what:34} {middle:10,.0f} {unit} ({min(figures):,.0f} to {max(figures):,.0f}){beside}", flush=True)


async def measure(floor: Floor) -> None:
    loop = asyncio.get_running_loop()
    floor.begin(loop)
    pool = Pool(tempfile.mkdtemp(), loop)
    await pool.pool.start()
    rates: list[tuple[float, float]] = []
    trips: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        rates.append((await pool.throughput(), await floor.throughput()))
        trips.append((await pool.round_trip_s() * 1e6, await floor.round_trip_s() * 1e6))
    floor.close(loop)
    await pool.pool.close()
    show("no-ops per second", "/s", *map(list, zip(*rates, strict=True)))
    show("round trip", "µs", *map(list, zip(*trips, strict=True)))
    show("two workers ready", "ms", [await ready_ms() for _ in range(ROUNDS)])


def main() -> None:
    uvloop.run(measure(Floor()))
    firsts = [first_result() for _ in range(ROUNDS)]
    show("imports of the owner", "ms", [imported for imported, _ in firsts])
    show("first result, from nothing", "ms", [first for _, first in firsts])


if __name__ == "__main__":
    main()
