"""The garbage collector looks through all that is alive again and again, and a session keeps much alive.

While clusters are open it is asked less often, if the program has not chosen for itself how often that is: a seventh of
what it costs to submit a task went there. Nothing is lost: objects without cycles go at once as ever.
"""

import gc
from threading import Lock

PATIENT = (50_000, 20, 100)
DEFAULTS = (700, 2000, 10_000)
"""How many new objects wake the collector, in the Pythons that there are."""
_lock = Lock()
_open = 0
_before = (0, 0, 0)


def begin() -> None:
    """A cluster opens."""
    global _open, _before
    with _lock:
        _open += 1
        if _open == 1:
            _before = gc.get_threshold()
            if _before[0] in DEFAULTS:
                gc.set_threshold(*PATIENT)


def end() -> None:
    """It is closed: with the last one, everything is as before, unless the program has changed it meanwhile."""
    global _open
    with _lock:
        _open -= 1
        if not _open and gc.get_threshold() == PATIENT:
            gc.set_threshold(*_before)
