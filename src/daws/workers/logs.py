"""Log records and warnings of tasks: they are sent to the client, which handles them as its own.

A worker formats and prints nothing. It has one handler, at the root, which sends records, and the levels of the
client's loggers, so that unwanted records cost nothing. `logging` takes a while to import: all this waits until a task
imports it. A task that configures `logging` by itself overrides this, and its records are part of its output.
"""

import sys
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

from msgspec import msgpack

from daws.wire.worker import LOGGED, WARNED
from daws.workers.signs import Signs

TEXT_MAX = 1 << 16
RECORDS_PER_S = 2000
DISABLE = "\0"
"""The name among the levels that has the level up to which nothing is logged at all."""
ROOT = ""
_PLAIN = (str, int, float, bool, type(None))
_LEFT_OUT = frozenset(("args", "exc_info", "msg"))

Send = Callable[[int, bytes], None]
"""A function that sends LOGGED or WARNED with its content."""


class Logs:
    """The `logging` and `warnings` of this process. `signs` are given when records were left out: see `end_run`."""

    def __init__(self, name: str, send: Send, signs: Signs | None = None) -> None:
        self._name = name
        self._send = send
        self._signs = signs or Signs()
        self._logging: Any = None  # the module, when it was imported
        self._levels = b""
        self._set: set[str] = set()  # loggers whose levels are from the client
        self._second = 0.0
        self._count = self._lost = 0
        self._told_s = -1.0  # when an end of a run told of records that were left out

    def begin(self) -> None:
        import warnings

        warnings.showwarning = self._on_warning
        if "logging" in sys.modules:
            self._on_import(sys.modules["logging"])
        else:
            sys.meta_path.insert(0, _Waiting(self._on_import))

    def use(self, levels: bytes) -> None:
        """Use these levels from now on, because tasks of another client run; see `daws.client.functions`."""
        if levels != self._levels:
            self._levels = levels
            if self._logging is not None:
                self._apply()

    def end_run(self) -> None:
        """A run has ended, or waits: tell how many records were left out, once a second (short runs are many)."""
        if self._lost:
            now_s = monotonic()
            if now_s - self._told_s >= 1.0:
                self._told_s = now_s
                self.tell_lost()

    def tell_lost(self) -> None:
        """Tell how many records were left out since this was told last, if any were."""
        if self._lost:
            lost, self._lost = self._lost, 0
            text = f"{lost:,} log records were left out: a worker sends {RECORDS_PER_S:,} of them in a second"
            self._send(LOGGED, msgpack.encode({"name": "daws", "levelno": 30, "levelname": "WARNING", "msg": text}))

    # -- logging -------------------------------------------------------------------------------------------------------

    def _on_import(self, logging: Any) -> None:
        logs, configure = self, logging.basicConfig

        class SendingHandler(logging.Handler):  # type: ignore[misc]
            def emit(self, record: Any) -> None:
                try:
                    logs._on_record(logging, record)
                except Exception:
                    self.handleError(record)

        handler = SendingHandler()

        def basic_config(**how: Any) -> None:
            """Configure `logging` as usual: a task that calls it overrides the handler of the worker."""
            if logging.root.handlers == [handler]:
                logging.root.removeHandler(handler)
            configure(**how)

        logging.basicConfig = basic_config
        logging.root.addHandler(handler)
        self._logging = logging
        if self._levels:
            self._apply()

    def _apply(self) -> None:
        """Set the levels of loggers. Loggers that an earlier client had set are reset as in a new process."""
        logging = self._logging
        wanted: dict[str, int] = msgpack.decode(self._levels) if self._levels else {}
        logging.disable(wanted.pop(DISABLE, logging.NOTSET))
        for name in self._set.difference(wanted):
            logging.getLogger(name).setLevel(logging.NOTSET if name else logging.WARNING)
        for name, level in wanted.items():
            logging.getLogger(name).setLevel(level)
        self._set = set(wanted)

    def _on_record(self, logging: Any, record: Any) -> None:
        if self._is_too_much():
            return
        self.tell_lost()
        fields = {name: _plain(value) for name, value in record.__dict__.items() if name not in _LEFT_OUT}
        fields["msg"] = record.getMessage()[:TEXT_MAX]
        fields["processName"] = self._name
        if record.exc_info and not record.exc_text:
            fields["exc_text"] = logging.Formatter().formatException(record.exc_info)[-TEXT_MAX:]
        self._send(LOGGED, msgpack.encode(fields))

    def _is_too_much(self) -> bool:
        now_s = monotonic()
        if now_s - self._second >= 1.0:
            self._second, self._count = now_s, 0
        self._count += 1
        if self._count > RECORDS_PER_S:
            self._lost += 1
            self._signs.any = True
            return True
        return False

    # -- warnings ------------------------------------------------------------------------------------------------------

    def _on_warning(
        self, message: Any, category: type, filename: str, lineno: int, file: Any = None, line: str | None = None
    ) -> None:
        import warnings

        text = warnings.formatwarning(message, category, filename, lineno, line)
        if file is not None:
            file.write(text)
            return
        kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in category.__mro__ if issubclass(kind, Warning)]
        self._send(WARNED, msgpack.encode((str(message)[:TEXT_MAX], kinds, filename, lineno, text[:TEXT_MAX])))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value[:TEXT_MAX]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    if isinstance(value, _PLAIN):
        return value
    try:
        return repr(value)[:TEXT_MAX]
    except Exception:
        return f"<{type(value).__name__}>"


class _Waiting:
    """A finder of modules that finds none. It tells when `logging` was imported, and is gone then."""

    def __init__(self, imported: Callable[[Any], None]) -> None:
        self._imported = imported

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "logging":
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module = partial(self._execute, spec.loader.exec_module)  # type: ignore[method-assign]
                return spec
        return None

    def _execute(self, execute: Callable[[Any], None], module: Any) -> None:
        execute(module)
        self._imported(module)
