"""The processes of a private cluster, as the client that starts them sees them.

The fork server forks them, and tells when one has ended. Each process has its own link to the client. The first message
on it says what the process is to be. The process answers `Up` when it can be used, or `Broken` before it ends because
of an error. When the client closes its side of the link, the process ends in good order.
"""

import asyncio
from asyncio import FIRST_COMPLETED, AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket, socketpair
from typing import Any

from daws.model.task import NOBODY, NodeId
from daws.wire.children import FROM_CHILD, Broken, StartNode, StartStore, Up
from daws.wire.frames import NONSENSE, FrameReader
from daws.wire.worker import frame_of
from daws.workers.server import BORN, GONE, ForkServer

END_S = 10.0


def framed(message: Any) -> bytearray:
    """One message as it goes over the link of a process."""
    frame = bytearray()
    frame_of([message], frame)
    return frame


class Child:
    """A process of the cluster. `node` is its number once it is up; `failure` is why it ended, if it said so."""

    def __init__(self, start: StartStore | StartNode, link: socket, gone: "asyncio.Future[None]") -> None:
        self.start = start
        self.node: NodeId = NOBODY
        self.pid = 0
        self.failure = b""
        self.gone = gone
        self.link = link
        self.reader = FrameReader()

    @property
    def is_store(self) -> bool:
        return isinstance(self.start, StartStore)

    def __str__(self) -> str:
        return "the store" if self.is_store else "a new node" if self.node == NOBODY else f"node {self.node}"

    def stop(self) -> None:
        """Have it end in good order."""
        with suppress(OSError):
            self.link.shutdown(SHUT_WR)


class Children:
    """All methods belong to the thread of the loop. `up` is told that a process can be used, `gone` that one has ended,
    and how; `lost` that the fork server has ended, and with it all processes."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        server: ForkServer,
        up: Callable[[Child], None],
        gone: Callable[[Child, str], None],
        lost: Callable[[], None],
    ) -> None:
        self.all: dict[int, Child] = {}  # by their number at the fork server
        self._loop = loop
        self._server = server
        self._up = up
        self._gone = gone
        self._lost = lost
        self._numbers = count()
        self._server_gone: asyncio.Future[None] = loop.create_future()
        self._starting: set[asyncio.Task[None]] = set()
        loop.add_reader(server.link.fileno(), self._on_server)

    def start(self, start: StartStore | StartNode) -> None:
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        ours.setblocking(False)
        child = Child(start, ours, self._loop.create_future())
        number = next(self._numbers)
        self.all[number] = child
        self._loop.add_reader(ours.fileno(), self._on_readable, child)
        if not self._server.fork(number, theirs):
            self._loop.add_writer(self._server.link.fileno(), self._on_server_writable)
        sending = self._loop.create_task(self._send(child, framed(start)))
        self._starting.add(sending)
        sending.add_done_callback(self._starting.discard)

    async def close(self) -> None:
        """End the nodes, which have workers to end; then all others. The fork server removes the files."""
        nodes = [child for child in self.all.values() if not child.is_store]
        for child in nodes:
            child.stop()
        if nodes:
            all_gone: asyncio.Future[Any] = asyncio.gather(*[child.gone for child in nodes])
            await asyncio.wait([self._server_gone, all_gone], timeout=END_S, return_when=FIRST_COMPLETED)

    async def let_go(self) -> None:
        """End everything that is left, with the fork server."""
        self._server.let_go()
        await asyncio.wait([self._server_gone], timeout=END_S)
        for child in [*self.all.values()]:
            self._close(child)
        for sending in self._starting:
            sending.cancel()
        self._loop.remove_reader(self._server.link.fileno())
        self._loop.remove_writer(self._server.link.fileno())
        self._server.bury(kill=not self._server_gone.done())

    async def _send(self, child: Child, frame: bytearray) -> None:
        with suppress(OSError):  # it is gone, which the fork server will say
            await self._loop.sock_sendall(child.link, frame)

    def _close(self, child: Child) -> None:
        if child.link.fileno() >= 0:
            self._loop.remove_reader(child.link.fileno())
            self._loop.remove_writer(child.link.fileno())
            child.link.close()

    def _on_readable(self, child: Child) -> None:
        try:
            length = child.link.recv_into(child.reader.room)
            frames = child.reader.arrived(length) if length else []
            messages = [message for frame in frames for message in FROM_CHILD.decode(frame)]
        except BlockingIOError:
            return
        except (OSError, *NONSENSE):
            length, messages = 0, []
        if not length:
            self._loop.remove_reader(child.link.fileno())  # the fork server will say how it ended
        for message in messages:
            if isinstance(message, Up):
                child.node = message.node
                self._up(child)
            elif isinstance(message, Broken):
                child.failure = message.failure

    def _on_server(self) -> None:
        said = self._server.receive()
        if said is None:
            self._loop.remove_reader(self._server.link.fileno())
            self._server_gone.set_result(None)
            self._lost()
            return
        for what, number, code in said:
            if what == BORN and number in self.all:
                self.all[number].pid = code
            elif what == GONE and number in self.all:
                child = self.all.pop(number)
                self._on_readable(child)  # its last message may be there
                self._close(child)
                child.gone.set_result(None)
                self._gone(child, f"by signal {-code}" if code < 0 else f"with exit code {code}")

    def _on_server_writable(self) -> None:
        if self._server.send():
            self._loop.remove_writer(self._server.link.fileno())
