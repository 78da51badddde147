"""A progress bar, if it can be seen: on a terminal, or in a notebook."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

BAR_WIDTH = 30
PERIOD_S = 0.1


class Progress:
    """A progress bar. Call it with the numbers of tasks that have ended and that failed; it draws now and then, and
    leaves nothing behind on terminals."""

    def __init__(self, total: int, quiet: bool = False, stream: TextIO | None = None, counted: str = "tasks") -> None:
        self.total = total
        self.counted = counted
        self.stream = sys.stderr if stream is None else stream
        self.update = None if quiet or stream is not None else _notebook()
        is_terminal = self.stream is not None and self.stream.isatty()
        self.is_shown = not quiet and (self.update is not None or is_terminal)
        self.began_s = self.drawn_s = time.monotonic()
        self.done = self.failed = 0
        self.width = 0

    def __enter__(self) -> "Progress":
        self._draw("preparing …")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.update is None:
            self._draw("")
        else:  # the display stays
            took = f"{time.monotonic() - self.began_s:,.1f} s"
            self._draw(f"{self.done:,} of {self.total:,} {self.counted}{failures(self.failed)} in {took}")

    def __call__(self, done: int, failed: int = 0) -> None:
        self.done, self.failed = done, failed
        now_s = time.monotonic()
        if self.is_shown and now_s - self.drawn_s >= PERIOD_S:
            self.drawn_s = now_s
            self._draw(progress_line(done, self.total, now_s - self.began_s, failed, self.counted))

    def _draw(self, line: str) -> None:
        if self.update is not None:
            self.update(line)
        elif self.is_shown:
            self.stream.write("\r" + line.ljust(self.width) + ("" if line else "\r"))
            self.stream.flush()
            self.width = len(line)


def failures(count: int) -> str:
    """Behind a number of tasks: how many of them failed, if any did."""
    return f", {count:,} failed" if count else ""


def progress_line(done: int, total: int, passed_s: float, failed: int = 0, counted: str = "tasks") -> str:
    """Bar, share, count, rate and time left."""
    part = done / total if total else 1.0
    rate = done / passed_s if passed_s > 0 else 0.0
    left = f"{clock((total - done) / rate)} left" if rate else "…"
    return f"{bar(part)} {part:4.0%}  {done:,} of {total:,} {counted}{failures(failed)}  {rate:,.0f}/s  {left}"


def bar(part: float) -> str:
    """A bar of which this part is full."""
    full = int(part * BAR_WIDTH)
    return "█" * full + "░" * (BAR_WIDTH - full)


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _notebook() -> Callable[[str], None] | None:
    """How to show a line in the notebook that this is, in place of the line before; None if it is none."""
    ipython: Any = sys.modules.get("IPython")  # a program in a notebook has it already
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display

    show: Any = display
    shown = show({"text/plain": ""}, raw=True, display_id=True)
    return lambda line: shown.update({"text/plain": line}, raw=True)
