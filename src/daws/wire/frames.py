"""Cutting bytes into frames, for both ends of a link. Knows no socket: it lends a buffer and is told how many bytes
came."""

from msgspec import MsgspecError

from daws.model.errors import PeerError
from daws.wire.worker import FRAME_HEAD_BYTES

ROOM_BYTES = 1 << 16
SMALL_ROOM_BYTES = 1 << 12
"""Enough for a link with few messages; a large cluster has very many of those."""
NO_LIMIT = 1 << 32
LIST_OF_FEW = 0x9
LISTS = (0xDC, 0xDD)
"""The first bytes of long lists in msgpack."""
NONSENSE = (MsgspecError, UnicodeDecodeError, RecursionError, PeerError)
"""The errors that meaningless bytes may raise when they are cut into frames and decoded."""


class FrameReader:
    """A buffer that collects the bytes of a link and cuts them into frames.

    PeerError if a frame says that it is longer than `limit_bytes`. With `lists`, frames are lists of messages, and one
    that begins with something else is a PeerError as well, before the rest of it has arrived. The buffer begins with
    `room_bytes`, and has ROOM_BYTES as soon as that was too little.
    """

    __slots__ = ("_buffer", "_filled", "_limit_bytes", "_lists", "_room_bytes", "_view")

    def __init__(self, limit_bytes: int = NO_LIMIT, lists: bool = False, room_bytes: int = ROOM_BYTES) -> None:
        self._lists = lists
        self._limit_bytes = limit_bytes
        self._room_bytes = room_bytes
        self._buffer = bytearray(room_bytes)
        self._view = memoryview(self._buffer)
        self._filled = 0

    @property
    def room(self) -> memoryview:
        """The place for the next bytes; never empty."""
        return self._view[self._filled :]

    def arrived(self, count: int) -> list[memoryview]:
        """Take `count` bytes that were put into `room`. Return the frames that are complete now, valid until the next
        call."""
        end = self._filled + count
        if end == len(self._buffer):
            self._room_bytes = ROOM_BYTES
        begin = 0
        frames: list[memoryview] = []
        view = self._view
        while end - begin >= FRAME_HEAD_BYTES:
            body = begin + FRAME_HEAD_BYTES
            after = body + int.from_bytes(view[begin:body], "little")
            if after > end:
                self._keep(begin, end, after - begin)
                return frames
            frames.append(view[body:after])
            begin = after
        self._keep(begin, end, 0)
        return frames

    def _keep(self, begin: int, end: int, needed: int) -> None:
        """Keep the bytes from begin to end, part of a frame with `needed` bytes (0: unknown), and make room for the
        rest of it."""
        self._filled = end - begin
        if self._lists and needed and self._filled > FRAME_HEAD_BYTES:
            first = self._view[begin + FRAME_HEAD_BYTES]
            if first >> 4 != LIST_OF_FEW and first not in LISTS:
                raise PeerError(f"a frame of {needed:,} bytes that is no list of messages")
        if needed > len(self._buffer):
            if needed > self._limit_bytes:
                raise PeerError(f"a frame of {needed:,} bytes, where at most {self._limit_bytes:,} make sense")
            grown = bytearray(max(self._room_bytes, needed))
        elif (begin and self._filled) or (not self._filled and len(self._buffer) != self._room_bytes):
            # Frames that were handed out still look at the old buffer, so what is kept moves to a new one.
            grown = bytearray(max(self._room_bytes, needed))
        else:
            return
        grown[: self._filled] = self._view[begin:end]
        self._buffer = grown
        self._view = memoryview(grown)
