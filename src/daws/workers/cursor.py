"""The position of a worker, in a page of memory that it shares with the pool.

A worker may die at any instant, with the reports of successful runs still unsent. The page tells the pool which run
began last, so that no other run is blamed, and when, so that time limits need no messages. A file holds it because the
worker is no child of the pool's process.
"""

import mmap
import os

NO_RUN = -1
_BYTES = 48


class Cursor:
    """The shared fields of a worker:

    - `fields[0]` is the run that began last (NO_RUN: none yet);
    - `fields[1]` is when it began (monotonic clock, ns);
    - `fields[2]` is the process group of the command that it runs (0: none, STARTING: not known yet);
    - `fields[3]` and `fields[4]` are how far the files of its standard output and error were reported;
    - `fields[5]` is 1 while the output is not to be shown.

    A run that has ended stays here until the next one begins: if its worker dies before it could report it, that run is
    the one that may have killed it.
    """

    __slots__ = ("_map", "fields")

    def __init__(self, path: str, create: bool = False) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if create else 0), 0o600)
        try:
            if create:
                os.ftruncate(fd, _BYTES)
            self._map = mmap.mmap(fd, _BYTES)
        except BaseException:
            if create:
                os.unlink(path)
            raise
        finally:
            os.close(fd)
        self.fields = memoryview(self._map).cast("q")
        if create:
            self.fields[0] = NO_RUN

    def close(self) -> None:
        self.fields.release()
        self._map.close()
