"""The clock of the embedded store's server."""

import time

STOP_NS = 1_000_000_000
"""The clock is read more often than this, as long as its process runs."""


class StandingClock:
    """A clock that begins with the time of day, and stands still while its process is stopped.

    Messages that came meanwhile, such as renewals of leases, have yet to be read then. By any other clock the leases of
    all nodes would have run out before.
    """

    def __init__(self) -> None:
        self._read_ns = time.monotonic_ns()
        self._behind_ns = self._read_ns - time.time_ns()

    def now_ns(self) -> int:
        now_ns = time.monotonic_ns()
        self._behind_ns += max(0, now_ns - self._read_ns - STOP_NS)
        self._read_ns = now_ns
        return now_ns - self._behind_ns
