"""What runs print: the standard streams of a worker lead into two files, which are emptied after each run that wrote.

Files, so that output of other programs is caught as well, nobody blocks when a task prints megabytes, and the pool can
read the last lines of a worker that is dead. Nothing is asked of the system for a short run that printed nothing.
"""

import errno
import io
import os
import sys
from _thread import allocate_lock
from contextlib import suppress
from typing import Any

from daws.workers.signs import Signs

KEPT_BYTES = 1 << 16
FILE_MAX_BYTES = 1 << 23
STREAMS = (1, 2)
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # <linux/falloc.h>


def path_of(folder: str, name: str, stream: int) -> str:
    return os.path.join(folder, f"{name}.{'out' if stream == 1 else 'err'}")


def last_output(folder: str, name: str, max_bytes: int = KEPT_BYTES) -> bytes:
    """The end of what a worker wrote and did not report: error output behind standard output."""
    found = b""
    for stream in STREAMS:
        try:
            fd = os.open(path_of(folder, name, stream), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            found += _tail(fd, os.lseek(fd, 0, os.SEEK_END), max_bytes)
        finally:
            os.close(fd)
    return found[-max_bytes:]


def _tail(fd: int, size: int, max_bytes: int) -> bytes:
    return os.pread(fd, min(size, max_bytes), max(0, size - max_bytes))


def _said_shortened(size: int) -> bytes:
    """Whoever reads the end alone should know that there was more."""
    return f"[the first {size - KEPT_BYTES:,} bytes of output are left out]\n".encode() if size > KEPT_BYTES else b""


class _Raw(io.FileIO):
    """A standard stream that comes back when a task closes it."""

    def __init__(self, stream: int, private: int) -> None:
        super().__init__(stream, "w", closefd=False)
        self._private = private

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            os.dup2(self._private, self.fileno())
            return super().write(data)

    def close(self) -> None:
        """It stays: a task may have put a stream of its own around it, which closes it when it is forgotten."""


class _Stream(io.TextIOWrapper):
    """Text to a standard stream, a line at a time, that gives a sign when it is used and cannot be closed."""

    signs: Signs

    def write(self, text: str, /) -> int:
        self.signs.any = True
        return super().write(text)

    def close(self) -> None:
        self.flush()


class Output:
    """The standard streams of this process, from now on."""

    def __init__(self, folder: str, name: str, signs: Signs) -> None:
        self._files: list[tuple[int, int]] = []  # the stream's number, and a descriptor that nobody else knows
        self._text: list[_Stream] = []
        self._empty_up_to: dict[int, int] = {}
        self._emptying = allocate_lock()  # by one thread at a time
        for stream in STREAMS:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            fd = os.open(path_of(folder, name, stream), flags, 0o600)
            os.dup2(fd, stream)
            self._files.append((stream, fd))
            errors = "strict" if stream == 1 else "backslashreplace"
            raw: Any = _Raw(stream, fd)
            text = _Stream(raw, encoding="utf-8", errors=errors, line_buffering=True)
            text.signs = signs
            self._text.append(text)
        sys.stdout, sys.stderr = self._text
        sys.__stdout__, sys.__stderr__ = self._text  # type: ignore[misc]

    def take(self) -> list[tuple[int, bytes]]:
        """What was written since the last time, per stream: its end, noted if that is not all. Empties the files."""
        for text in self._text:
            with suppress(OSError):  # no room: the task that printed was told
                text.flush()
        found = []
        with self._emptying:
            for stream, fd in self._files:
                size = os.lseek(fd, 0, os.SEEK_END)
                if size:
                    found.append((stream, _said_shortened(size) + _tail(fd, size, KEPT_BYTES)))
                    os.ftruncate(fd, 0)
            self._empty_up_to.clear()
        return found

    def bound(self) -> None:
        """Give back the room of all but the end of files that have grown large; called while a run goes on."""
        with self._emptying:
            for stream, fd in self._files:
                size = os.lseek(fd, 0, os.SEEK_END)
                if size - self._empty_up_to.get(stream, 0) > FILE_MAX_BYTES:
                    self._empty_up_to[stream] = size - KEPT_BYTES
                    _punch(fd, size - KEPT_BYTES)


class Streams:
    """What `sys.stdout` and `sys.stderr` are for every run, whatever the one before has put there."""

    __slots__ = ("err", "out")

    def __init__(self) -> None:
        self.out, self.err = sys.stdout, sys.stderr

    def give_back(self) -> None:
        """After a run: as it was before, with what is still inside of a stream that the run has put there."""
        for left in (sys.stdout, sys.stderr):
            if left is not self.out and left is not self.err:
                with suppress(Exception):  # it is the user's: closed, or anything else
                    left.flush()
        sys.stdout, sys.stderr = self.out, self.err


def _punch(fd: int, count: int) -> None:
    """Make a hole of the first bytes: a file that is cut and written anew would lose what comes in between."""
    import ctypes  # only where somebody prints megabytes

    # Where the file system knows no holes the file stays long, until the run has ended.
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate(fd, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(count))
