"""The garbage collector of the client's process, for clients that asked for `tune=True`.

The process belongs to the user, so nothing is changed there unless it was asked for. The collector looks through all
objects that are alive again and again, and a session keeps many alive. With `tune=True` it is called less often while
clusters are open, unless the program has set thresholds of its own. Objects without cycles are freed at once as ever.
"""

import gc
from threading import Lock

TUNED = (50_000, 20, 100)
DEFAULTS = (700, 2000, 10_000)
"""The first threshold of the collector in the Pythons that there are."""
_lock = Lock()
_open = 0
_before = (0, 0, 0)


def begin() -> None:
    """A cluster with `tune=True` opens."""
    global _open, _before
    with _lock:
        _open += 1
        if _open == 1:
            _before = gc.get_threshold()
            if _before[0] in DEFAULTS:
                gc.set_threshold(*TUNED)


def end() -> None:
    """Undo `begin` for a cluster that is closed. With the last one the thresholds are as before, unless the program
    has changed them meanwhile."""
    global _open
    with _lock:
        _open -= 1
        if not _open and gc.get_threshold() == TUNED:
            gc.set_threshold(*_before)
