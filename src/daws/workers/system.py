"""Calls of the system that Python has no names for: a second belt, without which all works a little less well."""

import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent() -> None:
    """Have this process killed when its parent ends, whatever way it ends."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends, so that they can be found and ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    try:
        # ctypes itself would take as long to import as a worker to start; it is a layer of comfort over these.
        import _ctypes

        address = _ctypes.dlsym(_ctypes.dlopen("", 2), "prctl")
        _ctypes.call_cdeclfunction(address, (option, value, 0, 0, 0))
    except (ImportError, AttributeError, OSError):
        pass
