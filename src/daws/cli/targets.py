"""A check of the files that a command will write, against each other and against the file that it reads."""

import os
from collections.abc import Mapping
from pathlib import Path

from daws.model.errors import UnavailableError, UsageError

WORKLOAD = "the workload"


def check_apart(workload: str, targets: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Refuse to overwrite the workload, or to write two things into one file. Devices and pipes may be given twice."""
    taken = {os.path.realpath(workload): WORKLOAD} if Path(workload).is_file() else {}
    for option, target in targets.items():
        if target is None:
            continue
        path = os.path.realpath(target)
        if os.path.exists(path) and not os.path.isfile(path):
            continue
        other = taken.setdefault(path, option)
        if other != option:
            raise UsageError(f"{option} {os.fspath(target)!r}: this is the file of {other} already")


def check_writable(option: str, target: str | None, others: str = "") -> None:
    """Refuse a file that cannot be written. `others` names other values that the option takes."""
    if target is None:
        return
    path = Path(target)
    if not path.name or path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{option} {target!r}: expected the name of a file in a folder that is there{others}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{option} {target!r}: cannot be written")


def write_text(option: str, target: str, text: str) -> None:
    try:
        Path(target).write_text(text)
    except OSError as error:
        raise UnavailableError(f"{option} {target!r}: cannot be written: {error.strerror}", retry=True) from error
