"""Objects on streams (`daws.net.stream`) between nodes and clients: blocking sockets on threads, so that no event loop
waits for bytes.

`daws.wire.objects` has what requests and answers look like.
"""

import logging
import os
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from socket import socket
from threading import Lock
from typing import TypeVar

from daws.core.events import ObjectsFetched
from daws.data.codec import Packed, WholeFile
from daws.data.files import ObjectFiles
from daws.model.errors import NoSpaceError, PeerError, UnavailableError
from daws.model.task import ObjectTransfer
from daws.net.stream import CHUNK_BYTES, receive_exactly, receive_into, send_file
from daws.wire.objects import ADOPTED, ADOPTS, BRINGS, BROUGHT, COUNT, IDS_MAX, MISSING, MODE_SHIFT, SIZE, SIZE_MAX

STALL_S = 15.0
"""A receiver that takes nothing for this long while an object is sent is gone."""
ROOM_S, ROOM_AGAIN_S = 60.0, 0.25
"""How long a node waits for room, and how often it checks. After that the node is of no use, and other nodes take
over."""
log = logging.getLogger("daws.node")
T = TypeVar("T")


class ObjectGiver:
    """The sender of objects in `files`."""

    def __init__(self, files: ObjectFiles) -> None:
        self.files = files

    def serve(self, sock: socket) -> None:
        """Answer requests until the other side has no more. Raise OSError or PeerError if the stream breaks off."""
        while True:
            sock.settimeout(None)
            head = receive_exactly(sock, COUNT.size)
            if head is None:
                return
            sock.settimeout(STALL_S)
            (count,) = COUNT.unpack(head)
            if count == BRINGS:
                self._take(sock)
            elif count == ADOPTS:
                self._adopt(sock)
            else:
                for object_ in _ids(sock, count):
                    self._give(sock, object_)

    def _give(self, sock: socket, object_: int) -> None:
        try:
            self.files.pin(object_)
        except UnavailableError:
            sock.sendall(SIZE.pack(MISSING))
            return
        try:
            held = self.files.held(object_)
            if held is not None:
                sock.sendall(_size_word(len(held), self.files.mode(object_)) + held)
                return
            try:
                fd = self.files.open(object_)
            except UnavailableError:  # it is damaged: the other side has to look elsewhere
                sock.sendall(SIZE.pack(MISSING))
                return
            try:
                size = self.files.size_bytes(object_)
                sock.sendall(_size_word(size, self.files.mode(object_, fd)))
                send_file(sock, fd, size)
            finally:
                os.close(fd)
        finally:
            self.files.unpin(object_)

    def _take(self, sock: socket) -> None:
        object_, size = BROUGHT.unpack(_expect(sock, BROUGHT.size))
        if size > SIZE_MAX:
            raise PeerError(f"the size of an object is not valid: {size}")
        try:
            self.files.put_packed(object_, _Incoming(sock, size, 0))
        except NoSpaceError as error:
            sock.sendall(SIZE.pack(MISSING))
            raise PeerError("there is no room for the object") from error
        sock.sendall(SIZE.pack(size))

    def _adopt(self, sock: socket) -> None:
        object_, size, length = ADOPTED.unpack(_expect(sock, ADOPTED.size))
        path = os.fsdecode(_expect(sock, length))
        try:
            self.files.adopt(object_, path, size)
        except (UnavailableError, OSError):
            size = MISSING
        sock.sendall(SIZE.pack(size))


def _size_word(size: int, mode: int) -> bytes:
    return SIZE.pack(size | mode << MODE_SHIFT)


def _ids(sock: socket, count: int) -> Sequence[int]:
    if count > IDS_MAX:
        raise PeerError(f"too many objects in one request: {count:,}")
    return array("Q", _expect(sock, 8 * count))


class ObjectSource:
    """A process from which objects are fetched, on a stream that `connect` opens. There is one request at a time."""

    def __init__(self, connect: Callable[[], socket]) -> None:
        self._connect = connect
        self._sock: socket | None = None
        self._lock = Lock()
        self._used_s = 0.0

    def fetch(self, objects: Sequence[int], files: ObjectFiles) -> list[int]:
        """Fetch objects, and return those that came. An error (NoSpaceError) is one of this side."""
        answered: dict[int, bool] = {}
        self._fetch(objects, files, answered)
        return [object_ for object_, came in answered.items() if came]

    def _fetch(self, objects: Sequence[int], files: ObjectFiles, answered: dict[int, bool]) -> None:
        """Fetch objects. `answered` has those that were answered, and whether they came, also if this raises an
        error."""

        def receive(sock: socket) -> None:
            for object_ in objects:
                word = _receive_size(sock)
                if word != MISSING:
                    mode, size = divmod(word, 1 << MODE_SHIFT)
                    if size > SIZE_MAX or mode > 0o777:
                        raise PeerError(f"the size of an object is not valid: {word}")
                    files.put_packed(object_, _Incoming(sock, size, mode))
                answered[object_] = word != MISSING

        self._request(COUNT.pack(len(objects)) + array("Q", objects).tobytes(), receive)

    def fetch_patiently(
        self, wanted: Sequence[ObjectTransfer], files: ObjectFiles, is_over: Callable[[], bool]
    ) -> Iterator[ObjectsFetched]:
        """Fetch objects, and retry those for which there is no room: objects may be dropped, or the disk may be
        cleared. The others are reported meanwhile. `is_over` says that the objects are not needed any more."""
        until_s = 0.0
        while wanted:
            answered: dict[int, bool] = {}
            try:
                self._fetch([one.object for one in wanted], files, answered)
            except NoSpaceError as error:
                now_s = time.monotonic()
                if not until_s:
                    until_s = now_s + ROOM_S
                    log.warning("%s; trying again for %g s", error, ROOM_S)
                if now_s > until_s or is_over():
                    raise
                large, *rest = [one for one in wanted if one.object not in answered]
                left = [*rest, large]  # the other objects may be smaller
            else:
                left = []
            fetched = tuple([one for one in wanted if answered.get(one.object)])
            failed = tuple([one for one in wanted if not answered.get(one.object, bool(left))])
            if fetched or failed:
                yield ObjectsFetched(fetched, failed)
            if left:
                time.sleep(ROOM_AGAIN_S)
            wanted = left

    def bring(self, object_: int, packed: Packed) -> bool:
        """Take an object there. False if that cannot be: it is gone, or has no room."""

        def send(sock: socket) -> bool:
            for part in packed.parts:
                view = memoryview(part).cast("B")
                for low in range(0, len(view), CHUNK_BYTES):
                    sock.sendall(view[low : low + CHUNK_BYTES])
            return _receive_size(sock) != MISSING

        return bool(self._request(COUNT.pack(BRINGS) + BROUGHT.pack(object_, packed.size_bytes), send))

    def adopt(self, object_: int, path: str, size_bytes: int) -> bool:
        """Hand over a file in a folder of the node there. False if the node did not take it."""
        name = os.fsencode(path)
        head = COUNT.pack(ADOPTS) + ADOPTED.pack(object_, size_bytes, len(name)) + name
        return bool(self._request(head, lambda sock: _receive_size(sock) != MISSING))

    def _request(self, head: bytes, rest: Callable[[socket], T]) -> T | None:
        """Send the head of a request, and return the result of `rest`; None if the stream breaks off."""
        with self._lock, suppress(OSError, PeerError):
            try:
                self._used_s = time.monotonic()
                if self._sock is None:
                    self._sock = self._connect()
                self._sock.sendall(head)
                return rest(self._sock)
            except BaseException:
                self._close()
                raise
        return None

    def close(self) -> None:
        with self._lock:
            self._close()

    def close_if_idle(self, since_s: float) -> bool:
        """Close the stream if it was not used since then, and return whether it was closed. The next request opens it
        again."""
        if self._used_s < since_s and self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()
            return True
        return False

    def _close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None


class _Incoming(WholeFile):
    """An object that is still in the socket."""

    __slots__ = ("_sock",)

    def __init__(self, sock: socket, size_bytes: int, mode: int) -> None:
        super().__init__([], size_bytes, bool(mode), mode or Packed.mode)
        self._sock = sock

    def write_to(self, fd: int) -> int:
        if self.size_bytes:
            os.posix_fallocate(fd, 0, self.size_bytes)  # if there is no room, nothing has been read yet
        receive_into(self._sock, fd, self.size_bytes)
        return self.size_bytes


def _receive_size(sock: socket) -> int:
    return int.from_bytes(_expect(sock, SIZE.size), "little")


def _expect(sock: socket, count: int) -> bytes:
    data = receive_exactly(sock, count)
    if data is None:
        raise PeerError("the connection was closed")
    return data
