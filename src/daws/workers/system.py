"""Unusual system calls, without which everything works a little less well."""

import os
import signal
from contextlib import suppress

_USUAL = os.sched_getscheduler(0)  # as the user has started us
_PR_SET_PDEATHSIG = 1
_PR_SET_TIMERSLACK = 29
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent() -> None:
    """Have this process killed when its parent ends, whatever way it ends."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends, so that they can be found and ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def sleep_precisely() -> None:
    """Let this process sleep for as long as it asks for. Otherwise the system takes up to 50 µs more, to save power."""
    _prctl(_PR_SET_TIMERSLACK, 1)


def wait_for_turns(on: bool) -> None:
    """Let this thread, when it becomes runnable, wait for a free processor or its turn, instead of preempting another
    thread.

    Threads and processes that it starts inherit this. A scheduling policy that the user has chosen is kept.
    """
    if _USUAL == os.SCHED_OTHER:
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH if on else os.SCHED_OTHER, os.sched_param(0))


def _prctl(option: int, value: int) -> None:
    try:
        # ctypes itself would take as long to import as a worker to start; it is a layer of comfort over these.
        import _ctypes

        address = _ctypes.dlsym(_ctypes.dlopen("", 2), "prctl")
        _ctypes.call_cdeclfunction(address, (option, value, 0, 0, 0))
    except (ImportError, AttributeError, OSError):
        pass
