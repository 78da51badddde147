"""Files that a cluster writes about its run when it is closed: a trace, the graph of its tasks, a picture of busy
workers."""

import logging
import os
from pathlib import Path

from daws.runs.timeline import Timeline

log = logging.getLogger("daws.recording")
PathLike = str | os.PathLike[str]


class Recording:
    """Files that were asked for, and the timeline behind them. All paths are checked before anything is done."""

    def __init__(
        self, trace: PathLike | None, export: PathLike | None, plot: PathLike | None, timeline: Timeline | None
    ) -> None:
        self.trace, self.export, self.plot = [
            None if path is None else Path(path).absolute() for path in (trace, export, plot)
        ]
        check_files(self.trace, self.export, self.plot)
        self.timeline = timeline or Timeline()
        self.timeline.keeps_links = self.export is not None or self.plot is not None

    def write(self, name: str, nodes: int, workers: int) -> None:
        """When the cluster is closed; `workers` are those of each node."""
        if self.trace is not None:
            from daws.runs.trace import write_trace

            write_trace(self.trace, self.timeline)
        if self.export is None and self.plot is None:
            return
        if not self.timeline.count:
            log.warning("no task ran: there is nothing to write to %s", self.export or self.plot)
            return
        from daws.runs.recorded import workflow_of_run

        workflow, execution = workflow_of_run(self.timeline, name, nodes, workers)
        if self.export is not None:
            from daws.formats import write_wfformat

            write_wfformat(self.export, workflow, execution)
        if self.plot is not None:
            from daws.runs.picture import draw_run_of

            tasks = len(set(self.timeline.task))
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
