"""A file of results, one line each, written as soon as they are done.

The first line has the settings. Strategies, sizes and seeds are not part of them, so the file of a comparison can be
used for a larger one. Any other difference makes another file.
"""

import fcntl
import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from daws.compare.cases import Case, CaseResult
from daws.model.errors import UnavailableError, UsageError

VERSION = 1
KEY = "daws-compare"


class Results:
    """Open a file of results for adding to it: `with Results(path, settings) as results`.

    UsageError if it holds something else, or was made with other settings.
    """

    def __init__(self, path: Path, settings: dict[str, object]) -> None:
        self.path = path
        self.runs: dict[Case, CaseResult] = {}
        self._settings = settings
        self._file: BinaryIO
        self._is_new = False

    def __enter__(self) -> "Results":
        if self.path.exists() and not self.path.is_file():
            raise UsageError(f"--results {str(self.path)!r}: this is no file of 'daws compare'")
        self._is_new = not self.path.exists()
        try:
            self._file = open(self.path, "w+b" if self._is_new else "r+b", buffering=0)
        except OSError as error:
            raise UsageError(f"--results {str(self.path)!r}: cannot be written: {error.strerror}") from error
        try:
            self._lock()
            self._read()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._is_new and not self.runs:
            self.path.unlink(missing_ok=True)  # a refused file leaves nothing behind
        self._file.close()

    def add(self, run: CaseResult) -> None:
        self.runs[run.case] = run
        self._write(run)

    def missing(self, cases: Iterable[Case]) -> list[Case]:
        return [case for case in cases if case not in self.runs]

    def _lock(self) -> None:
        """Lock the file until it is closed. Two processes that write into one file would spoil it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"--results {str(self.path)!r}: another 'daws compare' is writing it right now") from error
        except OSError:
            return  # some file systems cannot lock

    def _write(self, line: object) -> None:
        try:
            self._file.write(msgspec.json.encode(line) + b"\n")
        except OSError as error:
            raise UnavailableError(f"--results {str(self.path)!r}: {error.strerror}", retry=True) from error

    def _read(self) -> None:
        lines = self._file.read().split(b"\n")
        whole = lines[:-1]  # a line without an end was being written when everything stopped
        if not whole:
            begin = f'{{"{KEY}":'.encode()
            if not lines[0].startswith(begin[: len(lines[0])]):
                raise UsageError(f"--results {str(self.path)!r}: this is no file of 'daws compare'")
            self._file.seek(0)
            self._file.truncate()
            self._write({KEY: VERSION, "settings": self._settings})
            return
        self._check_head(whole[0])
        for number, line in enumerate(whole[1:], 2):
            try:
                run = msgspec.json.decode(line, type=CaseResult)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise UsageError(f"--results {str(self.path)!r}: line {number} cannot be read: {error}") from error
            self.runs[run.case] = run
        end = sum(len(line) + 1 for line in whole)
        self._file.seek(end)
        self._file.truncate()

    def _check_head(self, line: bytes) -> None:
        try:
            head = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            head = None
        if not isinstance(head, dict) or head.get(KEY) != VERSION or not isinstance(head.get("settings"), dict):
            raise UsageError(f"--results {str(self.path)!r}: this is no file of 'daws compare'")
        then, now = head["settings"], msgspec.json.decode(msgspec.json.encode(self._settings))
        for key in sorted(then.keys() | now.keys()):
            if then.get(key) != now.get(key):
                raise UsageError(
                    f"--results {str(self.path)!r} was made with other settings ({key} was {_shown(then.get(key))}, "
                    f"not {_shown(now.get(key))}); give another file"
                )


def default_path(workload: str, settings: dict[str, object]) -> Path:
    """The default file for these settings, in the current folder: the same settings give the same file."""
    name = "".join(letter if letter.isalnum() else "-" for letter in os.path.basename(workload.partition(":")[0]))
    digest = blake2b(msgspec.json.encode(settings, order="sorted"), digest_size=4).hexdigest()
    return Path(f"compare-{name[:40].strip('-') or 'workload'}-{digest}.jsonl")


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
