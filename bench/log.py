"""`python -m bench.log`: the store's append log: how fast it is written, replayed and shortened, and who has to wait.

    python -m bench.log                  a million tasks: what a live session writes (submit, finish, let go)
    python -m bench.log --tasks 100000

A record is a row. While the log is shortened, the longest call and the longest write say who had to wait for that.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from daws.model.task import Input, TaskSpec
from daws.store.log import CallFiles, LoggedStore, StoreSettings, open_store
from daws.store.log.compact import compact
from daws.wire.store import CLIENT_HOLDER, Finish, Release, Row, Submit

CALL_ROWS = 64
GROUP_CALLS = 8
AIM_ROWS_PER_S = 300_000
NODE = 1
SETTINGS = StoreSettings(direct=True, retired_max=1 << 14)


def submitted(tasks: int) -> Iterator[list[Row]]:
    """Tasks with some bytes of arguments, every other one a child of the one before it."""
    for low in range(0, tasks, CALL_ROWS):
        yield [
            Submit(
                TaskSpec(task, 1, 1_000_000, (task - 1,) if task % 2 else (), (task,), payload=b"some arguments"),
                (task - 1,) if task % 2 else (),
                NODE,
            )
            for task in range(low, min(low + CALL_ROWS, tasks))
        ]


def finished(tasks: int) -> Iterator[list[Row]]:
    for low in range(0, tasks, CALL_ROWS):
        yield [
            Finish(task, 0, NODE, (Input(task, 20, task, (NODE,), b"what came out of it!"),))
            for task in range(low, min(low + CALL_ROWS, tasks))
        ]


def released(tasks: int) -> Iterator[list[Row]]:
    for low in range(0, tasks, CALL_ROWS):
        yield [Release(task, CLIENT_HOLDER) for task in range(low, min(low + CALL_ROWS, tasks))]


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds that passed, and seconds of a processor."""
    began_s, busy_s = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began_s, time.process_time() - busy_s


def feed(store: LoggedStore, files: CallFiles, calls: list[list[Row]]) -> tuple[float, float]:
    """Carry out calls as a server would, with one write for many. Answers how long the longest call took, and the
    longest write, for which a server waits in another thread."""
    call_s = write_s = 0.0
    for number, rows in enumerate(calls):
        began_s = time.perf_counter()
        store.apply(0, rows, number)
        called_s = time.perf_counter()
        call_s = max(call_s, called_s - began_s)
        if number % GROUP_CALLS == GROUP_CALLS - 1:
            files.sync()
            write_s = max(write_s, time.perf_counter() - called_s)
    files.sync()
    return call_s, write_s


def show(what: str, took: tuple[float, float], rows: int, size_bytes: int = 0) -> float:
    """Answers records per second of a processor, which others on the same machine disturb least."""
    size = f"{size_bytes / 1e6:6,.0f} MB, {size_bytes / rows:.0f} bytes each" if size_bytes else ""
    print(
        f"{what:26} {rows:>9,} records {took[0]:6.1f} s {rows / took[0]:>9,.0f} records/s, "
        f"{took[1]:5.1f} s of a processor {rows / took[1]:>9,.0f} records/s {size}",
        flush=True,
    )
    return rows / took[1]


def total_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def run(tasks: int, base: Path) -> bool:
    folder = base / "store"
    never = 1 << 60
    store, files = open_store(folder, SETTINGS, log_bytes_min=never)
    for what, made in (("submit", submitted), ("finish", finished)):
        calls = list(made(tasks))
        show(f"written: {what}", timed(lambda calls=calls: feed(store, files, calls)), tasks)  # type: ignore[misc]
    files.close()
    good = replay("replayed", folder, 2 * tasks)
    store, files = open_store(folder, SETTINGS, log_bytes_min=never)
    files.close()
    number = max(files.folder.numbers("log"))
    show("shortened, all alive", timed(lambda: compact(files.folder, number)), tasks)
    files.folder.tidy()
    replay("read from its state", folder, tasks)
    beside(tasks, folder)
    return good


def replay(what: str, folder: Path, rows: int) -> bool:
    size = total_bytes(folder)
    found: list[CallFiles] = []
    took = timed(lambda: found.append(open_store(folder, SETTINGS)[1]))
    found[0].close()
    return show(what, took, rows, size) >= AIM_ROWS_PER_S


def beside(tasks: int, folder: Path) -> None:
    """Clients let go of everything while the log is shortened."""
    store, files = open_store(folder, SETTINGS)
    calls = list(released(tasks))
    files.shorten()
    call_s, write_s = feed(store, files, calls)
    files.wait_until_short()
    files.close()
    longest = f"a call took {1e3 * call_s:.0f} ms at most, a write {1e3 * write_s:.0f} ms"
    print(f"{'shortened beside the store':26} {longest}; {total_bytes(folder) / 1e6:,.0f} MB in the end")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.log", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where to write (default: the usual folder for such files)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as base:
        good = run(given.tasks, Path(base))
    print("" if good else f"replay is below its aim of {AIM_ROWS_PER_S:,} records/s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
