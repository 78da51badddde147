"""The floor: what futures in worker processes cost when nothing is kept, checked or decided.

A uvloop thread in the client, workers on socket pairs, batches of msgspec, futures submitted one by one. No graph, no
data, no failures, no fairness: each batch goes to the worker with the fewest calls. Nobody who keeps more is faster.
"""

import asyncio
import os
import pickle
import socket
import struct
import threading
import time
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec
import uvloop

from bench.peers.systems.base import EVERYTHING, GRAPHS, System
from bench.peers.tasks import run_true

Call = tuple[int, str, bytes]  # number, function by name, pickled arguments
Calls = list[Call]
Answers = list[tuple[int, bytes]]
PENDING = object()
BATCH = 256
REPORT_S = 0.001  # answers wait for others of their batch, but no longer than this
NOTHING = pickle.dumps(None)
encode = msgspec.msgpack.Encoder().encode
decode_calls = msgspec.msgpack.Decoder(Calls).decode
decode_answers = msgspec.msgpack.Decoder(Answers).decode


def frame(rows: Any) -> bytes:
    data = encode(rows)
    return struct.pack("<I", len(data)) + data


class Frames:
    """Cuts a stream into frames."""

    def __init__(self) -> None:
        self.rest = b""

    def cut(self, data: bytes) -> list[bytes]:
        if self.rest:
            data = self.rest + data
        found = []
        low = 0
        while len(data) - low >= 4:
            high = low + 4 + int.from_bytes(data[low : low + 4], "little")
            if high > len(data):
                break
            found.append(data[low + 4 : high])
            low = high
        self.rest = data[low:]
        return found


def serve(link: socket.socket) -> None:
    """A worker: until the client closes its end."""
    functions: dict[str, Callable[..., Any]] = {}
    frames = Frames()
    while data := link.recv(1 << 18):
        for one in frames.cut(data):
            answers: Answers = []
            told = time.perf_counter()
            for number, name, arguments in decode_calls(one):
                function = functions.get(name)
                if function is None:
                    module, _, attribute = name.partition(":")
                    function = functions[name] = getattr(import_module(module), attribute)
                value = function(*pickle.loads(arguments)) if arguments else function()
                answers.append((number, NOTHING if value is None else pickle.dumps(value)))
                now = time.perf_counter()
                if now - told > REPORT_S:
                    link.sendall(frame(answers))
                    answers, told = [], now
            if answers:
                link.sendall(frame(answers))


class FloorFuture:
    __slots__ = ("lock", "value")

    def __init__(self) -> None:
        self.value: Any = PENDING
        self.lock: Any = None

    def result(self) -> Any:
        if self.value is PENDING:
            lock = allocate_lock()
            lock.acquire()
            self.lock = lock
            if self.value is PENDING:  # may have come meanwhile
                lock.acquire()
        if isinstance(self.value, bytes):
            self.value = pickle.loads(self.value)
        return self.value


class Link(asyncio.Protocol):
    """One worker, seen from the client."""

    def __init__(self, floor: "Floor") -> None:
        self.floor = floor
        self.frames = Frames()
        self.calls = 0
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        take = self.floor.futures.pop
        for one in self.frames.cut(data):
            answers = decode_answers(one)
            self.calls -= len(answers)
            for number, value in answers:
                future = take(number)
                future.value = value
                if future.lock is not None:
                    future.lock.release()

    def send(self, calls: Calls) -> None:
        self.calls += len(calls)
        self.transport.write(frame(calls))


class Floor(System):
    name = "floor"
    library = "uvloop"
    settings = "a bare loop: uvloop thread, workers on socket pairs, msgspec batches; commands: posix_spawn in a loop"
    does = EVERYTHING - GRAPHS - {"objects"} | {"million"}
    is_peer = False
    keeps_graph = False
    pending_count = 100_000

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.names: dict[Callable[..., Any], str] = {}
        self.futures: dict[int, FloorFuture] = {}
        self.new: deque[Call] = deque()
        self.count = 0
        self.awake = False
        self.links: list[Link] = []
        pairs = [socket.socketpair() for _ in range(workers)]
        self.pids = [self._fork(pairs, mine) for mine in range(workers)]
        for _, theirs in pairs:
            theirs.close()
        self.loop = uvloop.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self._run, args=([ours for ours, _ in pairs], ready))
        self.thread.start()
        ready.wait()

    def _fork(self, pairs: list[tuple[socket.socket, socket.socket]], mine: int) -> int:
        if pid := os.fork():
            return pid
        try:
            for number, (ours, theirs) in enumerate(pairs):
                ours.close()
                if number != mine:
                    theirs.close()
            serve(pairs[mine][1])
        finally:
            os._exit(0)

    def _run(self, ours: list[socket.socket], ready: threading.Event) -> None:
        async def connect() -> None:
            for one in ours:
                _, link = await self.loop.create_unix_connection(lambda: Link(self), sock=one)
                self.links.append(link)
            ready.set()

        self.loop.run_until_complete(connect())
        self.loop.run_forever()
        for link in self.links:
            link.transport.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    def submit(self, function: Callable[..., Any], *args: Any) -> FloorFuture:
        name = self.names.get(function)
        if name is None:
            name = self.names[function] = f"{function.__module__}:{function.__qualname__}"
        self.count = number = self.count + 1
        future = self.futures[number] = FloorFuture()
        self.new.append((number, name, pickle.dumps(args, 5) if args else b""))
        if not self.awake:
            self.awake = True
            self.loop.call_soon_threadsafe(self._send)
        return future

    def _send(self) -> None:
        """On the loop: all that is new, in batches."""
        new = self.new
        take = new.popleft
        while new:
            size = min(BATCH, -(-len(new) // self.workers))
            calls = [take() for _ in range(size)]
            min(self.links, key=lambda link: link.calls).send(calls)
        self.awake = False
        if new:  # came between the last look and the word that nobody looks any more
            self.loop.call_soon(self._send)

    def commands(self, count: int) -> None:
        """No futures here: each worker's share in a loop of its own."""
        pids = []
        for _ in range(self.workers):
            pid = os.fork()
            if not pid:
                for _ in range(count // self.workers):
                    run_true()
                os._exit(0)
            pids.append(pid)
        for pid in pids:
            os.waitpid(pid, 0)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        for pid in self.pids:
            os.waitpid(pid, 0)
