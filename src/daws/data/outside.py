"""Files that people and programs made, as inputs of tasks: `File` is the class for users, a *source* says where it is.

A file of the user's own stays where it is and is never copied on this machine. Its size and the time of its last change
tell a task that it is still the same file. A file that a command made is an object like any other: write-once, on disk
under its object id or, when it is small, inside messages. Files at URLs are in `remote`.
"""

import io
import os
import weakref
from contextlib import suppress
from hashlib import blake2b
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol

from daws.model.errors import UnavailableError, UsageError

PLAIN_MODE = 0o666
"""The permission bits of a file of which none are known. As with all modes, the reader's umask is still to be taken off
where a new file is made."""

NAME_BYTES_MAX = 255
LENT_READ_BYTES = 1 << 16
WRITE_BYTES_MAX = 1 << 26
DIGEST_BYTES = 16
Stamp = tuple[int, int, int]
"""Size in bytes, time of the last change in nanoseconds, and number of the inode."""

_numbers = count()


def checked_name(name: str | os.PathLike[str], what: str) -> str:
    """A name for a file inside a run's folder, perhaps in a folder there; never one that leads out of it."""
    text: Any = name
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    if not isinstance(text, str) or not text or "\0" in text:
        raise UsageError(f"{what} {text!r}: give a file name")
    path = PurePosixPath(text)
    if text.endswith("/"):
        raise UsageError(f"{what} {text!r} is a folder; name the files in it one by one, or pack it into one")
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise UsageError(f"{what} {text!r} leads out of the command's own folder; give the name of a file in it")
    if any(len(os.fsencode(part)) > NAME_BYTES_MAX for part in path.parts):
        raise UsageError(f"{what} {text[:40]!r}…: the name is longer than {NAME_BYTES_MAX} bytes")
    return str(path)


class Source(Protocol):
    """Where the bytes of a file are."""

    def size_bytes(self) -> int: ...

    def open(self) -> BinaryIO: ...

    def path(self, name: str) -> str:
        """A path that can be opened as long as the source lives; its last part is `name` where that can be chosen."""

    def place(self, target: str) -> None:
        """Make the file appear under this path, without copying it if that is possible."""

    def mode(self) -> int:
        """Its permission bits."""

    def stamp(self) -> Stamp | None:
        """The stamp that changes when the file is written to; None if that cannot happen."""


class Own:
    """A file of the user's own, as it was when it was named: `noted` are its size and the time of its last change."""

    __slots__ = ("noted", "where")

    def __init__(self, where: str, noted: tuple[int, int]) -> None:
        self.where = where
        self.noted = noted

    def __reduce__(self) -> Any:
        return Own, (self.where, self.noted)

    def __repr__(self) -> str:
        return repr(self.where)

    def _check(self) -> None:
        if stamp_of(self.where)[:2] != self.noted:
            raise UsageError(f"{self.where} has changed since it was named; make a new daws.File of it")

    def size_bytes(self) -> int:
        return self.noted[0]

    def open(self) -> BinaryIO:
        self._check()
        return open(self.where, "rb")

    def path(self, name: str) -> str:
        self._check()
        return self.where

    def place(self, target: str) -> None:
        self._check()
        link(self.where, target)

    def mode(self) -> int:
        return kept_mode(os.stat(self.where).st_mode)

    def stamp(self) -> Stamp | None:
        return stamp_of(self.where)


class _Brought:
    """A file without a name of its own; it gets one in `scratch` when its path is asked for."""

    __slots__ = ("__weakref__", "_named", "scratch")

    def __init__(self, scratch: str) -> None:
        self.scratch = scratch
        self._named = ""

    def place(self, target: str) -> None:
        raise NotImplementedError

    def path(self, name: str) -> str:
        if not self._named:
            import shutil  # it brings much along, which other programs need not wait for

            folder = f"{self.scratch}/named-{os.getpid()}-{next(_numbers)}"
            os.mkdir(folder, 0o700)
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            named = f"{folder}/{os.path.basename(name)}"
            self.place(named)
            self._named = named
        return self._named

    def __reduce__(self) -> Any:
        raise UsageError("a file that a task was given cannot be sent on; return what is in it, or a copy of your own")


class Stored(_Brought):
    """A file that a command made, at the path of its object."""

    __slots__ = ("where",)

    def __init__(self, where: str, scratch: str) -> None:
        super().__init__(scratch)
        self.where = where

    def __repr__(self) -> str:
        return f"{self.size_bytes():,} bytes"

    def size_bytes(self) -> int:
        return os.stat(self.where).st_size

    def open(self) -> BinaryIO:
        return open(self.where, "rb")

    def place(self, target: str) -> None:
        link(self.where, target)

    def mode(self) -> int:
        return kept_mode(os.stat(self.where).st_mode)

    def stamp(self) -> Stamp | None:
        return stamp_of(self.where)


class Small(_Brought):
    """A small file that a command made, in memory, as `small_file` has it."""

    __slots__ = ("content",)

    def __init__(self, content: bytes, scratch: str) -> None:
        super().__init__(scratch)
        self.content = content

    def __repr__(self) -> str:
        return f"{self.size_bytes():,} bytes"

    def size_bytes(self) -> int:
        return len(self.content) - 1

    def open(self) -> BinaryIO:
        return io.BytesIO(self.content[1:])

    def place(self, target: str) -> None:
        _write_new(target, self.mode(), memoryview(self.content)[1:])

    def mode(self) -> int:
        return kept_mode(self.content[0])

    def stamp(self) -> Stamp | None:
        return None


class Restored(Own):
    """A file that a command made in an earlier run, in a folder of the session."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return Restored, (self.where, self.noted)


class Lent(_Brought):
    """A file that is there as a buffer, wherever that comes from."""

    __slots__ = ("_mode", "content")

    def __init__(self, content: bytes | memoryview, mode: int, scratch: str = "") -> None:
        super().__init__(scratch or os.environ.get("TMPDIR", "/tmp"))
        self.content = memoryview(content).cast("B")
        self._mode = mode

    def __repr__(self) -> str:
        return f"{self.size_bytes():,} bytes"

    def size_bytes(self) -> int:
        return len(self.content)

    def open(self) -> BinaryIO:
        return io.BufferedReader(_LentReader(self.content), LENT_READ_BYTES)

    def place(self, target: str) -> None:
        _write_new(target, self.mode(), self.content)

    def mode(self) -> int:
        return kept_mode(self._mode)

    def stamp(self) -> Stamp | None:
        return None


def _write_new(target: str, mode: int, content: memoryview) -> None:
    """Write a new file. A full disk may take a part of a write before it refuses the next: that is an error here, never
    a shorter file."""
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(fd, "wb", buffering=0) as file:
        done = 0
        while done < len(content):
            done += file.write(content[done : done + WRITE_BYTES_MAX])


class _LentReader(io.RawIOBase):
    """A reader of a buffer that does not copy all of it."""

    def __init__(self, content: memoryview) -> None:
        self._left = content

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        count = min(len(target), len(self._left))
        target[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


class File:
    """A file as an input of a command or a function.

    `File(path)` is a file of your own in its present state. It is not copied; a task that finds it changed fails and
    says so. `File("s3://…")` and other URLs need the extra `daws[fsspec]`. Files that commands make are of this class
    too. `name` is the name of the file in the folder of a command that reads it.
    """

    __slots__ = ("_keeper", "name", "source")

    def __init__(self, path: str | os.PathLike[str], name: str = "") -> None:
        text = os.fsdecode(path)
        self._keeper: Any = None  # what keeps the object in being, in the client
        self.source: Source
        if "://" in text:
            from daws.data.remote import Remote

            self.source = Remote(text)
        else:
            where = os.path.abspath(text)
            self.source = Own(where, stamp_of(where)[:2])
        self.name = checked_name(name or os.path.basename(text), "the name")

    @classmethod
    def of(cls, name: str, source: Source, keeper: Any = None) -> "File":
        """A file from elsewhere; `keeper` stands for it where it is pickled."""
        file = cls.__new__(cls)
        file.name = name
        file.source = source
        file._keeper = keeper
        return file

    def __reduce__(self) -> Any:
        if self._keeper is not None:
            return self._keeper.__reduce__()
        return File.of, (self.name, self.source)

    def __repr__(self) -> str:
        return f"<File {self.name}: {self.source!r}>"

    def __fspath__(self) -> str:
        return self.source.path(self.name)

    def is_same(self, other: object) -> bool:
        """Is it the same file, as far as can be known without looking into it?"""
        if not isinstance(other, File):
            return False
        where = getattr(self.source, "where", None)
        return self.source is other.source or (where is not None and where == getattr(other.source, "where", None))

    @property
    def path(self) -> Path:
        """The path where the file can be read, as long as this File or its future exists."""
        return Path(self.source.path(self.name))

    @property
    def size_bytes(self) -> int:
        """The size of the file."""
        return self.source.size_bytes()

    def open(self, mode: str = "rb", encoding: str = "utf-8") -> Any:
        """Open the file for reading: "rb" for bytes, "r" for text."""
        if mode not in ("rb", "r", "rt"):
            raise UsageError(f"mode={mode!r}: files are read, not written; give 'rb' or 'r'")
        opened = self.source.open()
        return opened if mode == "rb" else io.TextIOWrapper(opened, encoding)

    def read_bytes(self) -> bytes:
        """Read the whole file as bytes."""
        with self.source.open() as opened:
            return opened.read()

    def content_digest(self) -> bytes:
        """A digest of the file's content."""
        found = blake2b(digest_size=DIGEST_BYTES)
        with self.source.open() as opened:
            while data := opened.read(1 << 20):
                found.update(data)
        return found.digest()

    def read_text(self, encoding: str = "utf-8") -> str:
        """Read the whole file as text."""
        return self.read_bytes().decode(encoding)

    def copy_to(self, target: str | os.PathLike[str]) -> Path | str:
        """Copy the file to a path, a folder or a URL, where it appears when it is complete. Returns the target."""
        text = os.fspath(target)
        if "://" in text:
            from daws.data.remote import upload

            with self.source.open() as opened:
                return upload(opened, text)
        from shutil import copyfileobj

        goal = Path(text, os.path.basename(self.name)) if os.path.isdir(text) else Path(text)
        partial = goal.with_name(f".daws-{os.getpid()}-{next(_numbers)}")
        try:
            with self.source.open() as opened, open(partial, "xb", opener=self._opener) as copy:
                copyfileobj(opened, copy, 1 << 20)
            os.replace(partial, goal)
        except OSError as error:
            raise UnavailableError(f"cannot copy {self.name} to {goal}: {error.strerror}", retry=False) from error
        finally:
            with suppress(FileNotFoundError):
                os.unlink(partial)
        return goal

    def _opener(self, path: str, flags: int) -> int:
        return os.open(path, flags, self.source.mode())


class Out:
    """A file that a command makes, by its name in the command's own folder."""

    __slots__ = ("name",)

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self.name = checked_name(name, "the output")

    def __reduce__(self) -> Any:
        return Out, (self.name,)

    def __repr__(self) -> str:
        return f"Out({self.name!r})"


def stamp_of(path: str) -> Stamp:
    """The stamp of a file that can be read; a `UsageError` if it cannot."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise UsageError(f"no file {path}: {error.strerror}") from None
    if not os.path.isfile(path):
        raise UsageError(f"{path} is not a file; name the files in it one by one")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path} cannot be read; see its permissions")
    return status.st_size, status.st_mtime_ns, status.st_ino


def lent_file(name: str, content: bytes | memoryview, mode: int) -> File:
    """A file of which the content was sent along."""
    return File.of(name, Lent(content, mode))


def kept_mode(st_mode: int) -> int:
    """The part of a file's mode that is kept: the permissions to read, write and execute it. Its owner may always read
    it, since an unreadable copy would be useless."""
    return st_mode & 0o777 | 0o400


def small_file(content: bytes, mode: int = PLAIN_MODE) -> bytes:
    """A small file inside a message: a byte with its mode, in which the owner's right to read goes without saying."""
    return bytes([mode & 0o377]) + content


def link(path: str, target: str) -> None:
    """A second name for a file: a hard link, as programs like it best, or where that cannot be a symbolic one."""
    try:
        os.link(os.path.realpath(path), target)
    except FileExistsError:
        raise
    except OSError:  # another file system, another user's file, too many links
        os.symlink(path, target)
