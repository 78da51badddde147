"""A progress bar on stderr, if somebody can see it."""

import sys
import time
from types import TracebackType
from typing import TextIO

BAR_WIDTH = 30
PERIOD_S = 0.1


class Progress:
    """Call it with the number of tasks done so far; it draws now and then, and leaves nothing behind."""

    def __init__(self, total: int, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.total = total
        self.stream = sys.stderr if stream is None else stream
        self.is_shown = not quiet and self.stream is not None and self.stream.isatty()
        self.began_s = self.drawn_s = time.monotonic()
        self.width = 0

    def __enter__(self) -> "Progress":
        self._draw("preparing …")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._draw("")

    def __call__(self, done: int) -> None:
        now_s = time.monotonic()
        if self.is_shown and now_s - self.drawn_s >= PERIOD_S:
            self.drawn_s = now_s
            self._draw(progress_line(done, self.total, now_s - self.began_s))

    def _draw(self, line: str) -> None:
        if self.is_shown:
            self.stream.write("\r" + line.ljust(self.width) + ("" if line else "\r"))
            self.stream.flush()
            self.width = len(line)


def progress_line(done: int, total: int, passed_s: float) -> str:
    """Bar, share, count, rate and time left."""
    part = done / total if total else 1.0
    full = int(part * BAR_WIDTH)
    bar = "█" * full + "░" * (BAR_WIDTH - full)
    rate = done / passed_s if passed_s > 0 else 0.0
    left = f"{_clock((total - done) / rate)} left" if rate else "…"
    return f"{bar} {part:4.0%}  {done:,} of {total:,} tasks  {rate:,.0f}/s  {left}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
