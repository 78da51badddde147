"""Records of the commands of a workflow that say which are up to date, in the folder in which they run.

A record says what a command was made of when it ended: its words, and the contents of the files that it read and
wrote. A command is up to date if all of that is as it was. Before it begins, its record says so, so one that was
killed half-way never counts as done. Contents are compared by digest; a file is read again only if its size, its time
of change or its inode is another than the last time.

Used in workers, so it imports nothing that takes time.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Literal, TypeVar

import msgspec

from daws.model.errors import UsageError

FOLDER = ".daws"
DIGEST_BYTES = 16
READ_BYTES = 1 << 20
SETTLED_NS = 50_000_000
"""A file that was changed less than so long ago may be changed once more without another time of change."""

T = TypeVar("T")
Mode = Literal["content", "mtime", "rerun"]
"""The rule by which a command runs or not: contents and words, times of change as in `make`, or always."""
BEGUN, FAILED, DONE = "begun", "failed", "done"


class Recorded(msgspec.Struct):
    """The record of a command: how far it came, its digest, those of its files by name, and how long it took."""

    state: str
    command: str = ""
    reads: dict[str, str] = {}
    writes: dict[str, str] = {}
    duration_ns: int = 0


class _Digest(msgspec.Struct):
    """The digest of a file that had this size, time of change and inode."""

    stamp: tuple[int, int, int]
    digest: str


class CommandRecords:
    """The records of one folder; `folder` is where commands run."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._where = os.path.join(folder, FOLDER)

    # -- commands ------------------------------------------------------------------------------------------------------

    def of(self, task: str) -> Recorded | None:
        """The record of a task, by its id; None if there is none."""
        return _read(self._path("tasks", task), Recorded)

    def begin(self, task: str) -> None:
        _write(self._path("tasks", task), Recorded(BEGUN))

    def fail(self, task: str) -> None:
        _write(self._path("tasks", task), Recorded(FAILED))

    def done(self, task: str, command: str, reads: dict[str, str], writes: Iterable[str], duration_ns: int) -> None:
        digests = {name: self.digest(name) for name in writes}
        _write(self._path("tasks", task), Recorded(DONE, command, reads, digests, duration_ns))

    def why(
        self, recorded: Recorded | None, command: str, reads: Iterable[str], writes: Iterable[str], mode: Mode
    ) -> str:
        """Why a command has to run, in a few words; nothing if it is up to date."""
        if mode == "rerun":
            return "all commands run again"
        if recorded is not None and recorded.state != DONE:
            return "it failed before" if recorded.state == FAILED else "it was interrupted"
        for name in writes:
            if not os.path.exists(os.path.join(self.folder, name)):
                return f"its output {name!r} is not there"
        if mode == "mtime":
            return self._older(reads, writes)
        if recorded is None:
            return "it never ran here"
        if recorded.command != command:
            return "its command changed"
        for kind, names, known in (("input", reads, recorded.reads), ("output", writes, recorded.writes)):
            for name in names:
                if known.get(name) != self.digest(name):
                    return f"its {kind} {name!r} changed"
        return ""

    def _older(self, reads: Iterable[str], writes: Iterable[str]) -> str:
        made = [(self._changed_ns(name), name) for name in writes]
        if not made:
            return "it has no outputs whose times could be compared"
        oldest_ns, oldest = min(made)
        for name in reads:
            if self._changed_ns(name) > oldest_ns:
                return f"its input {name!r} is newer than its output {oldest!r}"
        return ""

    def _changed_ns(self, name: str) -> int:
        return os.stat(os.path.join(self.folder, name)).st_mtime_ns

    # -- files ---------------------------------------------------------------------------------------------------------

    def digest(self, name: str) -> str:
        """The digest of a file, by its name as seen from the folder, or of all files in a folder; empty if there is
        none."""
        path = os.path.join(self.folder, name)
        if os.path.isdir(path):
            return self._tree_digest(path)
        try:
            stamp = _stamp(path)
            kept = self._path("files", name)
            known = _read(kept, _Digest)
            if known is not None and known.stamp == stamp:
                return known.digest
            found = _content_digest(path)
            if _stamp(path) == stamp and time.time_ns() - stamp[1] > SETTLED_NS:
                _write(kept, _Digest(stamp, found))
            return found
        except FileNotFoundError:
            return ""

    def _tree_digest(self, folder: str) -> str:
        found = blake2b(digest_size=DIGEST_BYTES)
        for where, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(where, name)
                told = f"{os.path.relpath(path, folder)}\0{self.digest(path)}\n"
                found.update(told.encode(errors="surrogateescape"))
        return found.hexdigest()

    def _path(self, kind: str, name: str) -> str:
        key = blake2b(name.encode(errors="surrogateescape"), digest_size=DIGEST_BYTES).hexdigest()
        return os.path.join(self._where, kind, key[:2], key)


@contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Let no two runs work in a folder at the same time. A run that is killed leaves no lock behind."""
    os.makedirs(os.path.join(folder, FOLDER), exist_ok=True)
    with open(os.path.join(folder, FOLDER, "lock"), "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another daws run is at work in {folder!r}; wait for its end, or stop it") from None
        except OSError:  # a file system that knows no locks
            pass
        yield


def command_digest(words: str | tuple[str, ...], reads: Iterable[str], writes: Iterable[str]) -> str:
    """The digest of a command: its words, and the names of its files."""
    text = repr((words, sorted(reads), sorted(writes)))
    return blake2b(text.encode(errors="surrogateescape"), digest_size=DIGEST_BYTES).hexdigest()


def _stamp(path: str) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


def _content_digest(path: str) -> str:
    found = blake2b(digest_size=DIGEST_BYTES)
    with open(path, "rb") as file:
        while data := file.read(READ_BYTES):
            found.update(data)
    return found.hexdigest()


def _read(path: str, kind: type[T]) -> T | None:
    """A record that cannot be read is none: what it was about is done again."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _write(path: str, record: msgspec.Struct) -> None:
    partial = f"{path}-{os.getpid()}-{os.urandom(4).hex()}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(partial, "xb") as file:
            file.write(msgspec.json.encode(record))
        os.replace(partial, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)
