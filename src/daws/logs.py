"""The log of daws itself: one tree of loggers, one form of line, levels by `DAWS_LOG`, log files in a cluster's folder.

All loggers are below `daws`. Programs that use daws as a library configure logging as they like; daws adds a handler
only if `DAWS_LOG` is set and the program has none. Commands set up the log themselves. `daws node` and `daws store`
write to files as well: one JSON object per line, in the folder `logs` of the cluster's folder, which `daws logs` reads.
"""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from daws.model.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

VARIABLE = "DAWS_LOG"
ROOT = "daws"
PARTS = {
    "node": "nodes: joining and leaving, links to the store and to other nodes, damaged objects",
    "store": "the store: its log on disk, its server, sessions that end",
    "client": "clusters as a program sees them: waiting for nodes, callbacks that raise",
    "worker": "tasks whose worker process died or was stopped",
    "net": "connections that are refused",
    "memo": "results that are reused, and why tasks ran",
    "recording": "files that are written about a run",
}
"""The loggers below `daws`, and their subjects."""
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
STEPS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
FOLDER = "logs"
FILE_BYTES_MAX = 10_000_000
OLDER_FILES = 3
"""A log file that is full becomes the first of so many older ones."""
FILES_MAX = 64
"""More files than these are not kept in a folder: the oldest go when a process begins to log."""
LOOK_S = 0.2
_place: dict[str, Any] = {}
_before: dict[str, int] = {}
"""The levels of loggers before they were set."""


def set_place(**known: Any) -> None:
    """Say which node (or session) this process is: `set_place(node=3)`. Lines that name no other one have it."""
    _place.update(known)


def about(**known: Any) -> dict[str, Any]:
    """The subject of a line, for `extra` of a log call: `log.info("…", extra=about(task=7, session="night"))`."""
    return {f"daws_{name}": value for name, value in known.items()}


# -- lines -------------------------------------------------------------------------------------------------------------


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """A line of the log by its fields. Node, session and task are there where they are known."""
    found: dict[str, Any] = {"time": record.created, "level": record.levelname.lower(), "logger": record.name}
    for name in ("node", "session", "task"):
        value = getattr(record, f"daws_{name}", _place.get(name))
        if value is not None and value != "":
            found[name] = value
    found["message"] = record.getMessage()
    if record.exc_info:
        found["exception"] = logging.Formatter().formatException(record.exc_info)
    return found


def line_of(fields: dict[str, Any]) -> str:
    """The same as text: time, level, logger, node, session and task, message."""
    at = float(fields.get("time", 0.0))
    when = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at))}.{int(at * 1000) % 1000:03}"
    where = "".join([f" {name} {fields[name]}" for name in ("node", "session", "task") if name in fields])
    text = f"{when} {fields.get('level', '')} {fields.get('logger', '')}{where}: {fields.get('message', '')}"
    return f"{text}\n{fields['exception']}" if fields.get("exception") else text


class LineFormatter(logging.Formatter):
    """Lines for people, or JSON objects for files."""

    def __init__(self, as_json: bool = False) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        fields = fields_of(record)
        if not self._as_json:
            return line_of(fields)
        import json

        return json.dumps(fields, default=str)


# -- levels ------------------------------------------------------------------------------------------------------------


def read_levels(text: str) -> tuple[int | None, dict[str, int]]:
    """The level of all loggers (None if none is given) and those of parts, of a text as `info,node=debug`."""
    base: int | None = None
    parts: dict[str, int] = {}
    for one in filter(None, [word.strip() for word in text.split(",")]):
        part, is_part, level = one.rpartition("=")
        part = part.removeprefix(f"{ROOT}.")
        if level.lower() not in LEVELS or (is_part and part not in PARTS):
            expected = f"a level ({', '.join(LEVELS)}), or part=level with a part of {', '.join(PARTS)}"
            raise UsageError(f"{VARIABLE}={text!r}: {one!r}: expected {expected}")
        if is_part:
            parts[part] = LEVELS[level.lower()]
        else:
            base = LEVELS[level.lower()]
    return base, parts


def set_up(default: int = logging.WARNING, louder: int = 0, folder: "Path | None" = None, role: str = "") -> None:
    """Set up the log of a command: to standard error, and to a file if the `folder` of a cluster is given.

    The level is what `DAWS_LOG` says, else `default`; one step more is written for each `louder`, one less if that is
    negative. `role` is the first part of the file's name. The log of a process with a file has the lines of all
    libraries, as those of asyncio.
    """
    base, parts = read_levels(os.environ.get(VARIABLE, ""))
    reset()
    _set_levels(_moved(default, louder) if base is None or louder else base, parts)
    top = logging.getLogger(ROOT if folder is None else None)
    _add(top, logging.StreamHandler(), LineFormatter())
    if folder is not None:
        try:
            _add(top, _file_handler(folder / FOLDER, role), LineFormatter(as_json=True))
        except OSError as error:
            top.warning("there is no log file: %s: %s", error.filename, error.strerror)


def set_up_by_environment() -> None:
    """Follow `DAWS_LOG`, if it is set, in a program that uses daws as a library."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return
    _set_levels(*read_levels(text))
    top = logging.getLogger(ROOT)
    if not top.hasHandlers():
        _add(top, logging.StreamHandler(), LineFormatter())


def reset() -> None:
    """Undo `set_up`: remove its handlers, and set levels as they were."""
    for logger in (logging.getLogger(), logging.getLogger(ROOT)):
        for handler in [one for one in logger.handlers if isinstance(one.formatter, LineFormatter)]:
            logger.removeHandler(handler)
            handler.close()
    for name, level in _before.items():
        logging.getLogger(name).setLevel(level)
    _before.clear()


def _set_levels(base: int | None, parts: dict[str, int]) -> None:
    named = {f"{ROOT}.{part}": level for part, level in parts.items()}
    for name, level in (named if base is None else {ROOT: base, **named}).items():
        _before.setdefault(name, logging.getLogger(name).level)
        logging.getLogger(name).setLevel(level)


def _moved(level: int, louder: int) -> int:
    at = min(len(STEPS) - 1, max(0, STEPS.index(level) - louder))
    return STEPS[at]


def _add(logger: logging.Logger, handler: logging.Handler, formatter: logging.Formatter) -> None:
    handler.setFormatter(formatter)
    logger.addHandler(handler)


# -- files -------------------------------------------------------------------------------------------------------------


def _file_handler(folder: "Path", role: str) -> logging.Handler:
    """A handler with a file for its owner alone, which is renamed when it is full."""
    from logging.handlers import RotatingFileHandler  # takes long to import, and most processes have no file

    class PrivateFileHandler(RotatingFileHandler):
        def _open(self) -> Any:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            return open(os.open(self.baseFilename, flags, 0o600), "a", encoding="utf-8")

    folder.mkdir(mode=0o700, exist_ok=True)
    _prune(folder)
    path = folder / f"{role}-{os.uname().nodename}-{os.getpid()}.jsonl"
    return PrivateFileHandler(path, maxBytes=FILE_BYTES_MAX, backupCount=OLDER_FILES)


def _prune(folder: "Path") -> None:
    """Remove the oldest files if there are too many."""
    with suppress(OSError):  # another process may do the same
        files = sorted(folder.glob("*.jsonl*"), key=lambda path: path.stat().st_mtime)
        for path in files[: max(0, len(files) - FILES_MAX + 1)]:
            path.unlink()


class LogReader:
    """The lines of the log files of a cluster's folder that have not been read yet."""

    def __init__(self, folder: "Path") -> None:
        self._folder = folder / FOLDER
        self._read: dict[tuple[int, int], int] = {}  # by file, which may be renamed: how many bytes

    def news(self) -> list[dict[str, Any]]:
        """The lines that were written since the last call, by time."""
        found: list[dict[str, Any]] = []
        for path in sorted(self._folder.glob("*.jsonl*"), reverse=True):  # older files first
            with suppress(FileNotFoundError), open(path, "rb") as file:
                status = os.fstat(file.fileno())
                key = (status.st_dev, status.st_ino)
                begin = self._read.get(key, 0)
                if begin > status.st_size:  # another file with the number of one that was removed
                    begin = 0
                file.seek(begin)
                data = file.read()
                whole = data[: data.rfind(b"\n") + 1]
                self._read[key] = begin + len(whole)
                found += _parsed(whole)
        return sorted(found, key=lambda fields: float(fields["time"]))


def _parsed(data: bytes) -> Iterator[dict[str, Any]]:
    import json

    for line in data.splitlines():
        try:
            fields = json.loads(line)
        except ValueError:  # a line that a crash has cut off
            continue
        if isinstance(fields, dict) and isinstance(fields.get("time"), int | float):
            yield fields
