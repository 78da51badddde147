"""The parts of a cluster on this machine that are checked or started before its session."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from daws.client.defaults import EXPORT, PLOT, TRACE, default_file, default_memo
from daws.client.given import size
from daws.data.limits import with_cure
from daws.model.errors import UsageError
from daws.workers.errors import WorkerStartError
from daws.workers.server import ForkServer

if TYPE_CHECKING:
    from daws.client.recording import Recording
    from daws.data.janitor import Janitor
    from daws.data.memo import MemoFolder
    from daws.strategy.decisions import Strategy

WORKERS_MAX = 4096


def check_memory(memory_bytes: int | str | None) -> int | None:
    """A number of bytes; refuses what is none."""
    return None if memory_bytes is None else size("memory_bytes", memory_bytes, 1)


def recording_from(*given: Any) -> Recording | None:
    """The files to write when the cluster is closed: those that were given, or those of the environment. None if there
    are none."""
    *paths, timeline = given
    names = (TRACE, EXPORT, PLOT)
    trace, export, plot = [
        default_file(name) if path is None else path for name, path in zip(names, paths, strict=True)
    ]
    if trace is None and export is None and plot is None:
        return None
    from daws.client.recording import Recording

    return Recording(trace, export, plot, timeline)


def memo_folder(folder: str | os.PathLike[str] | None) -> MemoFolder | None:
    """The folder for results of tasks with `memo=`, if there is one."""
    folder = default_memo() if folder is None else folder
    if folder is None:
        return None
    if not isinstance(folder, str | os.PathLike):
        raise UsageError(f"memo={folder!r:.100}: name a folder for the results: memo='folder'; tasks have memo=True")
    from daws.data.memo import MemoFolder

    return MemoFolder(folder)


def devices_of(given: Mapping[Any, Any] | None, kind: str) -> tuple[tuple[str, int], ...]:
    if not given:
        return ()
    from daws.model.context import ANY, Label, parse_context

    if kind != "processes":
        raise UsageError("devices: threads share one environment; use kind='processes'")
    if not isinstance(given, Mapping):
        raise UsageError(f"devices={given!r}: give a dict of labels and numbers, such as {{'gpu': 2}}")
    for label, count in given.items():
        if type(count) is not int or not 1 <= count <= WORKERS_MAX:
            raise UsageError(f"devices: {label!r}: {count!r}: give a whole number from 1 to {WORKERS_MAX}")
        context = parse_context(label) if isinstance(label, str) else None
        if not isinstance(context, Label) or context.name == ANY:
            raise UsageError(f"devices: {label!r}: give a label, such as 'gpu'")
    return tuple(given.items())


def strategy_of(strategy: str | Strategy) -> Strategy:
    """The strategy that was chosen, with a warning if it needs whole graphs."""
    from daws.strategy import lacks_live, parse_strategy
    from daws.strategy.decisions import Strategy

    if not isinstance(strategy, str | Strategy):
        raise UsageError(f"strategy={strategy!r:.100}: give a name, such as 'flds:tt=5', or a Strategy")
    chosen = parse_strategy(strategy) if isinstance(strategy, str) else strategy
    if lacks := lacks_live(chosen):
        warnings.warn(lacks, stacklevel=3)
    return chosen


def journal_folder(folder: str | os.PathLike[str] | None, strategy: Strategy) -> str:
    """Make the folder of journals, and refuse at once one that could not be written to at the end."""
    if folder is None:
        return ""
    from daws.strategy import format_strategy

    format_strategy(strategy)
    path = os.path.abspath(folder)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UsageError(f"journal={path!r}: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"journal={path!r}: nothing can be written there")
    return path


def fork_server(*folders: str, become: str = "daws.workers.worker", hire: int = 0) -> ForkServer:
    server = None
    try:
        server = ForkServer(*folders, become=become)
        server.hire(hire)
        return server
    except OSError as error:
        if server is not None:
            server.bury(kill=True)
        raise WorkerStartError(f"the fork server cannot be started: {with_cure(error)}", retry=False) from error


def start_janitor(*folders: str) -> Janitor:
    from daws.data.janitor import Janitor

    return Janitor(*folders)
