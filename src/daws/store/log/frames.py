"""Frames: bytes with a mark, a length, a checksum, and the offset up to which the file was safe before them.

A crash may leave the end of a file in any state: cut off, empty, or with later pages written and earlier ones not.
Bytes that were synced to disk are never touched by it. Each frame therefore says up to which offset its file was safe
when the frame was made. Damage behind that offset is the end of an interrupted write, and can be cut off. Damage before
it means that acknowledged data was lost.
"""

import zlib
from collections.abc import Iterator
from struct import Struct

MARK = b"\xdaws\xf0"
_HEAD = Struct("<4sIIQ")  # mark, checksum, length, safe up to
_CHECKED_FROM = 8
HEAD_BYTES = _HEAD.size

Bytes = bytes | memoryview


class BadFrame(Exception):
    """The bytes at `offset` are no complete frame."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"no whole frame at {offset}")
        self.offset = offset


def frame(payload: bytes, safe_bytes: int) -> bytes:
    head = _HEAD.pack(MARK, 0, len(payload), safe_bytes)
    check = zlib.crc32(payload, zlib.crc32(head[_CHECKED_FROM:]))
    return _HEAD.pack(MARK, check, len(payload), safe_bytes) + payload


def frames(data: memoryview, start: int) -> Iterator[tuple[int, memoryview]]:
    """Each payload and the offset behind it. Raises BadFrame at the first damaged frame."""
    offset = start
    while offset < len(data):
        payload = _payload(data, offset)
        if payload is None:
            raise BadFrame(offset)
        offset += HEAD_BYTES + len(payload)
        yield offset, payload


def is_unlucky_end(data: memoryview, offset: int) -> bool:
    """Whether nothing from here on was ever safe, as far as any frame behind it can tell."""
    whole = bytes(data)
    at = whole.find(MARK, offset + 1)
    while at >= 0:
        if _payload(data, at) is not None and _HEAD.unpack_from(data, at)[3] > offset:
            return False
        at = whole.find(MARK, at + 1)
    return True


def _payload(data: memoryview, offset: int) -> memoryview | None:
    begin = offset + HEAD_BYTES
    if begin > len(data):
        return None
    mark, check, length, _ = _HEAD.unpack_from(data, offset)
    payload = data[begin : begin + length]
    if mark != MARK or len(payload) < length:
        return None
    if zlib.crc32(payload, zlib.crc32(data[offset + _CHECKED_FROM : begin])) != check:
        return None
    return payload
