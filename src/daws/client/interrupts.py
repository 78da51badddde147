"""Ctrl-C that Python would drop, sent once more.

Python raises KeyboardInterrupt wherever the main thread is. A finaliser (such as the one of a future) or the callback
of a weak reference (as imports have) cannot pass it on: Python prints "Exception ignored in …" and
goes on. A program that waits for its tasks would wait on. Therefore the signal is sent again a moment later, until it
comes where it can be raised. All other exceptions that cannot be raised are left to whatever handled them before.
"""

import signal
import sys
from _thread import start_new_thread
from contextlib import suppress
from threading import Lock, get_ident, main_thread
from time import sleep
from typing import Any

AGAIN_S = 0.01


class _Watch:
    hook: Any = None  # what `sys.unraisablehook` was
    count = 0  # of open sessions
    lock = Lock()


def send_lost_interrupts_again() -> None:
    """Send lost interrupts again in this process, until `forget_lost_interrupts` was called as often."""
    with _Watch.lock:
        _Watch.count += 1
        if sys.unraisablehook is not _on_unraisable:
            _Watch.hook = sys.unraisablehook
            sys.unraisablehook = _on_unraisable


def forget_lost_interrupts() -> None:
    """A session is closed. With the last one the hook is as before, unless the program has set another meanwhile."""
    with _Watch.lock:
        _Watch.count = max(0, _Watch.count - 1)
        if not _Watch.count and sys.unraisablehook is _on_unraisable:
            sys.unraisablehook = _Watch.hook


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
