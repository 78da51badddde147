"""Values to bytes and back: pickle protocol 5, with large buffers beside the stream instead of inside it.

A value without buffers is its plain pickle. One with buffers (numpy arrays, arrow tables, anything that offers
`PickleBuffer`s) is one *block*:

    "daws"  count u32  stream_size u64  size u64 × count | pickle stream | pad | buffer | pad | buffer …

Each buffer begins at a multiple of 64 bytes, so `loads` of a mapped file gives arrays that point into the file. They
are as writable as the memory they point into: not at all in a file that is mapped for reading, but in one that is
mapped privately. Arrays loaded from `bytes` are copies, which are writable.

Numbers, None and short texts are written by `marshal` instead, which takes a third of the time. Its version 2 is used,
which every Python reads and which gives the same bytes each time. The first byte tells the forms apart: 0x80 for a
pickle, "d" for a block, a few other bytes for `marshal`. Arguments of calls may begin with other letters (see `calls`).
The file of an object has an envelope before either form (see `envelope`), which is checked before anything is
unpickled.

Plain pickle comes first because it is fast. cloudpickle follows when pickle fails (lambdas, local functions) or when
the stream names `__main__`, which workers never import. A string that merely contains that word takes the slow way too,
which is harmless. Modules given to `cloudpickle.register_pickle_by_value` are respected for functions only (see
`functions`).
"""

import os
from array import array
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from marshal import dumps as marshal_dumps
from marshal import loads as marshal_loads
from pickle import PickleBuffer, Pickler
from pickle import dumps as pickle_dumps
from pickle import loads as pickle_loads
from struct import Struct
from struct import error as StructError
from typing import Any

from daws.data.calls import LARGE_BYTES_MIN, Share, dump_parts
from daws.data.envelope import ALIGN_BYTES, GAP_BYTES_MIN, envelope, opened, pieces, stream_parts
from daws.data.mapping import map_file
from daws.model.errors import DamagedObjectError, UnpicklableError

Buffer = bytes | bytearray | memoryview

MAGIC = b"daws"
PARTS_PER_CALL = 1024  # IOV_MAX
READ_BYTES_MAX = 32 * 1024
"""Files up to this size are read; mapping them would cost more than the copy."""

PLAIN_CALL = 0x28
"""The first byte of arguments that `dumps_plain` wrote."""
_PLAIN = frozenset((int, float, bool, str, bytes, type(None)))
_MARSHALLED_MAX = 512  # characters or bytes
_MARSHAL_VERSION = 2
_MARSHALLED = frozenset(marshal_dumps(one, 2)[0] for one in ((), 1, 1 << 40, 1.5, True, False, "", b"", None))

_HEAD = Struct("=4sIQ")
_FIRST = MAGIC[0]
_MAIN = b"__main__"
_READ_ONLY = b"\x97\x98"  # the next buffer, as read-only
_UNDERSCORE = _MAIN[0]
_LONG = (bytes, bytearray, str)
_PADS = tuple(bytes(size) for size in range(ALIGN_BYTES))


def dumps(value: object, what: str = "the value", share: Share | None = None) -> bytes:
    """`value` as bytes. `what` names it in the error, should it be unpicklable: "argument 2", "the result"."""
    buffers: list[PickleBuffer] = []
    try:
        stream = pickle_dumps(value, 5, buffer_callback=buffers.append)
    except MemoryError:
        raise
    except Exception:
        return shared_bytes(pack_by_value(value, what), share)
    if _UNDERSCORE in stream and stream.find(_MAIN) >= 0:  # the first test is five times faster
        return shared_bytes(pack_by_value(value, what), share)
    if buffers or (len(stream) >= LARGE_BYTES_MIN and share is not None):
        return shared_bytes(Packed(stream_parts(stream), buffers), share)
    return stream


def shared_bytes(packed: "Packed", share: Share | None) -> bytes:
    """A packed value as bytes, without what `share` takes."""
    if share is not None and packed.size_bytes >= LARGE_BYTES_MIN:
        is_block = len(packed.parts) > packed.covered  # its first part is the block's head
        buffers = [one for one in packed.parts[packed.covered :] if isinstance(one, memoryview)]
        made = dump_parts(packed.parts[is_block : packed.covered], buffers, share)
        if made is not None:
            return made
    return packed.to_bytes()


def dumps_call(args: tuple[object, ...], kwargs: dict[str, object], share: Share | None = None) -> bytes:
    """The arguments of one call, as `(args, kwargs)`. The error names the argument that cannot be pickled. Large parts
    go to `share`, if that is given (see `calls`)."""
    try:
        return dumps((args, kwargs), "the arguments", share)
    except UnpicklableError:
        for position, value in enumerate(args):
            dumps(value, f"argument {position + 1}")
        for name, value in kwargs.items():
            dumps(value, f"argument {name!r}")
        raise


def dumps_plain(args: tuple[object, ...]) -> bytes:
    """The arguments of a call that are all numbers, None or short texts; nothing if one is anything else.

    `loads` gives the tuple of arguments back, and not `(args, kwargs)`: the first byte is `PLAIN_CALL`.
    """
    for one in args:
        kind = type(one)
        if kind not in _PLAIN or (kind in _LONG and len(one) > _MARSHALLED_MAX):  # type: ignore[arg-type]
            return b""
    return marshal_dumps(args, _MARSHAL_VERSION)  # type: ignore[arg-type]


def loads_plain(buffer: bytes) -> Any:
    """The number or text in `buffer`; None if it has anything else in it, or None. This is the fast way to load
    many."""
    return marshal_loads(buffer) if buffer[0] in _MARSHALLED else None


def loads(buffer: Buffer, copy: bool = False) -> Any:
    """The value in `buffer`. Its arrays point into the buffer and keep it alive. With `copy`, or if the buffer is
    `bytes`, which must not change, they are copies."""
    try:
        first = buffer[0]
    except IndexError:
        raise DamagedObjectError("an object of 0 bytes has no value in it; it was cut off") from None
    if first in _MARSHALLED:
        return marshal_loads(buffer)
    if first != _FIRST:
        return pickle_loads(buffer)
    return _loads_block(memoryview(buffer).cast("B"), copy or type(buffer) is bytes)


def _loads_block(view: memoryview, copy: bool) -> Any:
    stream, bounds = _layout(view)
    buffers: list[Buffer] = [bytearray(view[low:high]) if copy else view[low:high] for low, high in bounds]
    return pickle_loads(stream, buffers=buffers)


def _layout(view: memoryview) -> tuple[memoryview, list[tuple[int, int]]]:
    """The stream of a block, and where its buffers begin and end."""
    size = len(view)
    try:
        magic, count, stream_size = _HEAD.unpack_from(view)
        start = _HEAD.size + 8 * count
        if magic != MAGIC or start > size:
            raise DamagedObjectError(f"an object of {size} bytes has no header of daws; it was cut off or overwritten")
        buffer_sizes = view[_HEAD.size : start].cast("Q")
    except StructError:
        raise DamagedObjectError(f"an object of {size} bytes ends within its header; it was cut off") from None
    end = start + stream_size
    stream = view[start:end]
    bounds: list[tuple[int, int]] = []
    for buffer_size in buffer_sizes:
        start = -(-end // ALIGN_BYTES) * ALIGN_BYTES
        end = start + buffer_size
        bounds.append((start, end))
    if end > size:
        raise DamagedObjectError(f"an object of {size} bytes should have {end}; it was cut off")
    return stream, bounds


class Packed:
    """A pickled value that is not yet copied: a list of parts that point into it. Write before the value changes."""

    __slots__ = ("covered", "parts", "size_bytes")
    is_raw = False  # a file that a command has made
    mode = 0o600  # the permission bits of its file

    def __init__(self, stream: Sequence[Buffer], buffers: list[PickleBuffer]) -> None:
        self.parts: list[Buffer]
        self.size_bytes: int
        self.covered = len(stream)
        """The number of parts that say how the value is put together; the rest are its buffers."""
        stream_size = sum(map(len, stream))
        if not buffers:
            self.parts, self.size_bytes = [*stream], stream_size
            return
        raws = [buffer.raw() for buffer in buffers]
        sizes = [raw.nbytes for raw in raws]
        head = _HEAD.pack(MAGIC, len(sizes), stream_size) + array("Q", sizes).tobytes()
        parts: list[Buffer] = [head, *stream]
        self.covered += 1
        end = len(head) + stream_size
        for raw, size in zip(raws, sizes, strict=True):
            if pad := -end % ALIGN_BYTES:
                parts.append(_PADS[pad])
            parts.append(raw)
            end += pad + size
        self.parts, self.size_bytes = parts, end

    def __repr__(self) -> str:
        return f"Packed({self.size_bytes} bytes in {len(self.parts)} parts)"

    @classmethod
    def of(cls, content: Buffer) -> "Packed":
        """A value that was packed before, as `to_bytes` gave it."""
        view = memoryview(content).cast("B")
        end = len(view)
        if end and view[0] == _FIRST:
            stream, bounds = _layout(view)
            end = _HEAD.size + 8 * len(bounds) + len(stream)
        covered = pieces(view[:end])
        packed = cls([*covered, view[end:]], [])
        packed.covered = len(covered)
        return packed

    def to_bytes(self) -> bytes:
        return b"".join(self.parts)

    def as_file(self, object_id: int) -> "Packed":
        """The same with what stands before it in the file of an object."""
        head = envelope(object_id, self.parts[: self.covered], self.size_bytes)
        return WholeFile([head, *self.parts], len(head) + self.size_bytes)

    def write_to(self, fd: int) -> int:
        """Write all of it at the file's position, from where it lies; returns `size_bytes`."""
        write_parts(fd, self.parts)
        return self.size_bytes


class WholeFile(Packed):
    """The file of an object, with its envelope if it has one."""

    __slots__ = ("is_raw", "mode")

    def __init__(self, parts: list[Buffer], size_bytes: int, is_raw: bool = False, mode: int = Packed.mode) -> None:
        self.covered = 0
        self.parts = parts
        self.size_bytes = size_bytes
        self.is_raw = is_raw
        self.mode = mode

    def as_file(self, object_id: int) -> Packed:
        return self


def write_parts(fd: int, parts: Iterable[Buffer]) -> None:
    """`os.writev` until everything is written, however many parts there are and however few bytes a call takes."""
    rest = iter(parts)
    batch: list[Buffer] = list(islice(rest, PARTS_PER_CALL))
    while batch:
        written = os.writev(fd, batch)
        done = 0
        for part in batch:
            if written < len(part):
                break
            written -= len(part)
            done += 1
        del batch[:done]
        if written:
            batch[0] = memoryview(batch[0])[written:]
        batch += islice(rest, PARTS_PER_CALL - len(batch))


class _Chunks(list[bytes | bytearray]):
    """A file for picklers that keeps the written parts, large `bytes` of the value by reference."""

    write = list.append


def pack(value: object, what: str = "the value") -> Packed:
    """`value` ready to be written without a copy in between; for values that are worth a file."""
    chunks = _Chunks()
    buffers: list[PickleBuffer] = []
    try:
        Pickler(chunks, 5, buffer_callback=buffers.append).dump(value)
    except MemoryError:
        raise
    except Exception:
        return pack_by_value(value, what)
    if any(chunk.find(_MAIN) >= 0 for chunk in chunks if len(chunk) < GAP_BYTES_MIN):
        return pack_by_value(value, what)
    return Packed(chunks, buffers)


def encode(value: object, inline_bytes_max: int, what: str = "the value") -> bytes | Packed:
    """`value` as bytes when they are at most that many, else packed for a file: each value is pickled once."""
    kind = type(value)
    if kind in _LONG and len(value) > _MARSHALLED_MAX:  # type: ignore[arg-type]
        if len(value) > inline_bytes_max:  # type: ignore[arg-type]
            return pack(value, what)  # pickling it in memory would be a copy
    elif kind in _PLAIN:
        made = marshal_dumps(value, _MARSHAL_VERSION)  # type: ignore[arg-type]
        if len(made) <= inline_bytes_max:
            return made
    buffers: list[PickleBuffer] = []
    try:
        stream = pickle_dumps(value, 5, buffer_callback=buffers.append)
    except MemoryError:
        raise
    except Exception:
        packed = pack_by_value(value, what)
    else:
        if _UNDERSCORE in stream and stream.find(_MAIN) >= 0:
            packed = pack_by_value(value, what)
        elif not buffers and len(stream) <= inline_bytes_max:
            return stream
        else:
            packed = Packed(stream_parts(stream), buffers)
    if len(packed.parts) > packed.covered:
        _forget_read_only(packed)
    return packed.to_bytes() if packed.size_bytes <= inline_bytes_max else packed


def _forget_read_only(packed: Packed) -> None:
    """Let buffers be as writable as the memory that they are loaded from.

    A task may return a part of a shared array, which is read-only there. The result is a value of its own.
    """
    stream = b"".join(packed.parts[1 : packed.covered])
    if _READ_ONLY not in stream or len(stream) > READ_BYTES_MAX:
        return
    from pickletools import genops  # dear, and seldom needed

    places = [at for opcode, _, at in genops(stream) if opcode.name == "READONLY_BUFFER" and at is not None]
    kept = [stream[low + 1 : high] for low, high in pairwise((-1, *places, len(stream)))]
    # As long as before, since its frames say so; nothing is read behind its end.
    packed.parts[1 : packed.covered] = [b"".join(kept) + bytes(len(places))]
    packed.covered = 2


def pack_by_value(value: object, what: str = "the value") -> Packed:
    """`value` packed with the code of `__main__` and of local functions and classes inside."""
    chunks = _Chunks()
    buffers: list[PickleBuffer] = []
    try:
        _by_value_pickler()(chunks, 5, buffer_callback=buffers.append).dump(value)
    except MemoryError:
        raise
    except Exception as error:
        from daws.data.culprit import complain  # dear, and mostly not needed

        raise complain(value, what, error, _is_picklable) from error
    return Packed(chunks, buffers)


def _is_picklable(value: object) -> bool:
    try:
        _by_value_pickler()(_Chunks(), 5, buffer_callback=lambda buffer: None).dump(value)
    except Exception:
        return False
    return True


_pickler: type[Any] | None = None


def _by_value_pickler() -> type[Any]:
    """The pickler for code that cannot be imported; cloudpickle is imported when it is first needed."""
    global _pickler
    if _pickler is None:
        from daws.data.by_value import ByValue

        _pickler = ByValue
    return _pickler


def load_file(path: str | os.PathLike[str], object_id: int | None = None, private: bool = False) -> Any:
    """The value in the file of an object. Its arrays point into the mapped file and keep it mapped while they live;
    they are read-only, unless the mapping is `private`. A DamagedObjectError if the file is not as it was written (see
    `envelope`), or is another object's."""
    return loads(open_file(path, object_id, private))


def load_private(path: str | os.PathLike[str], object_id: int | None = None) -> Any:
    """The value in a file, for its only reader: its arrays can be changed, and the file stays as it is."""
    return loads(open_file(path, object_id, private=True))


def open_file(path: str | os.PathLike[str], object_id: int | None = None, private: bool = False) -> memoryview:
    """The value in the file of an object, as `to_bytes` gave it. A small file is read, so the bytes belong to the
    reader."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        view = memoryview(_read(fd, size)) if size <= READ_BYTES_MAX else map_file(fd, size, private)
    finally:
        os.close(fd)
    return opened(view, object_id)


def _read(fd: int, size: int) -> bytearray:
    content = bytearray(size)
    count = os.readv(fd, [content]) if size else 0
    return content if count == size else content[:count]
