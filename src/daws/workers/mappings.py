"""Large files that tasks of one worker read again and again stay mapped between them.

To map the pages of a large file takes as long as to read them, and 200 tasks with one large argument would pay for it
200 times. A file stays mapped from the second time that it is read. It is released when other files have taken its
place, when the worker has been idle for `IDLE_S`, or when a run that does not read it has lasted that long. An object
that was dropped must not stay in memory for longer.
"""

import os
from collections.abc import Callable
from time import monotonic_ns

KEPT_BYTES_MIN = 1 << 20
"""Smaller files are mapped, with all their pages, in less than a short task takes."""
FILES_MAX = 8
IDLE_S = 0.05

_File = tuple[int, int]


class Mappings:
    """The files that were read last, by object and inode: when that was, and their mapping unless they were read once.

    The thread that runs tasks reads; another one may let go at any time.
    """

    __slots__ = ("_seen", "is_holding")

    def __init__(self) -> None:
        self._seen: dict[_File, tuple[int, memoryview | None]] = {}
        self.is_holding = False

    def content(self, object_: int, path: str, open_file: Callable[[], memoryview]) -> memoryview:
        """The content of the file, mapped by `open_file` unless it is mapped already."""
        try:
            key = (object_, os.stat(path).st_ino)
        except OSError:
            return open_file()  # it raises the right error
        seen = self._seen
        known = seen.pop(key, None)
        found = None if known is None else known[1]
        if found is None:
            found = open_file()
        seen[key] = (monotonic_ns(), None if known is None else found)
        self.is_holding = self.is_holding or known is not None
        if len(seen) > FILES_MAX:
            del seen[next(iter(seen))]
        return found

    def let_go(self, before_ns: int | None = None) -> None:
        """Release all files, or those that were not read since `before_ns`."""
        kept = {} if before_ns is None else {key: one for key, one in [*self._seen.items()] if one[0] >= before_ns}
        self._seen = kept
        self.is_holding = bool(kept)
