"""Bytes into frames, for both ends of a link. Knows no socket: it lends out room and is told how much came."""

from msgspec import MsgspecError

from daws.model.errors import PeerError
from daws.wire.worker import FRAME_HEAD_BYTES

ROOM_BYTES = 1 << 16
SMALL_ROOM_BYTES = 1 << 12
"""Enough for a link on which little is said; many nodes have very many of those."""
NO_LIMIT = 1 << 32
LIST_OF_FEW = 0x9
LISTS = (0xDC, 0xDD)
"""How lists begin in msgpack."""
NONSENSE = (MsgspecError, UnicodeDecodeError, RecursionError, PeerError)
"""What bytes that mean nothing may raise when they are cut into frames and decoded."""


class FrameReader:
    """Collects what arrives, and cuts it into frames. PeerError if one says that it is longer than `limit_bytes`, or,
    where frames are `lists` of messages, begins with something else: nobody waits for the rest of it then.

    It begins with `room_bytes`, and has ROOM_BYTES as soon as that was too little."""

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
        """Where the next bytes belong; never empty."""
        return self._view[self._filled :]

    def arrived(self, count: int) -> list[memoryview]:
        """So many bytes were put into the room: the frames that are complete now, good until the next arrival."""
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
        """The bytes from begin to end are part of a frame with this many bytes: make room for the rest of it."""
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
