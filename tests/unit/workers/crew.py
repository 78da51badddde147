"""A pool on a loop of its own, driven step by step by a test."""

import asyncio
import os
import pickle
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import cloudpickle

from daws.data import codec
from daws.wire.worker import (
    Asks,
    Died,
    Ended,
    Execute,
    ObjectFile,
    Printed,
    Raised,
    Recalled,
    ReportType,
    RunOptions,
    Spawned,
    Taught,
    WaitReport,
    apart,
)
from daws.workers.failures import exception_of
from daws.workers.port import pool_of

DEADLINE_S = 60.0


class Crew:
    """Keeps every report, and complains when a run is reported twice."""

    def __init__(self, folder: Path, slots: int = 2, kind: str = "processes", **settings: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = folder / "session"
        self.reports: dict[int, ReportType] = {}
        self.printed: dict[int, bytes] = {}
        self.nested: list[Taught | Spawned | WaitReport | Asks] = []
        self.batches: list[list[ReportType]] = []
        self.orders: dict[int, tuple[int, Execute]] = {}
        self._functions: dict[Any, int] = {}
        self._pipes: list[int] = []
        self._changed = asyncio.Event()
        self.pool: Any = pool_of(kind)(slots, str(self.folder), self.loop, self._on_report, **settings)
        try:
            self.loop.run_until_complete(asyncio.wait_for(self.pool.start(), DEADLINE_S))
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.run_until_complete(self.pool.close())
        self.loop.close()
        for pipe in self._pipes:
            os.close(pipe)

    def _on_report(self, batch: list[ReportType]) -> None:
        batch = apart(batch)
        self.batches.append(batch)
        for report in batch:
            if isinstance(report, Printed):
                self.printed[report.run] = self.printed.get(report.run, b"") + report.text
                continue
            if isinstance(report, Taught | Spawned | WaitReport | Asks):
                self.nested.append(report)
                continue
            assert isinstance(report, Ended | Raised | Recalled | Died)
            assert report.run not in self.reports, f"{report} after {self.reports[report.run]}"
            self.reports[report.run] = report
        self._changed.set()

    def give(
        self,
        function: Callable[..., Any],
        *args: Any,
        slot: int = 0,
        inputs: tuple[bytes | ObjectFile, ...] = (),
        outputs: tuple[str, ...] = (),
        options: RunOptions | None = None,
    ) -> int:
        """Hand a call to a worker; answers the number of its run."""
        if function not in self._functions:
            self._functions[function] = len(self._functions)
            self.pool.learn(self._functions[function], cloudpickle.dumps(function))
        run = len(self.orders)
        order = Execute(run, self._functions[function], pickle.dumps((args, {})), inputs, outputs, options)
        self.orders[run] = slot, order
        self.pool.execute(slot, order)
        return run

    def wait(self, *runs: int) -> list[Any]:
        """Until all these runs are reported."""
        self.until(lambda: all(run in self.reports for run in runs))
        return [self.reports[run] for run in runs]

    def until(self, is_so: Callable[[], bool]) -> None:
        self.pool.flush()

        async def wait() -> None:
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

        self.loop.run_until_complete(asyncio.wait_for(wait(), DEADLINE_S))

    def call(self, function: Callable[..., Any], *args: Any, **how: Any) -> Any:
        """The result of a call, or its exception."""
        run = self.give(function, *args, **how)
        (report,) = self.wait(run)
        if isinstance(report, Ended):
            values = [codec.loads(one) if isinstance(one, bytes) else one for one in report.results]
            return values[0] if len(values) == 1 else values
        assert isinstance(report, Raised), report
        raise exception_of(report.error)

    def fifo(self, name: str = "begun") -> str:
        path = self.folder.parent / name
        os.mkfifo(path)
        return str(path)

    def hear(self, fifo: str) -> int:
        """Wait until a run says in this pipe that it has begun; answers its process."""
        self.pool.flush()
        return int(Path(fifo).read_text())

    def let_through(self, fifo: str) -> None:
        """Let a run go on that reads a line from this pipe, or will do so. A pipe that nobody has open forgets what was
        written to it, so it stays open."""
        self._pipes.append(os.open(fifo, os.O_RDWR))
        os.write(self._pipes[-1], b"go on\n")


def gone(pids: Iterable[int], paths: Iterable[Path] = ()) -> bool:
    """Wait until these processes and files are no more; False if they are still there after a long time."""
    pids, paths = list(pids), list(paths)
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if not any(map(is_alive, pids)) and not any(path.exists() for path in paths):
            return True
        time.sleep(0.005)
    return False


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
