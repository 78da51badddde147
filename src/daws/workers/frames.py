"""Bytes into frames, for both ends of a worker's link. Knows no socket: it lends out room and is told how much came."""

from daws.wire.worker import FRAME_HEAD_BYTES

ROOM_BYTES = 1 << 16


class FrameReader:
    """Collects what arrives, and cuts it into frames."""

    __slots__ = ("_buffer", "_filled", "_view")

    def __init__(self) -> None:
        self._buffer = bytearray(ROOM_BYTES)
        self._view = memoryview(self._buffer)
        self._filled = 0

    @property
    def room(self) -> memoryview:
        """Where the next bytes belong; never empty."""
        return self._view[self._filled :]

    def arrived(self, count: int) -> list[memoryview]:
        """So many bytes were put into the room: the frames that are complete now, good until the next arrival."""
        end = self._filled + count
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
        if needed > len(self._buffer):
            grown = bytearray(needed)
        elif (begin and self._filled) or (not self._filled and len(self._buffer) > ROOM_BYTES):
            # Frames that were handed out still look at the old buffer, so what is kept moves to a new one.
            grown = bytearray(max(ROOM_BYTES, needed))
        else:
            return
        grown[: self._filled] = self._view[begin:end]
        self._buffer = grown
        self._view = memoryview(grown)
