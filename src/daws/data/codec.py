"""Values to bytes and back: pickle protocol 5, with large buffers beside the stream instead of inside it.

A value without buffers is its plain pickle. One with buffers (numpy arrays, arrow tables, anything that offers
`PickleBuffer`s) is one *block*:

    "daws"  count u32  stream_size u64  size u64 × count | pickle stream | pad | buffer | pad | buffer …

Each buffer begins at a multiple of 64 bytes, so `loads` of a mapped file gives arrays that point into the file. They
are as writable as the memory they point into: not at all in a mapped file or in `bytes`. A plain pickle begins with
0x80, a block with "d": one byte tells them apart. In the file of an object an envelope stands before either (see
`envelope`), which is checked before anything is unpickled.

Plain pickle comes first because it is fast. cloudpickle follows when pickle fails (lambdas, local functions) or when
the stream names `__main__`, which workers never import; a string that merely contains that word takes the slow way too,
which is harmless. Modules given to `cloudpickle.register_pickle_by_value` are respected for functions only (see
`functions`).
"""

import os
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pickle import PickleBuffer, Pickler
from pickle import dumps as pickle_dumps
from pickle import loads as pickle_loads
from struct import Struct
from struct import error as StructError
from typing import Any

from daws.data.envelope import ALIGN_BYTES, GAP_BYTES_MIN, envelope, opened, pieces, stream_parts
from daws.data.mapping import map_file
from daws.model.errors import DamagedObjectError, UnpicklableError

Buffer = bytes | bytearray | memoryview

MAGIC = b"daws"
PARTS_PER_CALL = 1024  # IOV_MAX
READ_BYTES_MAX = 32 * 1024
"""Files up to this size are read; mapping them would cost more than the copy."""

_HEAD = Struct("=4sIQ")
_FIRST = MAGIC[0]
_MAIN = b"__main__"
_UNDERSCORE = _MAIN[0]
_LONG = (bytes, bytearray, str)
_PADS = tuple(bytes(size) for size in range(ALIGN_BYTES))


def dumps(value: object, what: str = "the value") -> bytes:
    """`value` as bytes. `what` names it in the error, should it be unpicklable: "argument 2", "the result"."""
    buffers: list[PickleBuffer] = []
    try:
        stream = pickle_dumps(value, 5, buffer_callback=buffers.append)
    except MemoryError:
        raise
    except Exception:
        return pack_by_value(value, what).to_bytes()
    if _UNDERSCORE in stream and stream.find(_MAIN) >= 0:  # the first test is five times faster
        return pack_by_value(value, what).to_bytes()
    if buffers:
        return Packed([stream], buffers).to_bytes()
    return stream


def dumps_call(args: tuple[object, ...], kwargs: dict[str, object]) -> bytes:
    """The arguments of one call, as `(args, kwargs)`. The error names the argument that cannot be pickled."""
    try:
        return dumps((args, kwargs), "the arguments")
    except UnpicklableError:
        for position, value in enumerate(args):
            dumps(value, f"argument {position + 1}")
        for name, value in kwargs.items():
            dumps(value, f"argument {name!r}")
        raise


def loads(buffer: Buffer, copy: bool = False) -> Any:
    """The value in `buffer`. Its arrays point into the buffer and keep it alive; with `copy` they have their own."""
    try:
        if buffer[0] != _FIRST:
            return pickle_loads(buffer)
    except IndexError:
        if not len(buffer):
            raise DamagedObjectError("an object of 0 bytes has no value in it; it was cut off") from None
        raise  # from the value's own code
    return _loads_block(memoryview(buffer).cast("B"), copy)


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
        """How many of the parts say how the value is put together; the others are its buffers."""
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
    """A file for picklers that keeps what is written, large `bytes` of the value by reference."""

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
    if type(value) in _LONG and len(value) > inline_bytes_max:  # type: ignore[arg-type]
        return pack(value, what)  # pickling it in memory would be a copy
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
    return packed.to_bytes() if packed.size_bytes <= inline_bytes_max else packed


def pack_by_value(value: object, what: str = "the value") -> Packed:
    """As `pack`, with the code of `__main__` and of local functions and classes inside."""
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
    """cloudpickle's pickler, imported when it is first needed; memoryviews come back as what they were, and classes
    with slots have slots again (else what is made of them there cannot be loaded here, where they have no dict)."""
    global _pickler
    if _pickler is None:
        import cloudpickle

        class ByValue(cloudpickle.Pickler):  # type: ignore[misc, unused-ignore]
            dispatch_table = cloudpickle.Pickler.dispatch_table.new_child({memoryview: _reduce_memoryview})

            def reducer_override(self, value: Any) -> Any:
                reduced = super().reducer_override(value)
                if isinstance(value, type) and type(reduced) is tuple and "__slots__" in value.__dict__:
                    return _with_slots(value, reduced)
                return reduced

        _pickler = ByValue
    return _pickler


def _with_slots(kind: type, reduced: tuple[Any, ...]) -> tuple[Any, ...]:
    make, args, *rest = reduced
    if make.__name__ != "_make_skeleton_class":  # an enum
        return reduced
    names = kind.__dict__["__slots__"]
    namespace = {**args[3], "__slots__": names if isinstance(names, str) else tuple(names)}
    return make, (*args[:3], namespace, *args[4:]), *rest


def _reduce_memoryview(view: memoryview) -> tuple[Callable[..., Any], tuple[object, ...]]:
    flat = view if view.c_contiguous else memoryview(view.tobytes())
    if len(view.format.lstrip("@")) > 1 or not view.nbytes:  # what memoryview.cast cannot make
        return _memoryview, (PickleBuffer(flat), "B", (view.nbytes,))
    return _memoryview, (PickleBuffer(flat), view.format, view.shape)


def _memoryview(buffer: Buffer, format: Any, shape: tuple[int, ...]) -> Any:
    flat = memoryview(buffer).cast("B")
    return flat.cast(format, shape) if flat.nbytes else flat


def load_file(path: str | os.PathLike[str], object_id: int | None = None, copy: bool = False) -> Any:
    """The value in the file of an object. Its arrays are read-only, point into the mapped file and keep it mapped while
    they live. A DamagedObjectError if the file is not as it was written (see `envelope`), or is another object's."""
    return loads(open_file(path, object_id), copy)


def open_file(path: str | os.PathLike[str], object_id: int | None = None) -> memoryview:
    """What `to_bytes` gave of the value in such a file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        view = memoryview(os.read(fd, size)) if size <= READ_BYTES_MAX else map_file(fd, size)
    finally:
        os.close(fd)
    return opened(view, object_id)
