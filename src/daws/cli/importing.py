"""Imports that take time, with a handler so that Ctrl-C ends them in one line."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from daws.cli.messages import EXIT_INTERRUPTED, complain


@contextmanager
def importing() -> Iterator[None]:
    """Let an interrupt end the process at once.

    Python may print and drop an interrupt that is raised inside an import, or turn it into another error. A command
    imports before it does anything, so nothing has to be undone. A signal handler of the calling program stays. A job
    in the background goes on ignoring interrupts.
    """

    def leave(*_: object) -> None:
        try:
            complain("interrupted")
        finally:
            os._exit(EXIT_INTERRUPTED)

    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
