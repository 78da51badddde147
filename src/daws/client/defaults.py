"""Defaults of `daws.Cluster()` from the environment, which `daws run` sets for the script it runs.

The only place that reads these variables.
"""

import os
from itertools import count

from daws.model.errors import UsageError

NODES = "DAWS_NODES"
WORKERS = "DAWS_WORKERS"
STRATEGY = "DAWS_STRATEGY"
TRACE = "DAWS_TRACE"
EXPORT = "DAWS_EXPORT"
PLOT = "DAWS_PLOT"
MEMO = "DAWS_MEMO"
_clusters = {name: count(1) for name in (TRACE, EXPORT, PLOT)}
_taken: set[str] = set()


def default_nodes() -> int:
    return _number(NODES) or 1


def default_workers(nodes: int = 1) -> int:
    """The number of workers of each node: its share of the processors of this process, unless the environment says
    otherwise."""
    return _number(WORKERS) or max(1, len(os.sched_getaffinity(0)) // nodes)


def _number(name: str) -> int:
    text = os.environ.get(name, "")
    if text and (not text.isascii() or not text.isdigit() or len(text) > 6):
        raise UsageError(f"{name}={text!r}: expected a whole number")
    return int(text or 0)


def default_strategy() -> str:
    return os.environ.get(STRATEGY) or "daws"


def is_taken(name: str) -> bool:
    """Has a cluster of this process taken the file that this variable names?"""
    return name in _taken


def default_file(name: str) -> str | None:
    """The file that a variable asks for, another one for each cluster of this process: out.json, out-2.json, …"""
    text = os.environ.get(name)
    if not text:
        return None
    _taken.add(name)
    number, (stem, suffix) = next(_clusters[name]), os.path.splitext(text)
    if suffix == ".gz":
        stem, inner = os.path.splitext(stem)
        suffix = inner + suffix
    return text if number == 1 else f"{stem}-{number}{suffix}"


def default_memo() -> str | None:
    """The folder for results that are reused."""
    return os.environ.get(MEMO) or None
