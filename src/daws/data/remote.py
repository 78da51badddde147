"""Files at URLs, through fsspec: the only module that knows it. Needs the extra `daws[fsspec]`."""

import io
import os
import shutil
from typing import Any, BinaryIO

from daws.data.outside import PLAIN_MODE
from daws.model.errors import UnavailableError, UsageError


def _file_system(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise UsageError(f"{url}: files at URLs need fsspec; install daws[fsspec]") from None
    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:  # an unknown protocol, or one whose package is missing
        raise UsageError(f"{url}: {error}") from error
    return found


class Remote:
    """A file at a URL, as it was when it was named. Each task that needs it fetches it."""

    __slots__ = ("noted", "size", "url")

    def __init__(self, url: str, size: int = -1, noted: int = 0) -> None:
        self.url = url
        self.size = size
        self.noted = noted
        if size < 0:
            files, path = _file_system(url)
            try:
                if not files.isfile(path):
                    raise UsageError(f"no file {url}")
                self.size = int(files.size(path) or 0)
                self.noted = files.checksum(path)
            except OSError as error:
                raise _unavailable(url, error) from error

    def __reduce__(self) -> Any:
        return Remote, (self.url, self.size, self.noted)

    def __repr__(self) -> str:
        return repr(self.url)

    def size_bytes(self) -> int:
        return self.size

    def open(self) -> BinaryIO:
        files, path = _file_system(self.url)
        try:
            if files.checksum(path) != self.noted:
                raise UsageError(f"{self.url} has changed since it was named; make a new daws.File of it")
            found: BinaryIO = files.open(path, "rb")
        except OSError as error:
            raise _unavailable(self.url, error) from error
        return found

    def path(self, name: str) -> str:
        raise UsageError(f"{self.url} has no path on this machine; use open() or read_bytes()")

    def place(self, target: str) -> None:
        with self.open() as opened, open(target, "xb") as copy:
            shutil.copyfileobj(opened, copy, io.DEFAULT_BUFFER_SIZE * 32)

    def mode(self) -> int:
        return PLAIN_MODE

    def stamp(self) -> None:
        return None


def _unavailable(url: str, error: OSError) -> UnavailableError:
    """The error for a file at a URL, with more detail: fsspec names no more than the path of a missing file."""
    why = str(error)
    if isinstance(error, FileNotFoundError):
        why = "it is not there, where it was asked for"
        if url.startswith("memory:"):
            why += ": such files are seen by the process alone that wrote them; hand in bytes, or cluster.put(…)"
    return UnavailableError(f"{url} cannot be had: {why}", retry=True)


def upload(opened: BinaryIO, url: str) -> str:
    """Write what can be read to a URL."""
    files, path = _file_system(url)
    try:
        files.makedirs(os.path.dirname(path), exist_ok=True)
        with files.open(path, "wb") as copy:
            shutil.copyfileobj(opened, copy, io.DEFAULT_BUFFER_SIZE * 32)
    except OSError as error:
        raise UnavailableError(f"{url} cannot be written: {error}", retry=True) from error
    return url
