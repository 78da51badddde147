"""A connection that carries batches of messages: mutual TLS 1.3 between hosts, a unix socket in a private folder inside
one. All messages of one turn of the loop leave as one frame.

`daws.net.door` makes links (`dial`) and accepts them (`serve`). Nothing is decoded before TLS and the handshake have
verified the peer.
"""

import asyncio
from asyncio import AbstractEventLoop, BufferedProtocol, Future, Transport
from collections.abc import Callable
from socket import (
    AF_UNIX,
    IPPROTO_TCP,
    SO_KEEPALIVE,
    SOL_SOCKET,
    TCP_KEEPCNT,
    TCP_KEEPIDLE,
    TCP_KEEPINTVL,
    socket,
)
from typing import Any, Generic, TypeVar, cast

from msgspec import msgpack

from daws.model.errors import PeerError
from daws.net.complaints import COMPLAINTS
from daws.net.handshake import ROLES, Handshake, Hello
from daws.net.keys import roles_of
from daws.wire.frames import NONSENSE, SMALL_ROOM_BYTES, FrameReader
from daws.wire.worker import FRAME_HEAD_BYTES

FRAME_BYTES_MAX = 1 << 28
BACKLOG_BYTES_MAX = 1 << 29
"""The link to a peer that does not read is closed when more bytes than this wait for it."""
SLOW_BYTES = 1 << 22
STALL_S = 30.0
"""The link is closed as well if the peer has read nothing for this long while more than SLOW_BYTES wait."""

T = TypeVar("T")
_encoder = msgpack.Encoder()
_GOODBYE = (1).to_bytes(FRAME_HEAD_BYTES, "little") + b"\x90"  # an empty batch


def keep_alive(sock: socket) -> None:
    """Turn on TCP keep-alive. A host that lost its power sends nothing; its links are lost after two minutes without an
    answer."""
    if sock.family != AF_UNIX:
        sock.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
        sock.setsockopt(IPPROTO_TCP, TCP_KEEPIDLE, 60)
        sock.setsockopt(IPPROTO_TCP, TCP_KEEPINTVL, 15)
        sock.setsockopt(IPPROTO_TCP, TCP_KEEPCNT, 4)


class Link(BufferedProtocol, Generic[T]):
    """One end of a connection to a peer.

    `received` gets the messages that arrive. `lost` is called once when nothing can arrive any more, for any reason but
    a `close` of this side. A frame that makes no sense ends the link, with one line in the log.

    `peer` is the other end, once the handshake is over. The bytes that wait for a peer that reads slowly are bounded.
    `is_left` means that one side has said that it needs the link no more: its end is then no sign of a failure.
    """

    peer: Hello

    def __init__(
        self,
        loop: AbstractEventLoop,
        hello: Hello,
        name: str,
        greeted: "Callable[[Link[T]], None]",
        node: int | None = None,
    ) -> None:
        """Prepare one end. `name` is the address of the peer; `node`, if given, is the node that it must be.

        `greeted` is called as soon as the handshake is over, before anything else is read. It must call `begin`.
        """
        self.name = name
        self.is_open = False
        self.ready: Future[None] = loop.create_future()
        self._loop = loop
        self._greeted = greeted
        self._hello = hello
        self._node = node
        self._transport: Transport | None = None
        self._handshake: Handshake | None = None
        self._decoder: msgpack.Decoder[list[T]] | None = None
        self._unsent: list[Any] = []
        self._sent_bytes = 0
        self._taken_bytes = 0
        self._watch: asyncio.TimerHandle | None = None  # while the peer reads more slowly than this side writes
        self.is_left = False

    def __repr__(self) -> str:
        return f"<link to {self.name}{'' if self.is_open else ', closed'}>"

    def begin(
        self, decoder: "msgpack.Decoder[list[T]]", received: Callable[[list[T]], None], lost: Callable[[], None]
    ) -> None:
        """Set the decoder and the callbacks of this link. A link without them is closed."""
        self._decoder = decoder
        self._received = received
        self._lost = lost

    def send(self, message: Any) -> None:
        """Send a message. It leaves at the end of this turn of the loop. On a closed link it is dropped."""
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent.append(message)

    def flush(self) -> None:
        messages, self._unsent = self._unsent, []
        if messages and self.is_open:
            self._write_batch(messages)

    def leave(self) -> None:
        """Tell the peer that this side sends nothing more.

        The peer closes the link when it has nothing to send either. This side reads until then, so that no message
        under way is lost.
        """
        self.flush()
        if self.is_open and not self.is_left:
            self.is_left = True
            self._write(_GOODBYE)

    def close(self) -> None:
        """Close the connection without calling `lost`."""
        self.is_open = False
        self._unsent.clear()
        self._forget_watch()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection without calling `lost`, and drop the bytes that have not left yet."""
        self.close()
        if self._transport is not None:
            self._transport.abort()

    # -- what the event loop calls -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(Transport, transport)
        self._transport.set_write_buffer_limits(SLOW_BYTES)
        keep_alive(transport.get_extra_info("socket"))
        secured = transport.get_extra_info("ssl_object")
        roles = ROLES if secured is None else roles_of(secured.getpeercert())
        self._handshake = Handshake(self._hello, roles, self._node)
        self._transport.write(self._handshake.greeting())

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._handshake is not None:
            return self._handshake.room
        if self.is_open:
            return self._reader.room
        return memoryview(bytearray(FRAME_HEAD_BYTES))  # what comes after the end goes nowhere

    def buffer_updated(self, count: int) -> None:
        if self._handshake is not None:
            self._on_handshake(self._handshake, count)
        elif self.is_open:
            self._on_frames(count)

    def eof_received(self) -> None:
        """Return None, so that the transport closes the other half too."""

    def connection_lost(self, error: Exception | None) -> None:
        if self._handshake is not None:
            self._refuse(error if error is not None else self._handshake.ended())
        elif self.is_open:
            self._end()
        self._forget_watch()

    def pause_writing(self) -> None:
        self._taken_bytes = self._sent_bytes - self._waiting_bytes()
        self._watch = self._loop.call_later(STALL_S, self._on_watch)

    def resume_writing(self) -> None:
        self._forget_watch()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _on_handshake(self, handshake: Handshake, count: int) -> None:
        try:
            answer = handshake.arrived(count)
        except PeerError as error:
            self._refuse(error)
            return
        assert self._transport is not None
        if answer:
            self._transport.write(answer)
        if handshake.peer is not None:
            self.peer = handshake.peer
            self.name = f"{self.peer} ({self.name})"
            self._handshake = None
            self._reader = FrameReader(FRAME_BYTES_MAX, room_bytes=SMALL_ROOM_BYTES)
            self.is_open = True
            self._greeted(self)
            if self._decoder is None:
                self.close()
            if not self.ready.done():
                self.ready.set_result(None)

    def _refuse(self, error: Exception) -> None:
        self._handshake = None
        self.close()
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()  # who has given up waiting for it does not hear of it

    def _on_frames(self, count: int) -> None:
        assert self._decoder is not None
        decode = self._decoder.decode
        batches: list[list[T]] = []
        try:
            for frame in self._reader.arrived(count):
                batches.append(decode(frame))
        except NONSENSE as error:
            self._give_up(str(error))
            return
        messages = [message for batch in batches for message in batch]
        if messages:
            self._received(messages)
        if not all(batches) and self.is_open:
            self.is_left = True
            self.flush()
            self._end()

    def _write_batch(self, messages: list[Any]) -> None:
        frame = bytearray(FRAME_HEAD_BYTES)
        _encoder.encode_into(messages, frame, FRAME_HEAD_BYTES)
        if len(frame) > FRAME_BYTES_MAX:
            self._write_halves(messages, len(frame))
            return
        frame[:FRAME_HEAD_BYTES] = (len(frame) - FRAME_HEAD_BYTES).to_bytes(FRAME_HEAD_BYTES, "little")
        self._write(frame)

    def _write_halves(self, messages: list[Any], size_bytes: int) -> None:
        if len(messages) == 1:
            self._give_up(f"a message of {size_bytes:,} bytes is too large; hand in large arguments with put")
            return
        half = len(messages) // 2
        for part in (messages[:half], messages[half:]):
            if self.is_open:
                self._write_batch(part)

    def _write(self, frame: bytes | bytearray) -> None:
        assert self._transport is not None
        self._sent_bytes += len(frame)
        self._transport.write(frame)
        if self._waiting_bytes() > max(BACKLOG_BYTES_MAX, len(frame)):
            self._give_up(f"it does not read its messages, and {self._waiting_bytes():,} bytes wait")

    def _waiting_bytes(self) -> int:
        assert self._transport is not None
        return self._transport.get_write_buffer_size()

    def _on_watch(self) -> None:
        taken_bytes = self._sent_bytes - self._waiting_bytes()
        if taken_bytes > self._taken_bytes:
            self._taken_bytes = taken_bytes
            self._watch = self._loop.call_later(STALL_S, self._on_watch)
            return
        self._give_up(f"it has read nothing for {STALL_S:.0f} s, and {self._waiting_bytes():,} bytes wait")

    def _forget_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _give_up(self, why: str) -> None:
        COMPLAINTS.warn(f"the link to {self.name} is closed: {why}")
        self.abort()
        self._lost()

    def _end(self) -> None:
        self.close()
        self._lost()
