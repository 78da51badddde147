"""`python -m bench.links`: what encryption costs. A link over mutual TLS on the loopback beside one over a unix socket,
in turns, between two processes: round trips, messages per second, and bytes of a file per second.

Read the ratios; the figures themselves are this machine's. Needs the extra `cluster`.
"""

import asyncio
import multiprocessing
import os
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from socket import socket
from statistics import median
from typing import Any

import uvloop
from msgspec import msgpack

from daws.net.config import ClusterConfig
from daws.net.door import Door, dial
from daws.net.folder import init_cluster
from daws.net.handshake import OBJECTS, Hello
from daws.net.keys import Keys
from daws.net.link import Link
from daws.net.listening import ListeningSocket
from daws.net.stream import StreamDoor, connect, receive_into, send_file

ROUNDS = 5
TRIPS = 1_000
MESSAGES = 50_000
TOGETHER = 50
"""Messages that are said in one turn, which is what links are for."""
MESSAGE = b"x" * 100
FILE_BYTES = 100_000_000
WAYS = ("unix", "tls")

DECODER: "msgpack.Decoder[list[bytes]]" = msgpack.Decoder(list[bytes])
NODE = Hello("bench", "node", 1)
CLIENT = Hello("bench", "client")


def keys_for(way: str, folder: Path, role: str) -> Keys | None:
    return Keys(folder / "cluster", role) if way == "tls" else None


def answer(folder: Path, told: Connection) -> None:
    """The other process: everything that comes is sent back, and whoever asks for the file gets it."""

    def accepted(link: Link[Any]) -> None:
        def received(messages: list[bytes]) -> None:
            for message in messages:
                link.send(message)

        link.begin(DECODER, received, lambda: None)

    def give(sock: socket, peer: Hello) -> None:
        with open(folder / "file", "rb") as file:
            while sock.recv(1):
                send_file(sock, file.fileno(), FILE_BYTES)

    async def main() -> None:
        addresses = {}
        doors = []
        for way in WAYS:
            keys = keys_for(way, folder, "node")
            door = Door(ListeningSocket(f"{folder}/{way}" if keys is None else "127.0.0.1:0", keys), NODE, accepted)
            hello = Hello("bench", "node", 1, OBJECTS)
            files = StreamDoor(
                ListeningSocket(f"{folder}/{way}-files" if keys is None else "127.0.0.1:0", keys), hello, give
            )
            doors += [door, files]
            addresses[way] = (door.address, files.address)
        told.send(addresses)
        await asyncio.get_running_loop().run_in_executor(None, told.poll, None)

    uvloop.run(main())


class Caller:
    """Waits for so many messages."""

    def __init__(self) -> None:
        self._left = 0
        self._done = asyncio.Event()

    def greet(self, link: Link[bytes]) -> None:
        link.begin(DECODER, self.received, lambda: None)

    def received(self, messages: list[bytes]) -> None:
        self._left -= len(messages)
        if self._left <= 0:
            self._done.set()

    async def exchange(self, link: Link[bytes], count: int) -> None:
        self._left = count
        self._done.clear()
        for _ in range(count):
            link.send(MESSAGE)
        await self._done.wait()


async def measure_link(address: str, keys: Keys | None) -> tuple[float, float]:
    """Seconds of a round trip, and messages per second there and back."""
    caller = Caller()
    link = await dial(address, keys, CLIENT, caller.greet)
    await caller.exchange(link, 100)
    began = time.perf_counter()
    for _ in range(TRIPS):
        await caller.exchange(link, 1)
    trip_s = (time.perf_counter() - began) / TRIPS
    began = time.perf_counter()
    for _ in range(MESSAGES // TOGETHER):
        await caller.exchange(link, TOGETHER)
    rate = MESSAGES / (time.perf_counter() - began)
    link.close()
    return trip_s, rate


def measure_file(address: str, keys: Keys | None, folder: Path) -> float:
    """Bytes of a file per second, from file to file."""
    with connect(address, keys, Hello("bench", "client", 0, OBJECTS)) as sock:
        began = time.perf_counter()
        sock.sendall(b"!")
        with open(folder / "copy", "wb") as file:
            receive_into(sock, file.fileno(), FILE_BYTES)
        return FILE_BYTES / (time.perf_counter() - began)


def show(name: str, unit: str, figures: dict[str, list[float]], scale: float, is_rate: bool) -> None:
    unix, tls = (median(figures[way]) for way in WAYS)
    dearer = unix / tls if is_rate else tls / unix
    print(f"{name:24} unix {unix * scale:9,.0f} {unit:5} TLS {tls * scale:9,.0f} {unit:5} {dearer:5.2f} times dearer")


def main() -> None:
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base) as name:
        folder = Path(name)
        init_cluster(folder / "cluster", ClusterConfig(name="bench"))
        (folder / "file").write_bytes(os.urandom(FILE_BYTES))
        ours, theirs = multiprocessing.Pipe()
        other = multiprocessing.get_context("spawn").Process(target=answer, args=(folder, theirs))
        other.start()
        addresses = ours.recv()
        trips: dict[str, list[float]] = {way: [] for way in WAYS}
        rates: dict[str, list[float]] = {way: [] for way in WAYS}
        files: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(ROUNDS):
            for way in WAYS:
                keys = keys_for(way, folder, "client")
                trip_s, rate = uvloop.run(measure_link(addresses[way][0], keys))
                trips[way].append(trip_s)
                rates[way].append(rate)
                files[way].append(measure_file(addresses[way][1], keys, folder))
        ours.send("enough")
        other.join()
    show("round trip", "µs", trips, 1e6, is_rate=False)
    show(f"messages, {TOGETHER} at a time", "/s", rates, 1, is_rate=True)
    show("a file", "MB/s", files, 1e-6, is_rate=True)


if __name__ == "__main__":
    main()
