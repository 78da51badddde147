"""The files of one store: `state.N` is the state before the calls in `log.N`, which `log.N+1` continues.

A file gets its name when its beginning is safe, a state when it is complete; the newest of several states is valid. A
log that another one continues ends with a seal. A store that was closed in good order leaves a note of its last log and
of the length of that. A file that has lost its end is therefore noticed. If the store was killed, the last log may end
in the middle of a write that was never reported as safe.

A process that has the folder open holds a lock on it, which the kernel drops when the process ends, in whatever way.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from mmap import ACCESS_READ, mmap
from pathlib import Path

import msgspec

from daws.model.errors import LogError
from daws.store.log.frames import BadFrame, frame, frames, is_unlucky_end
from daws.store.log.logged import StoreSettings

FORMAT = 3
_TITLE = b"daws store, format "
TITLE = b"%s%d\n" % (_TITLE, FORMAT)
_NAME = re.compile(r"(log|state)\.(\d{6,})")
_LEFT_OVER = re.compile(r"\.(log|state)\.\d{6,}\.\d+")
_LOCK = "lock"
_CLOSED = "closed"
_SETTINGS = msgspec.msgpack.Decoder(StoreSettings)


class ClosedNote(msgspec.Struct):
    """The note of a store that was closed in good order: the number of its last log, and the length of that."""

    log: int
    size_bytes: int


class Folder:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def log(self, number: int) -> Path:
        return self.path / f"log.{number:06}"

    def state(self, number: int) -> Path:
        return self.path / f"state.{number:06}"

    def unfinished(self, path: Path) -> Path:
        """The name of a file until it may have its own."""
        return self.path / f".{path.name}.{os.getpid()}"

    def numbers(self, kind: str) -> list[int]:
        """The numbers of the files of a kind, in order."""
        found = (_NAME.fullmatch(name) for name in os.listdir(self.path))
        return sorted(int(one[2]) for one in found if one and one[1] == kind)

    def newest(self) -> tuple[int, list[int]]:
        """The number of the valid state (0: none yet), and those of the logs that continue it."""
        states, logs = self.numbers("state"), self.numbers("log")
        begin = states[-1] if states else 0
        logs = [number for number in logs if number >= begin]
        first = begin or 1
        expected = range(first, first + max(len(logs), bool(begin)))
        for number, there in zip_longest(expected, logs):
            if number != there:
                raise LogError(f"{self.log(number)} is missing; bring the folder back from a copy")
        return begin, logs

    def lock(self) -> int:
        """Make the folder if needed, and lock it. Returns the file descriptor to close in the end."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            names = os.listdir(self.path)
            if names and _LOCK not in names:
                raise LogError(f"{self.path} is no folder of a store ({names[0]} is in it); name a new or empty folder")
            lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LogError(f"cannot keep a store in {self.path}: {error.strerror}; name another folder") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            who = os.pread(lock, 20, 0).decode(errors="replace").strip() or "unknown"
            os.close(lock)
            raise LogError(
                f"{self.path} is in use by process {who}; stop that first, or name another folder"
            ) from error
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)
        return lock

    def note_closed(self, log: int, size_bytes: int, durable: bool) -> None:
        part = self.unfinished(self.log(log))
        with open(part, "wb", opener=_private) as file:
            file.write(msgspec.json.encode(ClosedNote(log, size_bytes)))
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(part, self.path / _CLOSED)
        if durable:
            self.sync()

    def check_closed(self, logs: list[int]) -> bool:
        """Whether the store was closed in good order. Raise LogError if its last log has changed since then."""
        path = self.path / _CLOSED
        try:
            noted = msgspec.json.decode(path.read_bytes(), type=ClosedNote)
        except FileNotFoundError:
            return False
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise LogError(
                f"{path} cannot be read: {error}; bring the folder back from a copy, or remove it"
            ) from error
        last = self.log(noted.log)
        if logs[-1:] != [noted.log]:
            raise LogError(
                f"{last} was the last log, and is missing or not the last; bring the folder back from a copy"
            )
        size_bytes = last.stat().st_size
        if size_bytes != noted.size_bytes:
            raise LogError(
                f"{last} has {size_bytes:,} bytes, and had {noted.size_bytes:,} when its store was closed; bring it "
                f"back from a copy, or lose what is missing: remove {path}"
            )
        return True

    def forget_closed(self) -> None:
        """Remove the note, before the store changes."""
        with suppress(FileNotFoundError):
            os.unlink(self.path / _CLOSED)

    def tidy(self) -> None:
        """Remove files that are no longer valid, and states that were never finished."""
        states = self.numbers("state")
        begin = states[-1] if states else 0
        old = [self.log(number) for number in self.numbers("log") if number < begin]
        old += [self.state(number) for number in states if number < begin]
        old += [self.path / name for name in os.listdir(self.path) if _LEFT_OVER.fullmatch(name)]
        for path in old:
            with suppress(FileNotFoundError):
                path.unlink()

    def sync(self) -> None:
        """Sync the folder, so that new names are safe as well."""
        folder = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def opening(settings: StoreSettings) -> bytes:
    """The beginning of each file."""
    return TITLE + frame(msgspec.msgpack.encode(settings), 0)


def _bytes_of(path: Path) -> memoryview:
    """The content of a file, as bytes that are read when they are accessed."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return memoryview(b"")
        return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))


class Contents:
    """One file of a store, read from its beginning: its settings, and then its parts."""

    def __init__(self, path: Path, may_be_cut: bool) -> None:
        """Open a file. `may_be_cut`: it was being written when its process ended, so its end may be missing."""
        self.path = path
        self.whole_bytes = 0  # the length of its valid part, known once all was read
        self.is_sealed = False  # its last frame says that no more calls follow, known once all was read
        self._data = _bytes_of(path)
        self._may_be_cut = may_be_cut
        self._parts = self._read()

    def settings(self) -> StoreSettings:
        """The settings of the store."""
        for payload in self._parts:
            return _SETTINGS.decode(payload)
        raise LogError(
            f"{self.path} does not say how its store was made: its end is missing; bring it back from a copy"
        )

    def parts(self) -> Iterator[memoryview]:
        return self._parts

    @property
    def lost_bytes(self) -> int:
        return len(self._data) - self.whole_bytes

    def _read(self) -> Iterator[memoryview]:
        data = self._data
        if bytes(data[: len(TITLE)]) != TITLE:
            self._refuse_title(bytes(data[:40]))
        self.whole_bytes = len(TITLE)
        try:
            for behind, payload in frames(data, len(TITLE)):
                self.is_sealed = not payload
                if payload:
                    yield payload
                self.whole_bytes = behind
        except BadFrame as bad:
            if not self._may_be_cut or not is_unlucky_end(data, bad.offset):
                raise LogError(
                    f"{self.path} is damaged at byte {bad.offset:,} of {len(data):,}; bring it back from a copy, or "
                    f"lose what came later: truncate -s {bad.offset} {self.path.name}, and remove the logs after it"
                ) from bad

    def _refuse_title(self, title: bytes) -> None:
        if TITLE.startswith(title):
            raise LogError(f"{self.path} has lost all but {len(title)} bytes; bring it back from a copy")
        if title.startswith(_TITLE):
            version = title[len(_TITLE) :].split(b"\n")[0].decode(errors="replace")
            raise LogError(
                f"{self.path} has format {version}, and this daws reads format {FORMAT}; use the daws that wrote it"
            )
        raise LogError(f"{self.path} is no file of a daws store; move it away, or name another folder")
