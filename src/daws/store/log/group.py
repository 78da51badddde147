"""Answers on an event loop that wait until their changes are safe: one fsync for all that came meanwhile.

    answers = store.apply(shard, rows, now_ns)
    group.when_safe(lambda: caller.say(answers))

A caller that only reads has also seen changes of other callers: its answer waits for the same calls.
"""

import logging
from asyncio import AbstractEventLoop, Future, TimerHandle
from collections import deque
from collections.abc import Callable

from daws.model.errors import StoreFullError
from daws.store.log.calls import CallFiles

DELAY_S = 0.005
RETRY_S = 1.0
"""The time between tries to write to a full disk."""


class GroupSync:
    """The answers that wait for the log. All methods belong to the thread of the loop; the disk is waited for
    elsewhere."""

    def __init__(self, loop: AbstractEventLoop, files: CallFiles, delay_s: float = DELAY_S) -> None:
        self._loop = loop
        self._files = files
        self._delay_s = delay_s
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._timer: TimerHandle | None = None
        self._write: Future[None] | None = None
        self._said = ""

    def when_safe(self, then: Callable[[], None]) -> None:
        """Call `then` when all calls logged so far are safe: at once, if they are."""
        files = self._files
        if files.safe >= files.position and not self._waiting:
            then()
            return
        self._waiting.append((files.position, then))
        if self._timer is None and self._write is None:
            self._timer = self._loop.call_later(self._delay_s, self._begin)

    def close(self) -> None:
        """Make everything safe here and now, and send all answers."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._files.sync()
        self._let_go()

    def _begin(self) -> None:
        self._timer = None
        self._files.take()
        self._write = self._loop.run_in_executor(None, self._files.write)
        self._write.add_done_callback(self._ended)

    def _ended(self, write: "Future[None]") -> None:
        self._write = None
        error = None if write.cancelled() else write.exception()
        if isinstance(error, StoreFullError):
            if str(error) != self._said:  # once, not every second
                self._said = str(error)
                logging.getLogger("daws.store").error("%s", error)
            self._timer = self._loop.call_later(RETRY_S, self._begin)
            return
        if error is not None:
            raise error
        self._said = ""
        self._let_go()
        if self._waiting and self._timer is None and self._write is None:
            self._timer = self._loop.call_later(self._delay_s, self._begin)

    def _let_go(self) -> None:
        waiting, safe = self._waiting, self._files.safe
        while waiting and waiting[0][0] <= safe:
            waiting.popleft()[1]()
