"""The parts of a cluster that are checked or started before its session, and what the environment says of them.

`daws run` sets the environment for the script that it runs. Only this file reads these variables.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daws.data.limits import with_cure
from daws.model.errors import UsageError
from daws.workers.errors import WorkerStartError
from daws.workers.server import ForkServer

if TYPE_CHECKING:
    from daws.data.memo import MemoFolder
    from daws.runs.timeline import Timeline
    from daws.strategy.decisions import Strategy

PathLike = str | os.PathLike[str]
WORKERS_MAX = 4096
NODES = "DAWS_NODES"
WORKERS = "DAWS_WORKERS"
STRATEGY = "DAWS_STRATEGY"
TRACE = "DAWS_TRACE"
EXPORT = "DAWS_EXPORT"
PLOT = "DAWS_PLOT"
MEMO = "DAWS_MEMO"
_clusters = {name: itertools.count(1) for name in (TRACE, EXPORT, PLOT)}
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


class Recording:
    """Files that a cluster writes about its run when it is closed, and the timeline behind them: a trace, the graph of
    its tasks, a picture of busy workers. The environment names those that are not given."""

    def __init__(
        self, trace: PathLike | None, export: PathLike | None, plot: PathLike | None, timeline: Timeline | None
    ) -> None:
        given = {TRACE: trace, EXPORT: export, PLOT: plot}
        files = [default_file(name) if path is None else path for name, path in given.items()]
        self.timeline = timeline
        self.trace, self.export, self.plot = [None if path is None else Path(path).absolute() for path in files]
        check_files(self.trace, self.export, self.plot)
        if files != [None, None, None]:
            from daws.runs.timeline import Timeline

            self.timeline = timeline or Timeline()
            self.timeline.keeps_links = self.export is not None or self.plot is not None

    def write(self, name: str, nodes: int, workers: int) -> None:
        """When the cluster is closed; `workers` are those of each node."""
        timeline = self.timeline
        if timeline is None:
            return
        if self.trace is not None:
            from daws.runs.trace import write_trace

            write_trace(self.trace, timeline)
        if self.export is None and self.plot is None:
            return
        if not timeline.count:
            import logging

            asked = self.export or self.plot
            logging.getLogger("daws.recording").warning("no task ran: there is nothing to write to %s", asked)
            return
        from daws.runs.recorded import workflow_of_run

        workflow, execution = workflow_of_run(timeline, name, nodes, workers)
        if self.export is not None:
            from daws.formats import write_wfformat

            write_wfformat(self.export, workflow, execution)
        if self.plot is not None:
            from daws.runs.picture import draw_run_of

            tasks = len(set(timeline.task))
            draw_run_of(execution, workflow.graph.cores, tasks, nodes * workers, self.plot, name)


def check_files(trace: PathLike | None, export: PathLike | None, plot: PathLike | None) -> None:
    """Refuse files that could not be written at the end."""
    if trace is not None:
        from daws.runs.trace import check_trace_target

        check_trace_target(trace)
    if export is not None:
        from daws.formats import check_target

        check_target(os.fspath(export))
    if plot is not None:
        from daws.runs.picture import check_target as check_picture

        check_picture(Path(plot))


def memo_folder(folder: PathLike | None) -> MemoFolder | None:
    """The folder for results of tasks with `memo=`, if there is one."""
    folder = os.environ.get(MEMO) or None if folder is None else folder
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


def journal_folder(folder: PathLike | None, strategy: Strategy) -> str:
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
