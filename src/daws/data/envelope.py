"""The envelope before a value in its file, by which a damaged file is noticed before anything in it is unpickled.

    magic 8  check u32  gaps u32  object u64  size u64  covered u64 | (low u64, high u64) × gaps | pad | value

`size` is the length of the file, so a file that was cut off, emptied or appended to is noticed. `object` is the id of
the object, so another object's file in its place is noticed. `check` is a CRC-32 of everything behind it up to the pad,
and of the first `covered` bytes of the value without the gaps. Those bytes say how the value is put together. Gaps are
the user's own long bytes and texts inside the pickle stream. They and the buffers behind the stream are not checked, so
that arrays of any size are written and mapped at no cost. The value begins at a multiple of 64 bytes, as its buffers
do.

Files that commands have made are objects too. They have no envelope, because they are never unpickled.
"""

from array import array
from collections.abc import Sequence
from struct import Struct
from zlib import crc32

from daws.model.errors import DamagedObjectError

Buffer = bytes | bytearray | memoryview

MAGIC = b"\x93DAWS\r\n\x1a"
ALIGN_BYTES = 64
GAP_BYTES_MIN = 192 * 1024
"""Pickle hands anything of 64 kB or more to the file as it is. A part longer than this limit is the user's own
bytes."""
PIECE_BYTES = 128 * 1024
_FIRST = Struct("=8sI")
_REST = Struct("=IQQQ")
_HEAD_BYTES = _FIRST.size + _REST.size
_NO_GAPS = array("Q")
_FRAME = 0x95
_LONG = {0x42: 4, 0x8E: 8, 0x58: 4, 0x8D: 8, 0x96: 8}
"""Opcodes of bytes, texts and bytearrays that stand outside of frames, and the bytes of their lengths."""
_SHORT = b"\x94(]})N"
"""Opcodes of one byte that mostly stand between two of these."""


def envelope(object_id: int, covered: Sequence[Buffer], size_bytes: int) -> bytes:
    """The envelope of a value of this size that begins with these parts."""
    end = sum(map(len, covered))
    gaps = _NO_GAPS
    if end >= GAP_BYTES_MIN:
        gaps, at = array("Q"), 0
        for part in covered:
            if len(part) >= GAP_BYTES_MIN:
                gaps.extend((at, at + len(part)))
            at += len(part)
    pad = -(_HEAD_BYTES + 8 * len(gaps)) % ALIGN_BYTES
    head_bytes = _HEAD_BYTES + 8 * len(gaps) + pad
    rest = _REST.pack(len(gaps) // 2, object_id, head_bytes + size_bytes, end) + gaps.tobytes()
    check = crc32(rest)
    for part in covered:
        if len(part) < GAP_BYTES_MIN:
            check = crc32(part, check)
    return _FIRST.pack(MAGIC, check) + rest + bytes(pad)


def sealed(object_id: int, value: bytes) -> bytes:
    """The content of the file of a small value."""
    return envelope(object_id, pieces(memoryview(value)), len(value)) + value


def opened(view: memoryview, object_id: int | None = None) -> memoryview:
    """The value in a whole file, which is as it was written; a DamagedObjectError if it is not."""
    size = len(view)
    if size < _HEAD_BYTES:
        raise DamagedObjectError(f"an object of {size} bytes ends within its header; it was cut off")
    magic, check = _FIRST.unpack_from(view)
    gaps, written_as, written_size, covered = _REST.unpack_from(view, _FIRST.size)
    head_end = _HEAD_BYTES + 16 * gaps
    start = -(-head_end // ALIGN_BYTES) * ALIGN_BYTES
    if magic != MAGIC or start > size or gaps * GAP_BYTES_MIN > size:
        raise DamagedObjectError(f"an object of {size} bytes has no header of daws; it was cut off or overwritten")
    found = crc32(view[_FIRST.size : head_end])
    at = start
    if gaps:
        bounds = view[_HEAD_BYTES:head_end].cast("Q")
        for low, high in zip(bounds[::2], bounds[1::2], strict=True):
            found = crc32(view[at : start + low], found)
            at = start + high
    found = crc32(view[at : start + covered], found)
    if size != written_size:
        how = "cut off" if size < written_size else "overwritten"
        raise DamagedObjectError(f"an object of {size} bytes should have {written_size}; it was {how}")
    if found != check:
        raise DamagedObjectError(f"an object of {size} bytes is damaged: its checksum is wrong")
    if object_id is not None and object_id != written_as:
        raise DamagedObjectError(f"object {written_as} lies where object {object_id} should be; it was overwritten")
    return view[start:]


def stream_parts(stream: bytes) -> list[Buffer]:
    """A pickle stream, with long bytes and texts as parts of their own. Pickle writes them between its frames."""
    if len(stream) < GAP_BYTES_MIN:
        return [stream]
    view = memoryview(stream)
    parts: list[Buffer] = []
    begin, at = 0, 2  # behind the protocol's number
    while at < len(view):
        opcode = view[at]
        if opcode in _SHORT:
            at += 1
            continue
        width = 8 if opcode == _FRAME else _LONG.get(opcode, 0)
        if not width:
            break  # too short for a frame; the rest is covered, and that is all
        at += 1 + width
        size = int.from_bytes(view[at - width : at], "little")
        if opcode != _FRAME and size >= GAP_BYTES_MIN:
            parts += [*pieces(view[begin:at]), view[at : at + size]]
            begin = at + size
        at += size
    return parts + pieces(view[begin:])


def pieces(view: memoryview) -> list[Buffer]:
    """A long part in such short ones that none of them is taken for a gap."""
    return [view[low : low + PIECE_BYTES] for low in range(0, len(view), PIECE_BYTES)]
