"""A progress bar for live runs: what runs now, the bytes that were read and written, and the time that is left."""

import time

from daws.cli.table import size
from daws.runs.progress import Progress, bar, clock, failures
from daws.workflows.submission import GraphSubmission


class LiveProgress(Progress):
    """A progress bar that is drawn by calls of `tick`."""

    def __init__(self, submission: GraphSubmission, quiet: bool) -> None:
        super().__init__(submission.graph.task_count, quiet)
        self.submission = submission

    def tick(self) -> None:
        one = self.submission
        part = one.ended_ns / max(1, one.graph.total_core_ns)
        running = min(one.timeline.busy_count, one.cluster.workers)
        passed_s = (time.monotonic_ns() - one.begun_ns) / 1e9
        failed = len(getattr(one, "errors", ())) or int(one.failed is not None)
        self._draw(live_line(part, one.ended, self.total, running, one.timeline.bytes_total, passed_s, failed))


def live_line(
    part: float, done: int, total: int, running: int, moved_bytes: int, passed_s: float, failed: int = 0
) -> str:
    """The text of the bar. `part` is the share of the work that is done."""
    left = f"{clock(passed_s * (1 - part) / part)} left" if part else "…"
    tasks = f"{done:,} of {total:,} tasks{failures(failed)}"
    return f"{bar(part)} {part:4.0%}  {tasks}, {running:,} running  {size(moved_bytes)}  {left}"
