"""Runs cases, or anything else that is asked for many times, in processes of their own.

Each process gets one case at a time over a pipe. A process that dies is an error, never a hang; an interrupt or an
error ends all of them. They are started afresh (not forked), so that nothing of the caller's threads comes along.
"""

import contextlib
import multiprocessing
import signal
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar, cast

from daws.compare.cases import Case, CaseResult, Recipe, run_case
from daws.model.errors import DawsError, InternalError, UnavailableError

PATIENCE_S = 5.0
"""How long a process that was told to end may take before it is killed."""


Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def run_cases(recipe: Recipe, cases: Sequence[Case], jobs: int) -> Generator[CaseResult, None, None]:
    """The runs as they are done, in whatever order that is. Closing it ends all processes."""
    return run_each(partial(run_case, recipe), cases, jobs)


def run_each(do: Callable[[Asked], Answer], asked: Sequence[Asked], jobs: int) -> Generator[Answer, None, None]:
    """The results of `do` for each item, as they are done. Everything that is sent to the processes must be picklable.

    Messages name an item by its `str`.
    """
    if jobs == 1 or len(asked) <= 1:
        for one in asked:
            yield do(one)
        return
    workers = _start(do, min(jobs, len(asked)))
    try:
        yield from _serve(workers, list(asked))
    finally:
        _end(workers)


Worker = tuple[SpawnProcess, Connection]


def _start(do: Callable[[Any], Any], count: int) -> list[Worker]:
    """An interrupt from the terminal goes to all of its processes: these leave it to us."""
    context = multiprocessing.get_context("spawn")
    ours = _ignore_interrupts()
    try:
        workers: list[Worker] = []
        for _ in range(count):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there, do), daemon=True)
            process.start()
            there.close()
            workers.append((process, here))
        return workers
    finally:
        if ours is not None:
            signal.signal(signal.SIGINT, ours)


def _ignore_interrupts() -> signal.Handlers | None:
    """Ignore interrupts in processes that start from now on. Returns None outside the main thread, where that is
    impossible."""
    try:
        return cast("signal.Handlers | None", signal.signal(signal.SIGINT, signal.SIG_IGN))
    except ValueError:
        return None


def _serve(workers: list[Worker], asked: list[Any]) -> Iterator[Any]:
    waiting = asked[::-1]
    busy: dict[Connection, Any] = {}
    for _, pipe in workers:
        busy[pipe] = waiting.pop()
        _send(pipe, busy[pipe])
    while busy:
        for pipe in cast("list[Connection]", wait(list(busy))):
            answer = _receive(pipe, busy.pop(pipe))
            if waiting:
                busy[pipe] = waiting.pop()
                _send(pipe, busy[pipe])
            yield answer


def _send(pipe: Connection, one: Any) -> None:
    with contextlib.suppress(OSError):  # a process that is gone is noticed when its answer is read
        pipe.send(one)


def _receive(pipe: Connection, one: Any) -> Any:
    try:
        answer = pipe.recv()
    except (EOFError, OSError) as error:
        raise UnavailableError(
            f"the process that simulated {one} ended without a result (was it killed, or did memory run out?)",
            retry=True,
        ) from error
    if isinstance(answer, Exception):
        raise answer
    return answer


def _work(pipe: Connection, do: Callable[[Any], Any]) -> None:
    """The work of such a process, until its pipe is closed."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            one = pipe.recv()
            try:
                answer = do(one)
            except DawsError as error:
                answer = error
            except MemoryError:
                answer = UnavailableError(f"memory ran out with {one}", retry=True)
            except Exception:
                answer = InternalError(f"{one}: {traceback.format_exc()}")
            pipe.send(answer)


def _end(workers: list[Worker]) -> None:
    for process, pipe in workers:
        pipe.close()
        process.terminate()
    for process, _ in workers:
        process.join(PATIENCE_S)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()
