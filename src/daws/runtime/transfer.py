"""Objects on their way from one node to another, or to the client: plain blocking sockets and threads of their own, so
that neither side's event loop waits for bytes.

A request is a list of object ids. Each of them is answered in turn by the object's size and then its bytes, which the
kernel copies from the file, or by MISSING.
"""

import os
from array import array
from collections.abc import Sequence
from contextlib import suppress
from socket import SHUT_RDWR, socket
from struct import Struct
from threading import Lock, Thread

from daws.data.codec import Packed
from daws.data.files import ObjectFiles
from daws.model.errors import PeerError, UnavailableError
from daws.runtime.connection import connect, listen

_COUNT = Struct("<I")
_SIZE = Struct("<Q")
MISSING = (1 << 64) - 1
IDS_MAX = 1 << 20
CHUNK_BYTES = 1 << 20


class ObjectServer:
    """Gives away what is in `files`, to whoever can connect to `path`."""

    def __init__(self, path: str, files: ObjectFiles) -> None:
        self.files = files
        self.sent_bytes = 0
        self._sock = listen(path)
        Thread(target=self._accept, name="daws-objects", daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._sock.shutdown(SHUT_RDWR)
        self._sock.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._sock.accept()
            except OSError:
                return
            Thread(target=self._serve, args=(sock,), name="daws-objects", daemon=True).start()

    def _serve(self, sock: socket) -> None:
        with sock, suppress(OSError, PeerError):
            while (ids := _request(sock)) is not None:
                for object_ in ids:
                    self._give(sock, object_)

    def _give(self, sock: socket, object_: int) -> None:
        try:
            self.files.pin(object_)
        except UnavailableError:
            sock.sendall(_SIZE.pack(MISSING))
            return
        try:
            fd = os.open(self.files.path(object_), os.O_RDONLY | os.O_CLOEXEC)
            try:
                size = self.files.size_bytes(object_)
                sock.sendall(_SIZE.pack(size))
                sent = 0
                while sent < size:
                    count = os.sendfile(sock.fileno(), fd, sent, size - sent)
                    if not count:
                        raise PeerError(f"the file of object {object_} is shorter than the object")
                    sent += count
                self.sent_bytes += size
            finally:
                os.close(fd)
        finally:
            self.files.unpin(object_)


def _request(sock: socket) -> Sequence[int] | None:
    head = _read(sock, _COUNT.size)
    if head is None:
        return None
    (count,) = _COUNT.unpack(head)
    if count > IDS_MAX:
        raise PeerError(f"a request for {count:,} objects")
    body = _read(sock, 8 * count)
    return None if body is None else array("Q", body)


class ObjectSource:
    """Somebody who gives objects away; one request at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._sock: socket | None = None
        self._lock = Lock()

    def fetch(self, objects: Sequence[int], files: ObjectFiles) -> list[int]:
        """Bring objects here; answers those that came. Any of its errors (NoSpaceError) is one of this side."""
        came: list[int] = []
        with self._lock, suppress(OSError, PeerError):
            try:
                if self._sock is None:
                    self._sock = connect(self._path)
                sock = self._sock
                sock.sendall(_COUNT.pack(len(objects)) + array("Q", objects).tobytes())
                for object_ in objects:
                    head = _read(sock, _SIZE.size)
                    if head is None:
                        raise PeerError("it is gone")
                    (size,) = _SIZE.unpack(head)
                    if size != MISSING:
                        files.put_packed(object_, _Incoming(sock, size))
                        came.append(object_)
            except BaseException:
                self._close()
                raise
        return came

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None


class _Incoming(Packed):
    """An object that is still in the socket."""

    __slots__ = ("_sock",)

    def __init__(self, sock: socket, size_bytes: int) -> None:
        self.parts = []
        self.size_bytes = size_bytes
        self._sock = sock

    def write_to(self, fd: int) -> int:
        if self.size_bytes:
            os.posix_fallocate(fd, 0, self.size_bytes)  # if there is no room, nothing has been read yet
        room = memoryview(bytearray(min(CHUNK_BYTES, self.size_bytes)))
        left = self.size_bytes
        while left:
            count = self._sock.recv_into(room[:left])
            if not count:
                raise PeerError("it is gone in the middle of an object")
            written = 0
            while written < count:
                written += os.write(fd, room[written:count])
            left -= count
        return self.size_bytes


def _read(sock: socket, count: int) -> bytes | None:
    """So many bytes, or None if the other side is gone."""
    parts = bytearray()
    while len(parts) < count:
        part = sock.recv(count - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)
