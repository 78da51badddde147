"""A task that does what a recorded one did, as far as others can see: reads, takes its time, writes.

Runs in workers, so it imports nothing that takes time.
"""

from collections.abc import Sequence
from pickle import PickleBuffer
from time import monotonic_ns, sleep
from zlib import adler32

SMALL_BYTES = 2048
"""Objects of this size travel as they are; a buffer beside the pickle would cost more than it saves."""

Content = bytes | memoryview | PickleBuffer


class Emulated:
    """A function for tasks of one kind, because workers and schedulers tell tasks apart by their function.

    It reads each byte of its inputs, waits until `length_ns` have passed since it began, and makes new objects of the
    given sizes. `spin` keeps the processor busy meanwhile.
    """

    __slots__ = ("__name__", "spin")

    def __init__(self, kind: str, spin: bool = False) -> None:
        self.__name__ = kind
        self.spin = spin

    def __call__(self, inputs: Sequence[Content | None], length_ns: int, sizes: Sequence[int]) -> object:
        until_ns = monotonic_ns() + length_ns
        for content in inputs:
            if content:
                adler32(content)
        if self.spin:
            while monotonic_ns() < until_ns:
                pass
        elif (left_ns := until_ns - monotonic_ns()) > 0:
            sleep(left_ns / 1e9)
        if len(sizes) > 1:
            return [content_of(size) for size in sizes]
        return content_of(sizes[0]) if sizes else None

    def __reduce__(self) -> tuple[type["Emulated"], tuple[str, bool]]:
        return Emulated, (self.__name__, self.spin)


def content_of(size_bytes: int) -> Content:
    """Make an object of a size. Large ones are read by others where they lie instead of being copied."""
    return bytes(size_bytes) if size_bytes <= SMALL_BYTES else PickleBuffer(bytes(size_bytes))
