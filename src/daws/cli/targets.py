"""Files that a command will write, against each other and against the one that it reads."""

import os
from collections.abc import Mapping
from pathlib import Path

from daws.model.errors import UsageError

WORKLOAD = "the workload"


def check_apart(workload: str, targets: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Refuse to write over the workload, or two things into one file. Devices and pipes take whatever comes."""
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
