"""Streams of file contents between processes, on connections of their own. Sockets are blocking and served by threads,
so that no event loop waits for bytes or for their encryption. Keys and handshake are those of links.

The two ends agree on requests and answers; this module does not know them. Between hosts the bytes are encrypted;
inside one host the kernel copies them from the file to the socket.
"""

import os
import ssl
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from socket import AF_UNIX, SHUT_RDWR, SOCK_STREAM, create_connection, socket
from threading import Lock, Thread

from daws.model.errors import PeerError
from daws.net.address import Unix, parse_address
from daws.net.complaints import COMPLAINTS
from daws.net.handshake import ROLES, Handshake, Hello
from daws.net.keys import Keys, roles_of
from daws.net.link import keep_alive
from daws.net.listening import (
    BREATH_S,
    HANDSHAKE_S,
    STRANGERS_MAX,
    TOO_MANY,
    ListeningSocket,
    check_keys,
    reaching,
    refusal_of,
)

CHUNK_BYTES = 1 << 20
SILENCE_S = 60.0
"""The longest wait of either side for the other in the middle of a transfer."""


def connect(address: str, keys: Keys | None, hello: Hello, *, node: int | None = None) -> socket:
    """Connect to an address and return the socket. If a `node` is given, the peer must be that node. Raise
    UnavailableError as `reaching` does."""
    where = parse_address(address)
    check_keys(where, keys)
    deadline_s = time.monotonic() + HANDSHAKE_S
    sock = socket(AF_UNIX, SOCK_STREAM)
    with reaching(address, lambda: sock.close()):
        if isinstance(where, Unix):
            sock.settimeout(HANDSHAKE_S)
            sock.connect(where.path)
        else:
            assert keys is not None
            sock.close()
            sock = keys.client.wrap_socket(create_connection(where, HANDSHAKE_S), do_handshake_on_connect=False)
        introduce(sock, hello, deadline_s, node)
    return sock


def introduce(sock: socket, hello: Hello, deadline_s: float, node: int | None = None) -> Hello:
    """Do the handshakes of TLS (on a TLS socket) and of daws, and return the peer. Raise OSError or PeerError if one
    fails."""
    sock.settimeout(_left_s(deadline_s))
    roles: Collection[str] = ROLES
    if isinstance(sock, ssl.SSLSocket):
        sock.do_handshake()
        roles = roles_of(sock.getpeercert())
    handshake = Handshake(hello, roles, node)
    sock.sendall(handshake.greeting())
    while handshake.peer is None:
        sock.settimeout(_left_s(deadline_s))
        count = sock.recv_into(handshake.room)
        if not count:
            raise handshake.ended()
        answer = handshake.arrived(count)
        if answer:
            sock.sendall(answer)
    keep_alive(sock)
    sock.settimeout(SILENCE_S)
    return handshake.peer


class StreamDoor:
    """A listening socket that calls `serve` on a new thread for each connection, after its handshake.

    The connection is closed when `serve` returns, or when it raises OSError or PeerError because of the peer.
    """

    def __init__(self, listener: ListeningSocket, hello: Hello, serve: Callable[[socket, Hello], None]) -> None:
        self._hello = hello
        self._serve = serve
        self._lock = Lock()
        self._visitors: set[socket] = set()
        self._stranger_count = 0
        self._is_closed = False
        self._listener = listener
        self.address = listener.address
        Thread(target=self._accept, name="daws-streams", daemon=True).start()

    def close(self) -> None:
        """Stop listening, and close all connections."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            visitors = list(self._visitors)
        for sock in (self._listener.sock, *visitors):
            with suppress(OSError):
                socket.shutdown(sock, SHUT_RDWR)  # not TLS's own, which lets other threads go on in plain text
        self._listener.close()

    def _accept(self) -> None:
        context = self._listener.context
        while True:
            try:
                sock, name = self._listener.accept()
            except OSError as error:
                if self._is_closed:
                    return
                if self._listener.warn_if_full(error):
                    time.sleep(BREATH_S)
                continue
            try:
                if context is not None:
                    sock = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                self._let_in(sock)
            except (OSError, PeerError) as error:
                sock.close()
                COMPLAINTS.warn(refusal_of(name, error))
            else:
                Thread(target=self._welcome, args=(sock, name), name="daws-stream", daemon=True).start()

    def _let_in(self, sock: socket) -> None:
        with self._lock:
            if self._is_closed or self._stranger_count >= STRANGERS_MAX:
                raise PeerError(TOO_MANY)
            self._visitors.add(sock)
            self._stranger_count += 1

    def _welcome(self, sock: socket, name: str) -> None:
        why = ""
        try:
            with sock:
                try:
                    peer = self._introduced(sock)
                except (OSError, PeerError) as error:
                    why = refusal_of(name, error)
                else:
                    why = self._attend(sock, peer, name)
        finally:
            with self._lock:
                self._visitors.discard(sock)
        if why and not self._is_closed:
            COMPLAINTS.warn(why)

    def _introduced(self, sock: socket) -> Hello:
        try:
            return introduce(sock, self._hello, time.monotonic() + HANDSHAKE_S)
        finally:
            with self._lock:
                self._stranger_count -= 1

    def _attend(self, sock: socket, peer: Hello, name: str) -> str:
        """Serve one connection. Return a line for the log if the peer did something wrong, else an empty one."""
        try:
            self._serve(sock, peer)
        except PeerError as error:
            return f"the connection to {peer} ({name}) is closed: {error}"
        except OSError:
            pass  # it is gone, which is its right
        return ""


def send_file(sock: socket, fd: int, size_bytes: int) -> None:
    """Send the first `size_bytes` bytes of a file. Raise PeerError if the file is shorter."""
    if isinstance(sock, ssl.SSLSocket):
        _send_chunks(sock, fd, size_bytes)
        return
    with open(fd, "rb", closefd=False) as file:
        sent = sock.sendfile(file, 0, size_bytes) if size_bytes else 0
    if sent < size_bytes:
        raise PeerError(f"a file of {size_bytes:,} bytes has ended after {sent:,}")


def _send_chunks(sock: socket, fd: int, size_bytes: int) -> None:
    room = memoryview(bytearray(min(CHUNK_BYTES, size_bytes)))
    sent = 0
    while sent < size_bytes:
        count = os.preadv(fd, [room[: size_bytes - sent]], sent)
        if not count:
            raise PeerError(f"a file of {size_bytes:,} bytes has ended after {sent:,}")
        sock.sendall(room[:count])
        sent += count


def receive_into(sock: socket, fd: int, size_bytes: int) -> None:
    """Receive `size_bytes` bytes into a file. Raise PeerError if the connection ends before that. An OSError of the
    file is passed on."""
    room = memoryview(bytearray(min(CHUNK_BYTES, size_bytes)))
    left = size_bytes
    while left:
        wanted = min(left, len(room))
        filled = 0
        while filled < wanted:  # TLS gives a few kB at a time
            count = sock.recv_into(room[filled:wanted])
            if not count:
                raise PeerError(f"it is gone in the middle of {size_bytes:,} bytes")
            filled += count
        written = 0
        while written < filled:
            written += os.write(fd, room[written:filled])
        left -= filled


def receive_exactly(sock: socket, count: int) -> bytes | None:
    """Receive `count` bytes, or return None if the connection ends before the first. Raise PeerError if it ends in the
    middle."""
    room = bytearray(count)
    view = memoryview(room)
    filled = 0
    while filled < count:
        some = sock.recv_into(view[filled:])
        if not some:
            if filled:
                raise PeerError("it is gone in the middle of a word")
            return None
        filled += some
    return bytes(room)


def _left_s(deadline_s: float) -> float:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
