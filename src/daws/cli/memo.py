"""`daws memo`: the folder of results that are reused."""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from daws.cli.importing import importing
from daws.cli.messages import EXIT_FAILED, number_of
from daws.cli.options import Once, Parser, add_json, number
from daws.model.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from daws.data.memo import MemoFolder

ABOUT = """\
List the results that tasks with memo= have kept in a folder, by function; or remove them. A
result that was removed is computed again when it is needed."""

EXAMPLES = """\
examples:
  daws memo results                     by function: how many, how large, when used last
  daws memo results --check             read all results; the exit code is 1 if one is damaged
  daws memo results --clear --unused-days 30"""

DAY_S = 86_400.0
DAMAGED = "(damaged)"


class _Found(NamedTuple):
    """A result in the folder."""

    path: "Path"
    name: str
    size_bytes: int
    used_s: float


def add_arguments(parser: Parser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder in daws.Cluster(memo=…)")
    parser.add_argument(
        "--function", metavar="NAME", action=Once, help="only results of one function, by the name in the list"
    )
    parser.add_argument(
        "--unused-days", metavar="N", action=Once, type=number, help="only results that were not used for N days"
    )
    parser.add_argument("--check", action="store_true", help="read all results; the exit code is 1 if one is damaged")
    parser.add_argument("--clear", action="store_true", help="remove the results")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.cli.table import as_json, count, grid, size
        from daws.data.memo import MemoFolder

    if not os.path.isdir(arguments.folder):
        raise UsageError(f"there is no folder {arguments.folder}")
    if arguments.unused_days is not None and arguments.unused_days < 0:
        raise UsageError(f"--unused-days {arguments.unused_days:g}: give a number of days from 0")
    folder = MemoFolder(arguments.folder)
    found = [*_chosen(folder, arguments)]
    size_bytes = sum(one.size_bytes for one in found)
    if arguments.clear:
        is_all = arguments.function is None and arguments.unused_days is None
        removed = folder.clear(None if is_all else [one.path for one in found])
        document = {"results_removed": removed, "bytes": size_bytes}
        line = f"removed {number_of(removed, 'result')}, {size(size_bytes)}"
        print(as_json(document) if arguments.json else line)
        return 0
    rows = _by_function(found)
    if arguments.json:
        keys = ("function", "results", "bytes", "used")
        print(as_json([dict(zip(keys, row, strict=True)) for row in rows]))
    elif not rows:
        print("there are no results")
    else:
        head = ("function", "results", "size", "last used")
        cells = [
            (name, count(results), size(total), time.strftime("%Y-%m-%d %H:%M", time.localtime(used_s)))
            for name, results, total, used_s in rows
        ]
        print(grid([head, *cells], right=(1, 2)))
    return EXIT_FAILED if arguments.check and any(one.name == DAMAGED for one in found) else 0


def _chosen(folder: "MemoFolder", arguments: argparse.Namespace) -> Iterator[_Found]:
    before_s = None if arguments.unused_days is None else time.time() - arguments.unused_days * DAY_S
    for path in folder.paths():
        with suppress(FileNotFoundError):  # another process may remove results, too
            one = _read(path, arguments.check)
            if arguments.function in (None, one.name) and (before_s is None or one.used_s <= before_s):
                yield one


def _read(path: "Path", is_whole: bool) -> _Found:
    """Read the head of a result, or all of it."""
    from daws.data.memo import read_entry, read_head

    status = os.stat(path)
    try:
        name = read_entry(path).head.name if is_whole else read_head(path).name
    except ValueError:
        name = DAMAGED
    return _Found(path, name, status.st_size, status.st_mtime)


def _by_function(found: list[_Found]) -> list[tuple[str, int, int, float]]:
    """The number of results, their bytes and the time of the last use, by function."""
    names: dict[str, list[_Found]] = {}
    for one in found:
        names.setdefault(one.name, []).append(one)
    return [
        (name, len(some), sum(one.size_bytes for one in some), max(one.used_s for one in some))
        for name, some in sorted(names.items())
    ]
