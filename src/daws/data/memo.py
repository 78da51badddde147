"""Results on disk, by the digests of their calls: a folder that any number of processes may use at one time.

An entry is one file. It appears under its name when it is complete. Its head describes its content, so an entry that
was cut off or overwritten counts as missing. Beside the entries stand notes about calls and their dependencies, which
explain why a later call is not the same. A lost note costs only an explanation.

    "dawsmemo"  version u32  head_size u32  digest of the head 16 | head | pad | output | pad | output …
"""

import mmap
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from struct import Struct

import msgspec

from daws.data.codec import write_parts
from daws.model.errors import UnavailableError, UsageError

Buffer = bytes | bytearray | memoryview
MAGIC = b"dawsmemo"
VERSION = 1
ALIGN_BYTES = 64
DIGEST_BYTES = 16
HEAD_BYTES_MAX = 1 << 24
NOTES_BYTES_MAX = 1 << 24
"""The number of bytes that are read of the notes about one function, from their end."""
_FIRST = Struct("<8sII16s")
SUFFIX = ".memo"
NOTES = "calls"


class Head(msgspec.Struct):
    """The head of an entry. `made` is when it was made, in seconds as of `time.time`."""

    name: str
    made: float
    sizes: list[int]
    digests: list[bytes]


class Note(msgspec.Struct):
    """The dependencies of a call: digests by part of the code, and of the arguments by the names that people use."""

    key: str
    parts: dict[str, str]
    args: list[tuple[str, str]]


class MemoEntry(msgspec.Struct):
    """A result that was found: its outputs, which keep their file mapped while they live."""

    path: str
    head: Head
    outputs: list[memoryview]


class MemoFolder:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the folder, or make it. Its content is unpickled, so no other user may write there."""
        self.path = Path(os.path.abspath(path))
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = os.stat(self.path)
            if not self.path.is_dir():
                raise NotADirectoryError(20, "it is not a folder")
        except OSError as error:
            raise UsageError(f"memo={str(self.path)!r}: {error.strerror}") from None
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise UsageError(
                f"memo={str(self.path)!r}: other users can write there, and its content is run as your code; "
                f"chmod go-w {self.path}, or name another folder"
            )
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise UsageError(f"memo={str(self.path)!r}: nothing can be written there")

    def __repr__(self) -> str:
        return f"MemoFolder({str(self.path)!r})"

    def entry_path(self, key: str) -> Path:
        return self.path / key[:2] / f"{key}{SUFFIX}"

    def find(self, key: str) -> tuple[MemoEntry | None, str]:
        """The entry, or the reason why there is none: nothing if it never existed, else its fault."""
        path = self.entry_path(key)
        try:
            found = read_entry(path)
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            return None, f"cannot be read: {error.strerror}"
        except ValueError as error:
            with suppress(OSError):
                os.unlink(path)
            return None, str(error)
        with suppress(OSError):
            os.utime(path)  # the time of its last use, for tools that tidy up
        return found, ""

    def keep(self, key: str, name: str, outputs: Sequence[Buffer]) -> int:
        """Write an entry, and return its size in bytes. OSError if it cannot be written."""
        digests = [blake2b(one, digest_size=DIGEST_BYTES).digest() for one in outputs]
        head = msgspec.msgpack.encode(Head(name, time.time(), [len(one) for one in outputs], digests))
        first = _FIRST.pack(MAGIC, VERSION, len(head), blake2b(head, digest_size=DIGEST_BYTES).digest())
        parts: list[Buffer] = [first, head]
        end = len(first) + len(head)
        for one in outputs:
            pad = -end % ALIGN_BYTES
            parts += [bytes(pad), one]
            end += pad + len(one)
        path = self.entry_path(key)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        partial = path.with_name(f".{key}-{os.getpid()}-{os.urandom(4).hex()}")
        try:
            fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                write_parts(fd, [part for part in parts if len(part)])
            finally:
                os.close(fd)
            os.replace(partial, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(partial)
        return end

    # -- notes ---------------------------------------------------------------------------------------------------------

    def _notes_path(self, name: str) -> Path:
        return self.path / NOTES / blake2b(name.encode(errors="replace"), digest_size=DIGEST_BYTES).hexdigest()

    def note(self, name: str, note: Note) -> None:
        path = self._notes_path(name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, msgspec.json.encode(note) + b"\n")
        finally:
            os.close(fd)

    def notes(self, name: str) -> Iterator[Note]:
        """The notes about one function, oldest first."""
        try:
            with open(self._notes_path(name), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - NOTES_BYTES_MAX))
                lines = file.read().split(b"\n")
        except OSError:
            return
        for line in lines:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                yield msgspec.json.decode(line, type=Note)

    # -- for people ----------------------------------------------------------------------------------------------------

    def paths(self) -> Iterator[Path]:
        """The files of all entries."""
        for folder in sorted(self.path.glob("[0-9a-f][0-9a-f]")):
            yield from sorted(folder.glob(f"*{SUFFIX}"))

    def clear(self, paths: "Iterator[Path] | Sequence[Path] | None" = None) -> int:
        """Remove entries (all, unless some are named), and return their number. The folder and files of others stay."""
        count = 0
        try:
            for path in [*self.paths()] if paths is None else paths:
                with suppress(FileNotFoundError):
                    os.unlink(path)
                    count += 1
            if paths is None:
                for left in [*self.path.glob("[0-9a-f][0-9a-f]/.*"), *self.path.glob(f"{NOTES}/*")]:
                    with suppress(FileNotFoundError):
                        os.unlink(left)
            for folder in [*self.path.glob("[0-9a-f][0-9a-f]"), self.path / NOTES]:
                with suppress(OSError):
                    folder.rmdir()
        except OSError as error:
            raise UnavailableError(f"{error.filename} cannot be removed: {error.strerror}", retry=False) from error
        return count


def read_head(path: Path) -> Head:
    """The head of an entry; ValueError if the file is none."""
    with open(path, "rb") as file:
        return _head(file.read(_FIRST.size), file.read, os.fstat(file.fileno()).st_size)[0]


def read_entry(path: Path) -> MemoEntry:
    """All of it, checked. ValueError if it is none."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head, start = _head(file.read(_FIRST.size), file.read, size)
        view = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
    outputs: list[memoryview] = []
    for length, digest in zip(head.sizes, head.digests, strict=True):
        start = -(-start // ALIGN_BYTES) * ALIGN_BYTES
        output = view[start : start + length]
        if blake2b(output, digest_size=DIGEST_BYTES).digest() != digest:
            raise ValueError("its content was damaged after it was written")
        outputs.append(output)
        start += length
    return MemoEntry(str(path), head, outputs)


def _head(first: bytes, read: "object", size: int) -> tuple[Head, int]:
    if len(first) < _FIRST.size:
        raise ValueError("it was cut off")
    magic, version, length, digest = _FIRST.unpack(first)
    if magic != MAGIC or version != VERSION:
        raise ValueError("it was not written by this version of daws")
    if length > min(HEAD_BYTES_MAX, size):
        raise ValueError("it was cut off or overwritten")
    data: bytes = read(length)  # type: ignore[operator]
    if blake2b(data, digest_size=DIGEST_BYTES).digest() != digest:
        raise ValueError("it was cut off or overwritten")
    head = msgspec.msgpack.decode(data, type=Head)
    start = end = _FIRST.size + length
    for one in head.sizes:
        end = -(-end // ALIGN_BYTES) * ALIGN_BYTES + one
    if len(head.sizes) != len(head.digests) or end != size:
        raise ValueError("it was cut off")
    return head, start
