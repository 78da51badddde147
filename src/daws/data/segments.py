"""Writing objects as files, in memory that is used again.

The kernel has to find and clear fresh memory, page by page; rewriting a file that has its pages is several times
faster. Files of dropped objects are therefore kept in a folder of free segments, under their size. The next writer (the
node, or any of its workers) claims one of similar size by renaming it, without asking.

A free segment may still be mapped by a process that read the object (a user holds an array), and must not change under
it. The kernel knows: it grants a write lease only on files that no other process has open *or mapped*. `is_unused` asks
for one and gives it back, in 30 µs. Whether that works is tried once per process; if it does not, nothing is reused.

A file is written under a name of its own and renamed when it is complete, so no reader sees half an object. All writing
is by system calls, never through a mapping: running out of room is then an error, and not a SIGBUS.
"""

import errno
import fcntl
import os
import signal
import stat
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path

from daws.data.codec import Packed
from daws.data.limits import free_bytes
from daws.data.mapping import map_file
from daws.model.errors import NoSpaceError

REUSE_BYTES_MIN = 256 * 1024
"""Below this, finding a free segment takes as long as fresh memory."""
FREE_COUNT_MAX = 64
ONCE_MODE = 0o400
"""The permission bits of files that are never written again (see `pages`)."""
TRIES_MAX = 3
NO_ROOM = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM])

_numbers = count()


class Segments:
    """Where the objects of one node are written; the node and each of its workers has one for the same folders."""

    def __init__(self, memory: str | Path | None, scratch: str | Path) -> None:
        """Folders of the node, of this user alone; `memory` None if there is no memory file system."""
        self.home = str(memory or scratch)
        self.scratch = str(scratch)
        self.has_memory = self.home != self.scratch
        self.free = f"{self.home}/free"
        self.folders_new = tuple(dict.fromkeys((f"{self.home}/new", f"{self.scratch}/new")))
        for folder in (*self.folders_new, self.free):
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)

    def write(self, packed: Packed, object_id: int, in_scratch: bool = False) -> str:
        """Write the file of an object under a new name, in memory if there is room, else on disk; returns its path."""
        packed = packed.as_file(object_id)
        for folder in self.folders_new[in_scratch and self.has_memory :]:
            try:
                return self._write(packed, folder)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                failure = error
        room = "; ".join(f"{free_bytes(folder):,} bytes free in {folder}" for folder in self.folders_new)
        message = (
            f"no room for object {object_id} of {packed.size_bytes:,} bytes ({failure.strerror}; {room}); "
            f"make room, set TMPDIR to a larger disk, or keep fewer results"
        )
        raise NoSpaceError(message, object_id, packed.size_bytes) from failure

    def _write(self, packed: Packed, folder: str) -> str:
        path = f"{folder}/{os.getpid()}-{next(_numbers)}"
        size = packed.size_bytes
        fd = self._claim(size, path) if folder == self.folders_new[0] else -1
        old_size = 0
        if fd < 0:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        else:
            old_size = os.fstat(fd).st_size
        try:
            packed.write_to(fd)
            if old_size > size:
                os.ftruncate(fd, size)
            if packed.mode != Packed.mode:
                os.fchmod(fd, packed.mode)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        return path

    def _claim(self, size: int, path: str) -> int:
        """An unused segment of similar size, renamed to `path` and open; -1 if there is none."""
        if not self.has_memory or size < REUSE_BYTES_MIN:
            return -1
        names = os.listdir(self.free)
        similar = [name for name in names if size <= 2 * size_of(name) and size_of(name) <= 2 * size]
        if not similar or not can_tell_unused(self.home):
            return -1
        similar.sort(key=lambda name: abs(size_of(name) - size))
        for name in similar[:TRIES_MAX]:
            with suppress(FileNotFoundError):  # another process was faster
                os.rename(f"{self.free}/{name}", path)
                fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
                if is_unused(fd):
                    return fd
                os.close(fd)
                os.rename(path, f"{self.free}/{name}")
        return -1

    def recycle(self, path: str, free_bytes_max: int) -> None:
        """The object under `path` is not needed any more: keep its memory for the next one, or let go of it."""
        status = os.lstat(path)
        size = status.st_size
        is_once = stat.S_IMODE(status.st_mode) == ONCE_MODE
        if self.has_memory and size >= REUSE_BYTES_MIN and status.st_nlink == 1 and not is_once:
            names = os.listdir(self.free)
            if len(names) < FREE_COUNT_MAX and sum(map(size_of, names)) + size <= free_bytes_max:
                if stat.S_IMODE(status.st_mode) != Packed.mode:  # a command has made it, perhaps not to be written
                    os.chmod(path, Packed.mode)
                os.rename(path, f"{self.free}/{size}-{os.getpid()}-{next(_numbers)}")
                return
        os.unlink(path)

    def empty(self) -> int:
        """Give all free segments back to the system; returns their bytes."""
        freed = 0
        for name in os.listdir(self.free):
            with suppress(FileNotFoundError):
                os.unlink(f"{self.free}/{name}")
                freed += size_of(name)
        return freed


def size_of(name: str) -> int:
    """The size in the name of a free segment."""
    return int(name.partition("-")[0])


def is_unused(fd: int) -> bool:
    """Whether no other process has this file of ours open or mapped. Only for files whose name no other process
    knows."""
    try:
        # If the file is opened just now, the lease is "broken" by a signal, which is ignored unless handled.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True


@cache
def can_tell_unused(folder: str) -> bool:
    """Try out, on a file in `folder`, whether `is_unused` sees mappings of files that are closed."""
    path = f"{folder}/lease-{os.getpid()}-{next(_numbers)}"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, b"x")
            reader = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                view = map_file(reader, 1)
            finally:
                os.close(reader)
            sees_mapped = not is_unused(fd)
            del view
            return sees_mapped and is_unused(fd)
        finally:
            os.close(fd)
            os.unlink(path)
    except OSError:
        return False
