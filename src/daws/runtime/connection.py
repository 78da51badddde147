"""A socket on an event loop that carries frames: what is said within one turn of the loop leaves as one of them."""

import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import Any, Generic, TypeVar

from msgspec import msgpack

from daws.model.errors import UnavailableError
from daws.wire.frames import NONSENSE, FrameReader
from daws.wire.worker import FRAME_HEAD_BYTES

FRAME_BYTES_MAX = 1 << 31
T = TypeVar("T")
_encoder = msgpack.Encoder()


class Connection(Generic[T]):
    """`received` gets what came; `lost` is called once when nothing can come any more, however that happened.

    A frame that makes no sense ends the connection, with one line in the log.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        sock: socket,
        decoder: "msgpack.Decoder[list[T]]",
        received: Callable[[list[T]], None],
        lost: Callable[[], None],
        name: str,
    ) -> None:
        self.name = name
        self._loop = loop
        self._sock = sock
        self._decoder = decoder
        self._received = received
        self._lost = lost
        self._reader = FrameReader(FRAME_BYTES_MAX)
        self._unsaid: list[Any] = []
        self._backlog = bytearray()
        self.is_open = True
        sock.setblocking(False)
        loop.add_reader(sock.fileno(), self._on_readable)

    def __repr__(self) -> str:
        return f"<connection to {self.name}{'' if self.is_open else ', closed'}>"

    def say(self, message: Any) -> None:
        """It leaves at the end of this turn. To somebody who is gone nothing can be said."""
        if not self._unsaid:
            self._loop.call_soon(self.flush)
        self._unsaid.append(message)

    def flush(self) -> None:
        if not self._unsaid or not self.is_open:
            self._unsaid.clear()
            return
        frame = bytearray(FRAME_HEAD_BYTES)
        _encoder.encode_into(self._unsaid, frame, FRAME_HEAD_BYTES)
        self._unsaid.clear()
        if len(frame) > FRAME_BYTES_MAX:
            raise UnavailableError(
                f"{len(frame):,} bytes at once are too many for {self.name}; hand in large arguments with put",
                retry=False,
            )
        frame[:FRAME_HEAD_BYTES] = (len(frame) - FRAME_HEAD_BYTES).to_bytes(FRAME_HEAD_BYTES, "little")
        if self._backlog:
            self._backlog += frame
            return
        sent = self._try(frame)
        if sent < len(frame):
            self._backlog += memoryview(frame)[sent:]
            self._loop.add_writer(self._sock.fileno(), self._on_writable)

    def close(self) -> None:
        """Nobody is told."""
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
            self._sock.close()

    def _on_writable(self) -> None:
        sent = self._try(self._backlog)
        del self._backlog[:sent]
        if not self._backlog:
            self._loop.remove_writer(self._sock.fileno())

    def _try(self, data: bytearray) -> int:
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)  # it is gone, which reading will show

    def _on_readable(self) -> None:
        try:
            count = self._sock.recv_into(self._reader.room)
            if not count:
                self._end()
                return
            frames = self._reader.arrived(count)
            messages = [message for frame in frames for message in self._decoder.decode(frame)]
        except BlockingIOError:
            return
        except OSError:
            self._end()
            return
        except NONSENSE as error:
            logging.getLogger("daws").warning("the connection to %s is closed: %s", self.name, error)
            self._end()
            return
        if messages:
            self._received(messages)

    def _end(self) -> None:
        self.close()
        self._lost()


def listen(path: str, backlog: int = 128) -> socket:
    """A socket of this user's alone, because its folder is."""
    sock = socket(AF_UNIX, SOCK_STREAM)
    try:
        sock.bind(path)
        sock.listen(backlog)
    except BaseException:
        sock.close()
        raise
    return sock


def connect(path: str) -> socket:
    sock = socket(AF_UNIX, SOCK_STREAM)
    try:
        sock.connect(path)
    except BaseException:
        sock.close()
        raise
    return sock


def accept_on(loop: AbstractEventLoop, sock: socket, accepted: Callable[[socket], None]) -> None:
    """Call `accepted` with each socket that connects."""
    sock.setblocking(False)

    def ready() -> None:
        with suppress(BlockingIOError, ConnectionError):
            accepted(sock.accept()[0])

    loop.add_reader(sock.fileno(), ready)
