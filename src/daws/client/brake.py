"""A client that submits arguments faster than tasks take them in is slowed down, instead of filling its memory.

Counted are the pickled arguments of tasks that have not ended, if they take at least COUNTED_BYTES_MIN. (Large ones are
objects, see `arguments`: they are written to files once, which have a limit of their own.) A client that would go over
the limit waits for room. It does not wait for long, because tasks may wait for something that the same client does
next: then there is no room, and the arguments have to go into a file. The limit always holds for the arguments that are
counted. It does not bound the number of tasks: each takes some 2 kB, and its arguments up to COUNTED_BYTES_MIN, however
small the limit is.
"""

import logging
from threading import Condition

COUNTED_BYTES_MIN = 1024
"""Smaller arguments are no larger than all else that is kept of a task."""
WAIT_S_MAX = 1.0

log = logging.getLogger("daws.client")


class Brake:
    """Any thread may call."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.pending_bytes = 0
        self.sizes: dict[int, int] = {}  # by task
        self._changed = Condition()
        self._has_told = False

    def add(self, task: int, size_bytes: int, may_wait: bool) -> bool:
        """A task is about to be submitted: waits for room, if there is none. False if there is none after that; then
        its arguments must not stay in memory."""
        with self._changed:
            if may_wait and self.pending_bytes and not self._has_room(size_bytes):
                self._tell()
                self._changed.wait_for(lambda: self._has_room(size_bytes) or not self.pending_bytes, WAIT_S_MAX)
            has_room = self._has_room(size_bytes)
            if not has_room:
                size_bytes = 0
            self.sizes[task] = size_bytes
            self.pending_bytes += size_bytes
            return has_room

    def remove(self, task: int) -> None:
        """Uncount a task that has ended, or was not submitted after all."""
        with self._changed:
            self.pending_bytes -= self.sizes.pop(task, 0)
            self._changed.notify_all()

    def release(self) -> None:
        """Nothing will end any more."""
        with self._changed:
            self.sizes.clear()
            self.pending_bytes = 0
            self._changed.notify_all()

    def _has_room(self, size_bytes: int) -> bool:
        return self.pending_bytes + size_bytes <= self.limit_bytes

    def _tell(self) -> None:
        """Once: why the client is slow now, and what helps."""
        if not self._has_told:
            self._has_told = True
            log.warning(
                "submit() waits: the arguments of %s tasks that have not ended take %s of the %s bytes that they may "
                "take in this process; put() what several tasks read, pass file names, submit fewer at a time, or give "
                "the cluster more by memory_bytes=",
                f"{len(self.sizes):,}",
                f"{self.pending_bytes:,}",
                f"{self.limit_bytes:,}",
            )
