"""A progress bar, if somebody can see it: on a terminal, or in a notebook."""

import sys
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

if TYPE_CHECKING:
    from daws.client.future import Future

T = TypeVar("T")
BAR_WIDTH = 30
PERIOD_S = 0.1


class Progress:
    """Call it with the number of tasks done so far; it draws now and then, and leaves nothing behind on terminals."""

    def __init__(self, total: int, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.total = total
        self.stream = sys.stderr if stream is None else stream
        self.update = None if quiet or stream is not None else _notebook()
        is_terminal = self.stream is not None and self.stream.isatty()
        self.is_shown = not quiet and (self.update is not None or is_terminal)
        self.began_s = self.drawn_s = time.monotonic()
        self.done = 0
        self.width = 0

    def __enter__(self) -> "Progress":
        self._draw("preparing …")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.update is None:
            self._draw("")
        else:  # what was displayed stays
            self._draw(f"{self.done:,} of {self.total:,} tasks in {time.monotonic() - self.began_s:,.1f} s")

    def __call__(self, done: int) -> None:
        self.done = done
        now_s = time.monotonic()
        if self.is_shown and now_s - self.drawn_s >= PERIOD_S:
            self.drawn_s = now_s
            self._draw(progress_line(done, self.total, now_s - self.began_s))

    def _draw(self, line: str) -> None:
        if self.update is not None:
            self.update(line)
        elif self.is_shown:
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


def _notebook() -> Callable[[str], None] | None:
    """How to show a line in the notebook that this is, in place of the line before; None if it is none."""
    ipython: Any = sys.modules.get("IPython")  # who runs in a notebook has it already
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display

    shown = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda line: shown.update({"text/plain": line}, raw=True)


def progress(futures: "Iterable[Future[T]]", timeout: float | None = None) -> "list[Future[T]]":
    """Wait for all, with a bar if somebody can see it; answers the futures.

    `futures` may be what `map` gives. Failed tasks count as done: they are no errors here.
    """
    from daws.client.waiting import as_completed

    waiting: list[Future[T]] = list(dict.fromkeys(getattr(futures, "futures", futures)))
    with Progress(len(waiting)) as bar:
        for done, _ in enumerate(as_completed(waiting, timeout), 1):
            bar(done)
    return waiting
