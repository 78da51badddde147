"""Files that people and commands made: what they are, and how they get into a run's folder."""

import os
import shutil
from hashlib import file_digest
from pathlib import Path
from typing import Literal

from daws.model.errors import UsageError


class File:
    """A file named by its path, as an argument, input or output of a task. Only the path travels."""

    __slots__ = ("path",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))

    def __repr__(self) -> str:
        return f"File({str(self.path)!r})"

    def __fspath__(self) -> str:
        return str(self.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, File) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    @property
    def size_bytes(self) -> int:
        return self.check().st_size

    def check(self) -> os.stat_result:
        """Its status, or a `UsageError` if it is not there, not a file, or not ours to read."""
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise UsageError(f"no file {self.path}: {error.strerror}") from error
        if not self.path.is_file():
            raise UsageError(f"{self.path} is not a file; name the files in it one by one")
        if not os.access(self.path, os.R_OK):
            raise UsageError(f"{self.path} cannot be read; see its permissions")
        return status

    def digest(self) -> str:
        """What is in it, as 64 hexadecimal digits: equal files have equal digests."""
        self.check()
        with open(self.path, "rb") as file:
            return file_digest(file, "sha256").hexdigest()

    def place_in(self, folder: str | os.PathLike[str], name: str = "", how: Literal["link", "copy"] = "link") -> "File":
        """Make it appear in `folder`, as a second name for the same file or, across file systems, as a copy.

        A program that changes a linked input in place changes the original: use "copy" for such programs.
        """
        self.check()
        name = name or self.path.name
        target = Path(folder, name)
        if os.path.basename(name) != name or name in (".", ".."):
            raise UsageError(f"{name!r} is not a plain file name; inputs go directly into the run's folder")
        if how == "link":
            try:
                os.link(os.path.realpath(self.path), target)
                return File(target)
            except FileExistsError:
                raise UsageError(f"{target} is there already; give the inputs different names") from None
            except OSError:  # another file system, not our own file, too many links
                pass
        try:
            with open(self.path, "rb") as source, open(target, "xb") as copy:
                shutil.copyfileobj(source, copy)
        except FileExistsError:
            raise UsageError(f"{target} is there already; give the inputs different names") from None
        shutil.copymode(self.path, target)
        return File(target)
