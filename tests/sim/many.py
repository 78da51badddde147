"""Many runs on all cores: what `make faults`, `make matrix` and `make mutants` share."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TextIO, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")

PERIOD_S = 0.2


class Ticker:
    """A line on a terminal that says how far we are and how long it will take; elsewhere it says nothing."""

    def __init__(self, total: int, what: str, stream: TextIO | None = None) -> None:
        self.total = total
        self.what = what
        self.stream = sys.stderr if stream is None else stream
        self.is_shown = self.stream.isatty()
        self.began_s = self.drawn_s = time.monotonic()

    def tell(self, done: int, note: str = "") -> None:
        now_s = time.monotonic()
        if not self.is_shown or (now_s - self.drawn_s < PERIOD_S and done < self.total):
            return
        self.drawn_s = now_s
        left_s = (now_s - self.began_s) / done * (self.total - done) if done else 0.0
        self._draw(f"{done:,} of {self.total:,} {self.what}  {left_s:.0f} s left  {note}"[:110])

    def clear(self) -> None:
        if self.is_shown:
            self._draw("")

    def _draw(self, line: str) -> None:
        self.stream.write(f"\r\x1b[K{line}")
        self.stream.flush()


def processes(jobs: int) -> Executor:
    """Fresh processes: nothing that the parent has loaded or patched comes along."""
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def run_all(
    pool: Executor, work: Callable[[Item], Found], items: Sequence[Item], ticker: Ticker, note: Callable[[], str] = str
) -> Iterator[tuple[Item, Found]]:
    """The results as they come, in no particular order."""
    asked = {pool.submit(work, item): item for item in items}
    for done, future in enumerate(as_completed(asked), 1):
        yield asked[future], future.result()
        ticker.tell(done, note())
    ticker.clear()
