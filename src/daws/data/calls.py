"""The arguments of one call, with its large parts beside them as objects of their own.

Plain arguments are the pickle of `(args, kwargs)` (see `codec`). Where something in them is large, they are

    "s" | pickle of (parts of the pickle stream, buffers)

A part or a buffer that is small is there as it is. A large one is a *reference*: `(input, low, high)`, the bytes from
`low` to `high` of one of the task's inputs, an object with a single buffer (see `buffers`). Buffers are what numpy
arrays, arrow tables and data frames give to pickle instead of a copy; large parts of the stream are long `bytes` and
texts.

Small buffers arrive as `bytearray`s, so that arrays are as writable in the task as they were. Those of large objects
are mapped by all tasks that read them, and read-only.
"""

from collections.abc import Callable, Iterator, Sequence
from io import RawIOBase
from itertools import groupby
from pickle import Unpickler
from pickle import dumps as pickle_dumps
from pickle import loads as pickle_loads
from typing import Any

Buffer = bytes | bytearray | memoryview
Reference = tuple[int, int, int]
"""The number of an input, and where in it the part is. With a fourth field it is a copy, read-only or not."""
Share = Callable[[Buffer], Reference | bytearray]
"""A function that returns the place of a large part, or the part itself if it has to go with the call."""

SHARED = ord("s")
PARKED = ord("p")
"""The mark before the number of an input that holds the arguments."""
WRITABLE = ord("w")
"""The mark before arguments of a task that may change its inputs: large ones are private copies (on write)."""
LARGE_BYTES_MIN = 256 * 1024
"""Anything smaller travels with its task: to write, map and drop an object costs as much as to copy that many bytes
through two sockets. It must be above the longest frame of a pickle stream, 192 kB (see `envelope.GAP_BYTES_MIN`)."""


def dump_parts(stream: Sequence[Buffer], buffers: Sequence[memoryview], share: Share) -> bytes | None:
    """Arguments whose large parts `share` has taken; None if nothing was large."""
    parts: list[Any] = []
    small: list[Buffer] = []
    for part in stream:
        if len(part) < LARGE_BYTES_MIN:
            small.append(part)
            continue
        parts += _joined(small, share)
        parts.append(share(part))
        small = []
    parts += _joined(small, share)
    given = [share(one) if one.nbytes >= LARGE_BYTES_MIN else one for one in buffers]
    _give_small(given, share)
    if not any(type(one) is tuple for one in (*parts, *given)):
        return None
    return b"s" + pickle_dumps(([*_merged(parts)], given), 5)


def _merged(parts: list[Any]) -> Iterator[Any]:
    """The parts, with neighbours that are included as they are joined into one."""
    for is_reference, some in groupby(parts, lambda part: type(part) is tuple):
        found = [*some]
        yield from found if is_reference else [b"".join(found)]


def _joined(small: list[Buffer], share: Share) -> list[Any]:
    if not small:
        return []
    whole = b"".join(small)
    return [share(whole) if len(whole) >= LARGE_BYTES_MIN else whole]


def _give_small(given: list[Any], share: Share) -> None:
    """Let each small buffer in here go with the call. If there are many, such as the rows of a table, all of them
    become one object, of which a worker copies each: small arrays belong to the task."""
    small = [at for at, one in enumerate(given) if isinstance(one, memoryview)]
    block: Any = None
    if sum([given[at].nbytes for at in small]) >= LARGE_BYTES_MIN:
        block = share(b"".join([given[at] for at in small]))
    if type(block) is not tuple:
        for at in small:
            given[at] = _own(given[at], given[at].readonly)
        return
    number, low, _ = block
    for at in small:
        one = given[at]
        given[at] = (number, low, low + one.nbytes, one.readonly)
        low += one.nbytes


def _own(buffer: memoryview, readonly: bool) -> bytes | bytearray:
    return bytes(buffer) if readonly else bytearray(buffer)


def load_parts(arguments: Buffer, value: Callable[[int], Any]) -> Any:
    """The arguments that `dump_parts` was given. `value` returns the value of an input: the buffer of an object."""
    parts, buffers = pickle_loads(memoryview(arguments)[1:])
    inputs: dict[int, memoryview] = {}

    def resolved(one: Any) -> Any:
        if type(one) is not tuple:
            return one
        number, low, high, *own = one
        if number not in inputs:
            inputs[number] = memoryview(value(number))
        part = inputs[number][low:high]
        return _own(part, own[0]) if own else part

    given = [resolved(one) for one in buffers]
    if len(parts) == 1:
        return pickle_loads(resolved(parts[0]), buffers=given)
    return Unpickler(_PartsStream(resolved(one) for one in parts), buffers=given).load()


class _PartsStream(RawIOBase):
    """A pickle stream in parts, as a file."""

    def __init__(self, parts: Iterator[Buffer]) -> None:
        self._parts = parts
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        """Fill all of `room`, unless the stream ends before."""
        room = memoryview(room).cast("B")
        filled = 0
        while filled < len(room):
            if not self._rest:
                part = next(self._parts, None)
                if part is None:
                    break
                self._rest = memoryview(part).cast("B")
            taken = self._rest[: len(room) - filled]
            room[filled : filled + len(taken)] = taken
            self._rest = self._rest[len(taken) :]
            filled += len(taken)
        return filled
