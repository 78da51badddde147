"""A log of unknown peers that misbehave: one line each. In a flood of them it has a few lines and the number of the
rest."""

import logging
import time
from collections.abc import Callable
from threading import Lock

LINES_MAX = 10
WINDOW_S = 60.0


class Complaints:
    """A log with at most LINES_MAX lines in WINDOW_S. Any thread may complain."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._began_s = clock()
        self._lines = 0
        self._left_out = 0

    def warn(self, line: str) -> None:
        with self._lock:
            now_s = self._clock()
            if now_s - self._began_s >= WINDOW_S:
                self._began_s, self._lines = now_s, 0
            if self._lines >= LINES_MAX:
                self._left_out += 1
                return
            self._lines += 1
            left_out, self._left_out = self._left_out, 0
        more = f" (and {left_out:,} more before that were not written down)" if left_out else ""
        logging.getLogger("daws.net").warning("%s%s", line, more)


COMPLAINTS = Complaints()
"""The log of all doors and links of this process."""
