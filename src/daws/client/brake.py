"""A client that submits large arguments faster than tasks take them in is slowed down, instead of filling its memory.

Counted are the pickled arguments of tasks that have not ended, as far as they are worth counting. Who goes over the
limit waits until there is room again, but never for long: tasks may wait for something that the same client does next.
"""

from threading import Condition

COUNTED_BYTES_MIN = 1024
"""Smaller arguments are no larger than all else that is kept of a task."""
WAIT_S_MAX = 1.0


class Brake:
    """Any thread may call."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.pending_bytes = 0
        self.sizes: dict[int, int] = {}  # by task
        self._changed = Condition()

    def add(self, task: int, size_bytes: int, may_wait: bool) -> None:
        """A task is about to be submitted: waits for room, if there is none."""
        with self._changed:
            if may_wait and self.pending_bytes:
                self._changed.wait_for(lambda: self.pending_bytes + size_bytes <= self.limit_bytes, WAIT_S_MAX)
            self.sizes[task] = size_bytes
            self.pending_bytes += size_bytes

    def remove(self, task: int) -> None:
        """It has ended, or was not submitted after all."""
        with self._changed:
            self.pending_bytes -= self.sizes.pop(task, 0)
            self._changed.notify_all()

    def release(self) -> None:
        """Nothing will end any more."""
        with self._changed:
            self.sizes.clear()
            self.pending_bytes = 0
            self._changed.notify_all()
