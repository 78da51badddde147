"""The output of runs: the standard streams of a worker lead into two files, which are read while runs go on.

Files have three advantages: they catch output of other programs as well, a task that prints megabytes is not blocked,
and the pool can read the last lines of a dead worker. A short run that printed nothing costs no system call.

Complete lines are reported every now and then, the rest of a line when its run has ended. Mostly one run prints at a
time. Several runs may go on in one process if they have waited for tasks. Then the *owner* of the files' content is the
thread that wrote last; when another thread writes, that content is taken out first. Output of programs that a run has
started belongs to the owner, or to the run that takes orders.
"""

import errno
import io
import os
import sys
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic_ns
from typing import Any

from daws.workers.signs import Signs

KEPT_BYTES = 1 << 16
SHOWN_PER_S = 1 << 16
"""The number of bytes per second that are reported of a run that goes on; if it prints faster, only the end is
reported."""
FILE_MAX_BYTES = 1 << 23
HELD = 5  # among the fields of the cursor
STREAMS = (1, 2)
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # <linux/falloc.h>


def path_of(folder: str, name: str, stream: int) -> str:
    return os.path.join(folder, f"{name}.{'out' if stream == 1 else 'err'}")


def last_output(folder: str, name: str, max_bytes: int = KEPT_BYTES) -> bytes:
    """The end of a worker's output in its last run: error output behind standard output."""
    found = b""
    for stream in STREAMS:
        found += _read(folder, name, stream, 0, max_bytes)[1]
    return found[-max_bytes:]


def unreported(folder: str, name: str, taken: Sequence[int]) -> list[tuple[int, bytes]]:
    """The unreported output of a dead worker, by stream. `taken` is how far its output was reported."""
    found = []
    for stream, at in zip(STREAMS, taken, strict=True):
        left_out, text = _read(folder, name, stream, at, KEPT_BYTES)
        if text:
            end = b"" if text.endswith(b"\n") else b"\n"
            found.append((stream, _said_shortened(left_out) + text + end))
    return found


def _read(folder: str, name: str, stream: int, at: int, max_bytes: int) -> tuple[int, bytes]:
    """The end of a file from some place on, and how many bytes are left out before it."""
    try:
        fd = os.open(path_of(folder, name, stream), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0, b""
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        left_out = max(0, size - at - max_bytes)
        return left_out, os.pread(fd, max(0, size - at - left_out), at + left_out)
    finally:
        os.close(fd)


def _said_shortened(left_out: int) -> bytes:
    """A line that says how much output was left out."""
    return f"[{left_out:,} bytes of output are left out]\n".encode() if left_out else b""


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
        """Keep the stream open: a task may have wrapped it in a stream of its own, which closes it when it is
        collected."""


class _Stream(io.TextIOWrapper):
    """Text to a standard stream, a line at a time, that gives a sign when it is used and cannot be closed."""

    output: "Output"

    def write(self, text: str, /) -> int:
        output = self.output
        output.signs.any = True
        hand = output.here.hand
        if hand is not output.owner and hand is not None:
            output.change_owner(hand)
        return super().write(text)

    def close(self) -> None:
        self.flush()


class _NoHand:
    hand = None


LIVE, CHANGE, OVER = range(3)
"""Why the files are read: every now and then; because another run writes, or goes on; because a run has ended."""


class Output:
    """The standard streams of this process, from now on.

    `fields` are those of the cursor. `report` gets the hand of the run, a stream and the output; it is called by one
    thread at a time. `here.hand` is the hand of a thread.
    """

    def __init__(
        self, folder: str, name: str, signs: Signs, fields: Any, report: Callable[[Any, int, bytes], None], here: Any
    ) -> None:
        self.signs = signs
        self.here = here
        self.owner: Any = None
        self._report = report
        self._fields = fields
        self._files: list[tuple[int, int]] = []  # the stream's number, and a private descriptor
        self._text: list[_Stream] = []
        self._empty_up_to: dict[int, int] = {}
        self._rests: dict[tuple[Any, int], bytes] = {}  # incomplete lines of runs that others follow
        self._quiet_until_ns = 0
        self._taking = allocate_lock()  # by one thread at a time
        for stream in STREAMS:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            fd = os.open(path_of(folder, name, stream), flags, 0o600)
            os.dup2(fd, stream)
            self._files.append((stream, fd))
            errors = "strict" if stream == 1 else "backslashreplace"
            raw: Any = _Raw(stream, fd)
            text = _Stream(raw, encoding="utf-8", errors=errors, line_buffering=True)
            text.output = self
            self._text.append(text)
        sys.stdout, sys.stderr = self._text
        sys.__stdout__, sys.__stderr__ = self._text  # type: ignore[misc]

    def leave(self) -> None:
        """Note that this is a copy of the process that a task has forked: its output is read elsewhere."""
        self._taking = allocate_lock()  # another thread may have had it
        self.here = _NoHand()

    def look(self, hand: Any) -> None:
        """Report complete lines while runs go on, but not too many in a second, and free the room of reported ones.

        Any thread may call it. `hand` is that of the run if nothing was written by `print`.
        """
        if self._fields[HELD] or not self._taking.acquire(False):
            return
        try:
            now_ns = monotonic_ns()
            for stream, fd in self._files:
                size = os.lseek(fd, 0, os.SEEK_END)
                if size > self._fields[2 + stream] and now_ns >= self._quiet_until_ns:
                    self._take(stream, fd, self.owner or hand, LIVE)
                if size - self._empty_up_to.get(stream, 0) > FILE_MAX_BYTES:
                    self._empty_up_to[stream] = size - KEPT_BYTES
                    _punch(fd, size - KEPT_BYTES)
        finally:
            self._taking.release()

    def change_owner(self, hand: Any) -> None:
        """Another run writes than before."""
        self._flush()
        with self._taking:
            if self.owner is not None:
                for stream, fd in self._files:
                    self._take(stream, fd, self.owner, CHANGE)
            self.owner = hand

    def pause(self, hand: Any) -> None:
        """Take the output of a run that waits, because other runs go on here."""
        self._flush()
        with self._taking:
            for stream, fd in self._files:
                self._take(stream, fd, self.owner or hand, CHANGE)
            self.owner = None

    def end(self, hand: Any) -> None:
        """The run of a hand has ended: report all that is left of it, and empty the files."""
        self._flush()
        with self._taking:
            owner = self.owner or hand
            for stream, fd in self._files:
                if self._take(stream, fd, owner, OVER if owner is hand else CHANGE):
                    os.ftruncate(fd, 0)
                    self._fields[2 + stream] = 0
                rest = self._rests.pop((hand, stream), b"") if self._rests else b""
                if rest:
                    self._report(hand, stream, rest)
            self._empty_up_to.clear()
            self.owner = None

    def _flush(self) -> None:
        for text in self._text:
            with suppress(OSError):  # no room: the task that printed was told
                text.flush()

    def _take(self, stream: int, fd: int, owner: Any, why: int) -> bool:
        """Report the output since the last time; False if the file is empty."""
        size, at = os.lseek(fd, 0, os.SEEK_END), self._fields[2 + stream]
        at = min(at, size)  # it was made shorter by a command that is not to show what it prints
        left_out = max(0, size - at - KEPT_BYTES)
        text = os.pread(fd, size - at - left_out, at + left_out) if size > at else b""
        if left_out and (first := text.find(b"\n") + 1) and first < len(text):
            left_out, text = left_out + first, text[first:]
        end = len(text)
        if why != OVER:
            end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
            if why == LIVE:
                if not end and len(text) < KEPT_BYTES:
                    return True  # the line goes on
                end = end or len(text)
        if end or (why == OVER and self._rests):
            before = self._rests.pop((owner, stream), b"") if self._rests else b""
            if end or before:
                self._report(owner, stream, before + _said_shortened(left_out) + text[:end])
            self._quiet_until_ns = monotonic_ns() + end * 1_000_000_000 // SHOWN_PER_S
        if why == CHANGE and end < len(text):
            self._rests[owner, stream] = self._rests.pop((owner, stream), b"")[-KEPT_BYTES:] + text[end:]
            end = len(text)
        self._fields[2 + stream] = at + left_out + end
        return size > 0


class Streams:
    """The `sys.stdout` and `sys.stderr` of every run, whatever the run before has put there."""

    __slots__ = ("err", "out")

    def __init__(self) -> None:
        self.out, self.err = sys.stdout, sys.stderr

    def give_back(self) -> None:
        """Restore the streams after a run, with the text that is still inside of a stream that the run has put
        there."""
        for left in (sys.stdout, sys.stderr):
            if left is not self.out and left is not self.err:
                with suppress(Exception):  # it is the user's: closed, or anything else
                    left.flush()
        sys.stdout, sys.stderr = self.out, self.err


def _punch(fd: int, count: int) -> None:
    """Make a hole of the first bytes: a file that is cut and written anew would lose what comes in between."""
    import ctypes  # only if a task prints megabytes

    # Where the file system knows no holes the file stays long, until the run has ended.
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate(fd, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(count))
