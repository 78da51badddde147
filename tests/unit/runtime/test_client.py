"""A thread behind a client: whoever starts one that cannot begin is told why, and does not wait for ever."""

import _thread
import errno
import os
import sys
import threading
import time

import pytest

from daws.model.errors import ClosedError, UnavailableError
from daws.runtime.client import SessionDriver


class Failing(SessionDriver):
    """Fails before it is ready."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("failing")
        self.error = error
        self.is_closed = False

    async def _open(self) -> None:
        raise self.error

    async def _close(self) -> None:
        self.is_closed = True


def test_too_many_open_files_is_an_error_that_names_the_cure():
    with pytest.raises(UnavailableError, match=r"Too many open files; raise the limit \(ulimit -n\)"):
        Failing(OSError(errno.EMFILE, os.strerror(errno.EMFILE))).start()


def test_any_other_error_is_raised_where_the_thread_was_started():
    failing = Failing(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        failing.start()
    assert failing.is_closed and failing.loop.is_closed()


class Idle(SessionDriver):
    """Has nothing to open or to close."""

    async def _open(self) -> None:
        pass

    async def _close(self) -> None:
        pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_nobody_is_ended_with_a_thread_that_a_callback_has_ended():
    idle = Idle("idle")
    idle.start()
    with pytest.raises(ClosedError):
        idle._answer(lambda answer: sys.exit(3))
    assert idle.loop.is_closed()


class Slow(Idle):
    """Whoever waits for it is interrupted before it is ready."""

    async def _open(self) -> None:
        interrupt(self._ready)


def interrupt(ready: threading.Event) -> None:
    """What Ctrl-C does to the main thread in `wait`."""
    waiting = ready._cond._waiters  # type: ignore[attr-defined]
    while not waiting:
        time.sleep(0.001)
    _thread.interrupt_main()


def test_an_interrupted_start_leaves_no_thread_behind():
    slow = Slow("slow")
    with pytest.raises(KeyboardInterrupt):
        slow.start()
    assert slow.loop.is_closed() and "slow" not in [thread.name for thread in threading.enumerate()]
