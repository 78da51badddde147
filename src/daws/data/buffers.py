"""Objects that are one buffer: a large argument, which its tasks map.

The file is that of any object whose value is a buffer, with two peculiarities. The buffer has up to a page of zeros
before it: its bytes are at the same offset in their page as in memory, so that pages can be exchanged (see `pages`).
And the file is never reused for another object.
"""

import os
from collections.abc import Callable
from struct import Struct

from daws.data.codec import MAGIC, Buffer, Packed, WholeFile, write_parts
from daws.data.envelope import envelope
from daws.data.mapping import map_file
from daws.data.pages import PAGE, Pages, exchange
from daws.data.segments import ONCE_MODE
from daws.data.session import MEMORY_BASE

_HEAD = Struct("=4sIQQ")
_STREAM = b"\x80\x05\x97."
"""The pickle of a buffer: the next one that lies beside the stream."""
_ENVELOPE_BYTES = 64
_STREAM_BYTES = PAGE - _ENVELOPE_BYTES - _HEAD.size
DATA_OFFSET = PAGE
"""Where the buffer of the object begins in the file, with its zeros."""


class BufferObject(Packed):
    """A buffer that is to become an object. `address` is its address in memory, if its pages may be exchanged, else
    0."""

    __slots__ = ("address", "front", "pages", "stored", "view")

    def __init__(self, view: memoryview, address: int = 0) -> None:
        self.view = view
        self.address = address
        self.front = address % PAGE
        """The number of zeros before the buffer."""
        self.stored: memoryview | None = None
        """The written bytes, mapped from their file; None if the file is not here."""
        self.pages: Pages | None = None
        size = self.front + view.nbytes
        head = _HEAD.pack(MAGIC, 1, _STREAM_BYTES, size)
        stream = _STREAM.ljust(_STREAM_BYTES, b"\0")
        self.parts = [head + stream, bytes(self.front), view]
        self.covered = 1
        self.size_bytes = len(head) + len(stream) + size

    def as_file(self, object_id: int) -> Packed:
        head = envelope(object_id, self.parts[:1], self.size_bytes)
        return _BufferFile([head, *self.parts], len(head) + self.size_bytes, self._write)

    def _write(self, fd: int, parts: list[Buffer]) -> None:
        offset = DATA_OFFSET + self.front
        if self.address and os.fstat(fd).st_dev == os.stat(MEMORY_BASE).st_dev:
            write_parts(fd, parts[:-1])
            self.pages = exchange(fd, offset, self.address, self.view.nbytes)
        else:
            write_parts(fd, parts)
        readable = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.stored = map_file(readable, offset + self.view.nbytes, populate=False)[offset:]
        finally:
            os.close(readable)


class _BufferFile(WholeFile):
    __slots__ = ("_write",)

    def __init__(self, parts: list[Buffer], size_bytes: int, write: Callable[[int, list[Buffer]], None]) -> None:
        super().__init__(parts, size_bytes, mode=ONCE_MODE)
        self._write = write

    def write_to(self, fd: int) -> int:
        self._write(fd, self.parts)
        return self.size_bytes
