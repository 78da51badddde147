"""Output of tasks (prints, logs, warnings), shown where the client shows its own."""

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from msgspec import msgpack

from daws.wire.worker import LOGGED, WARNED

NO_TASK = -1


class Printing:
    """The output of tasks, shown on one thread. Whole lines of a task begin at the start of a line; parts of lines
    (`print(end=" ")`) that tasks leave follow each other on one."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}  # by stream: whose line is not complete
        self._warned: dict[Any, Any] = {}  # as the registry of a module

    def show(self, stream: int, text: bytes, task: int) -> None:
        """Nothing that goes wrong here is the cluster's fault: a stream that is closed, a handler that raises."""
        with suppress(Exception):
            if stream == LOGGED:
                _log(msgpack.decode(text), task)
            elif stream == WARNED:
                self._warn(*msgpack.decode(text))
            else:
                self._write(stream, text.decode(errors="replace"), task)

    def _write(self, stream: int, text: str, task: int) -> None:
        out = sys.stderr if stream == 2 else sys.stdout
        if out is None:
            return
        if self._open.get(stream, task) != task and ("\n" in text or "\r" in text):
            out.write("\n")
        if text.endswith(("\n", "\r")):
            self._open.pop(stream, None)
        else:
            self._open[stream] = task
        _write(out, text)
        out.flush()

    def _warn(self, message: str, kinds: list[str], filename: str, lineno: int, text: str) -> None:
        """Once for each place, however many workers say so, and as the filters of this program have it."""
        import warnings

        category = next(found for kind in kinds if (found := _category(kind)) is not None)
        # Those are only shown if they come from the program itself, and the worker knows what that is.
        is_shy = issubclass(category, DeprecationWarning | PendingDeprecationWarning)
        module = "__main__" if is_shy else os.path.basename(filename).removesuffix(".py")
        try:
            warnings.warn_explicit(message, category, filename, lineno, module, self._warned)
        except Warning:  # the filters make an error of it, but the task goes on
            self._write(2, text, NO_TASK)


def _write(out: TextIO, text: str) -> None:
    try:
        out.write(text)
    except UnicodeEncodeError:
        encoding = out.encoding or "ascii"
        out.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _log(fields: dict[str, Any], task: int) -> None:
    """A record of a task, with the task as `daws_task`; by the logger of its name, if that is enabled for it."""
    import logging

    logger = logging.getLogger(fields["name"])
    if logger.isEnabledFor(fields["levelno"]):
        logger.handle(logging.makeLogRecord({**fields, "daws_task": task}))


def _category(kind: str) -> type[Warning] | None:
    """A class of warnings that is known here."""
    module, _, name = kind.rpartition(".")
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, Warning) else None
