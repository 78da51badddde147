"""Ctrl-C that Python would drop, sent once more.

Python raises KeyboardInterrupt wherever the main thread is. If that is a finaliser, such as the one of a future, or the
callback of a weak reference, as imports have, nobody can catch it there: Python prints "Exception ignored in …" and
goes on. A program that waits for its tasks would wait on. So the signal is sent again a moment later, until it comes
where it can be raised. All other exceptions that cannot be raised are left to whatever handled them before.
"""

import signal
import sys
from _thread import start_new_thread
from contextlib import suppress
from threading import get_ident, main_thread
from time import sleep
from typing import Any

AGAIN_S = 0.01


class _Watch:
    hook: Any = None  # what `sys.unraisablehook` was


def send_lost_interrupts_again() -> None:
    """From now on, in this process."""
    if _Watch.hook is None:
        _Watch.hook = sys.unraisablehook
        sys.unraisablehook = _on_unraisable


def _on_unraisable(what: Any) -> None:
    is_interrupt = what.exc_type is not None and issubclass(what.exc_type, KeyboardInterrupt)
    if is_interrupt and get_ident() == main_thread().ident and not sys.is_finalizing():
        with suppress(RuntimeError):  # no thread can be started
            start_new_thread(_send, ())
            return
    _Watch.hook(what)


def _send() -> None:
    sleep(AGAIN_S)
    if callable(signal.getsignal(signal.SIGINT)):  # else it would end the process, or nothing would happen
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)
