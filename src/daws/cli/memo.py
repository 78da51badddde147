"""`daws memo`: the folder of results that are reused."""

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from daws.cli.table import count, grid, size
from daws.data.memo import MemoFolder, read_entry, read_head
from daws.model.errors import UsageError

DAY_S = 86_400.0
DAMAGED = "(damaged)"


class _Found:
    """One entry."""

    __slots__ = ("name", "path", "size_bytes", "used_s")

    def __init__(self, path: Path, is_read: bool) -> None:
        status = os.stat(path)
        self.path = path
        self.size_bytes = status.st_size
        self.used_s = status.st_mtime
        try:
            self.name = read_entry(path).head.name if is_read else read_head(path).name
        except ValueError:
            self.name = DAMAGED


def memo(arguments: argparse.Namespace) -> int:
    if not os.path.isdir(arguments.folder):
        raise UsageError(f"there is no folder {arguments.folder}")
    if arguments.unused_days is not None and arguments.unused_days < 0:
        raise UsageError(f"--unused-days {arguments.unused_days:g}: give a number of days from 0")
    folder = MemoFolder(arguments.folder)
    found = [*_chosen(folder, arguments)]
    if arguments.clear:
        is_all = arguments.function is None and arguments.unused_days is None
        removed = folder.clear(None if is_all else [one.path for one in found])
        print(f"removed {removed:,} results, {size(sum(one.size_bytes for one in found))}")
        return 0
    _show(found, arguments.json)
    return int(arguments.check and any(one.name == DAMAGED for one in found))


def _chosen(folder: MemoFolder, arguments: argparse.Namespace) -> Iterator[_Found]:
    before_s = None if arguments.unused_days is None else time.time() - arguments.unused_days * DAY_S
    for path in folder.paths():
        with suppress(FileNotFoundError):  # somebody else tidies up, too
            one = _Found(path, arguments.check)
            if arguments.function in (None, one.name) and (before_s is None or one.used_s <= before_s):
                yield one


def _show(found: list[_Found], is_json: bool) -> None:
    names: dict[str, list[_Found]] = {}
    for one in found:
        names.setdefault(one.name, []).append(one)
    rows = [("function", "results", "size", "last used")]
    for name, entries in sorted(names.items()):
        size_bytes, used_s = sum(one.size_bytes for one in entries), max(one.used_s for one in entries)
        if is_json:
            print(json.dumps({"function": name, "results": len(entries), "bytes": size_bytes, "used": used_s}))
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(used_s))
        rows.append((name, count(len(entries)), size(size_bytes), used))
    if not is_json:
        print(grid(rows, right=(1, 2)) if found else "there are no results")
