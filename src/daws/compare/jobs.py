"""Runs cases in processes of their own.

Each process gets one case at a time over a pipe. A process that dies is an error, never a hang; an interrupt or an
error ends all of them. They are started afresh (not forked), so that nothing of the caller's threads comes along.
"""

import contextlib
import multiprocessing
import signal
import traceback
from collections.abc import Generator, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import cast

from daws.compare.cases import Case, Recipe, Run, run_case
from daws.model.errors import DawsError, InternalError, UnavailableError

PATIENCE_S = 5.0
"""How long a process that was told to end may take before it is killed."""


def run_cases(recipe: Recipe, cases: Sequence[Case], jobs: int) -> Generator[Run, None, None]:
    """The runs as they are done, in whatever order that is. Closing it ends all processes."""
    if jobs == 1 or len(cases) <= 1:
        for case in cases:
            yield run_case(recipe, case)
        return
    workers = _start(recipe, min(jobs, len(cases)))
    try:
        yield from _serve(workers, list(cases))
    finally:
        _end(workers)


Worker = tuple[SpawnProcess, Connection]


def _start(recipe: Recipe, count: int) -> list[Worker]:
    """An interrupt from the terminal goes to all of its processes: these leave it to us."""
    context = multiprocessing.get_context("spawn")
    ours = _ignore_interrupts()
    try:
        workers: list[Worker] = []
        for _ in range(count):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there, recipe), daemon=True)
            process.start()
            there.close()
            workers.append((process, here))
        return workers
    finally:
        if ours is not None:
            signal.signal(signal.SIGINT, ours)


def _ignore_interrupts() -> signal.Handlers | None:
    """What processes that start now inherit. None outside the main thread, where nothing can be set."""
    try:
        return cast("signal.Handlers | None", signal.signal(signal.SIGINT, signal.SIG_IGN))
    except ValueError:
        return None


def _serve(workers: list[Worker], cases: list[Case]) -> Iterator[Run]:
    waiting = cases[::-1]
    busy: dict[Connection, Case] = {}
    for _, pipe in workers:
        busy[pipe] = waiting.pop()
        _send(pipe, busy[pipe])
    while busy:
        for pipe in cast("list[Connection]", wait(list(busy))):
            case = busy.pop(pipe)
            answer = _receive(pipe, case)
            if waiting:
                busy[pipe] = waiting.pop()
                _send(pipe, busy[pipe])
            yield answer


def _send(pipe: Connection, case: Case) -> None:
    with contextlib.suppress(OSError):  # who is gone is noticed when its answer is read
        pipe.send(case)


def _receive(pipe: Connection, case: Case) -> Run:
    try:
        answer = pipe.recv()
    except (EOFError, OSError) as error:
        raise UnavailableError(
            f"the process that simulated {case.strategy} on {case.nodes} nodes ended without a result "
            "(was it killed, or did memory run out?)",
            retry=True,
        ) from error
    if isinstance(answer, Exception):
        raise answer
    return cast("Run", answer)


def _work(pipe: Connection, recipe: Recipe) -> None:
    """What such a process does until nobody wants anything any more."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            case = pipe.recv()
            try:
                answer: Run | Exception = run_case(recipe, case)
            except DawsError as error:
                answer = error
            except MemoryError:
                answer = UnavailableError(f"memory ran out with {case.strategy} on {case.nodes} nodes", retry=True)
            except Exception:
                answer = InternalError(f"{case}: {traceback.format_exc()}")
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
