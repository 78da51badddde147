"""`Executor`: a cluster for programs that were written for `concurrent.futures`.

    from daws.futures import Executor

    with Executor() as executor:
        print(list(executor.map(pow, range(10), range(10), chunksize=4)))

Its futures are those of the standard library: `wait`, `as_completed` and `asyncio.wrap_future` accept them. Two things
differ from a ProcessPoolExecutor: a running task can be cancelled too, and a worker that dies takes only its own task
with it, after retries. All other names that programs import from `concurrent.futures` are here as well.
"""

import atexit
import collections
import concurrent.futures
import contextlib
import functools
import importlib
import itertools
import logging
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from opcode import opmap
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from daws.client.cluster import Cluster
from daws.client.future import Future as TaskFuture
from daws.client.hints import answer_of_module, answer_to, refuse_executor_option
from daws.client.starting import default_workers
from daws.model.errors import ClosedError, InternalError, TaskKilledError, UnpicklableError, UsageError
from daws.workers.errors import WorkerStartError

T = TypeVar("T")
if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor as ThreadPoolExecutor
    from concurrent.futures.process import BrokenProcessPool as BrokenProcessPool

# What programs import beside the executor works with its futures as it is.
ALL_COMPLETED = concurrent.futures.ALL_COMPLETED
FIRST_COMPLETED = concurrent.futures.FIRST_COMPLETED
FIRST_EXCEPTION = concurrent.futures.FIRST_EXCEPTION
BrokenExecutor = concurrent.futures.BrokenExecutor
CancelledError = concurrent.futures.CancelledError
Future = concurrent.futures.Future
InvalidStateError = concurrent.futures.InvalidStateError
TimeoutError = concurrent.futures.TimeoutError
as_completed = concurrent.futures.as_completed
wait = concurrent.futures.wait
_LATER = {"BrokenProcessPool": "concurrent.futures.process", "ThreadPoolExecutor": "concurrent.futures.thread"}
"""The same, imported when it is asked for: that takes longer than all else here."""
__all__ = [
    "ALL_COMPLETED",
    "FIRST_COMPLETED",
    "FIRST_EXCEPTION",
    "BrokenExecutor",
    "BrokenProcessPool",
    "CancelledError",
    "Executor",
    "Future",
    "InvalidStateError",
    "ProcessPoolExecutor",
    "ThreadPoolExecutor",
    "TimeoutError",
    "as_completed",
    "wait",
]

_CLOSED = "cannot schedule new futures after shutdown"
_BROKEN = (ClosedError, InternalError, WorkerStartError)
_open: "weakref.WeakSet[Executor]" = weakref.WeakSet()


class ExecutorFuture(concurrent.futures.Future[T]):
    """A `concurrent.futures.Future` of a task. The result is loaded when it is read first."""

    def __init__(self, stored: "weakref.WeakSet[ExecutorFuture[Any]]") -> None:
        super().__init__()
        self._stored = stored
        self._task: TaskFuture[T] | None = None

    def result(self, timeout: float | None = None) -> T:
        super().result(timeout)
        assert self._task is not None
        return self._task.result()

    def cancel(self) -> bool:
        """Cancel the task as in the standard library, but a running task too."""
        if not super().cancel():
            return False
        if self._task is not None:
            self._task.cancel()
        return True

    def running(self) -> bool:
        """Does a worker run the task now? Asks the nodes."""
        return not self.done() and self._task is not None and self._task.running()

    def __reduce__(self) -> Any:
        """Pickle an argument of a task of the same cluster as its result."""
        if self._task is None:
            raise UsageError(f"{self!r} has no task: it failed before")
        return self._task.__reduce__()

    def __repr__(self) -> str:
        return super().__repr__().replace(" returned NoneType", "")  # the value was not asked for yet

    def _end(self, task: TaskFuture[T]) -> None:
        """Called when the task has ended, on the cluster's thread."""
        if task.cancelled():
            super().cancel()
        if not self.set_running_or_notify_cancel():
            return
        error = task.exception()
        if error is None:
            if task._is_stored():
                self._stored.add(self)
            self.set_result(None)  # type: ignore[arg-type]
        else:
            self.set_exception(_as_they_know_it(error))


class Executor(concurrent.futures.Executor):
    """An executor of `concurrent.futures` with workers of its own, or on an open `cluster` (which stays open).

    Each worker calls `initializer(*initargs)` first. Workers are started with the first task. `mp_context` and
    `thread_name_prefix` are accepted and change nothing: workers are forked from a small server process.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: object = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        max_tasks_per_child: int | None = None,
        cluster: Cluster | None = None,
        thread_name_prefix: str = "",
        **others: Any,
    ) -> None:
        if max_tasks_per_child is not None:
            refuse_executor_option("max_tasks_per_child")
        if others:
            refuse_executor_option(next(iter(others)))
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if cluster is not None and (max_workers is not None or initializer is not None):
            raise UsageError("a cluster has its workers already: leave out max_workers and initializer")
        self._max_workers = cluster.workers if cluster is not None else max_workers or default_workers(1)
        self._initializer = functools.partial(initializer, *initargs) if initializer is not None else None
        self._lock = threading.Lock()
        self._cluster = cluster
        self._owns_cluster = cluster is None
        self._broken: str = ""
        self._is_shut = False
        self._ender: threading.Thread | None = None
        self._pending: set[ExecutorFuture[Any]] = set()
        self._stored: weakref.WeakSet[ExecutorFuture[Any]] = weakref.WeakSet()  # results that lie in files
        _open.add(self)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> ExecutorFuture[T]:
        """Run `fn(*args, **kwargs)` and return its future. Arguments that cannot be pickled make that future fail."""
        future: ExecutorFuture[T] = ExecutorFuture(self._stored)
        with self._lock:
            if self._broken:
                raise _kinds()[0](self._broken)
            if self._is_shut:
                raise RuntimeError(_CLOSED)
            try:
                task = self._started().submit(fn, *args, **kwargs)
            except UnpicklableError as error:
                future.set_exception(error)
                return future
            except _BROKEN as error:
                broken = _broken(error)
                self._broken = str(broken)
                if not isinstance(error, WorkerStartError):
                    raise broken from error
                future.set_exception(broken)  # as elsewhere: later calls are refused
                return future
            future._task = task
            self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        task.add_done_callback(future._end)
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[T]:
        """Call `fn` for each item, `chunksize` items per task, and iterate over the results in order.

        With `buffersize` at most so many tasks are submitted whose results have not been read yet.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and not isinstance(buffersize, int):
            raise TypeError("buffersize must be an integer or None")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        if chunksize == 1:
            return self._map(fn, iterables, timeout, buffersize)
        chunks = _chunks(zip(*iterables, strict=False), chunksize)
        return _each(self._map(functools.partial(_call_all, fn), (chunks,), timeout, buffersize))

    def _map(
        self,
        fn: Callable[..., T],
        iterables: tuple[Iterable[Any], ...],
        timeout: float | None,
        buffersize: int | None,
    ) -> Iterator[T]:
        if buffersize is None:
            return super().map(fn, *iterables, timeout=timeout)
        calls = zip(*iterables, strict=False)
        begun = collections.deque([self.submit(fn, *call) for call in itertools.islice(calls, buffersize)])
        return _in_turn(begun, calls, weakref.ref(self), fn, None if timeout is None else time.monotonic() + timeout)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more tasks, and end the workers when the rest is done; `cancel_futures` drops waiting tasks."""
        with self._lock:
            self._is_shut = True
            cluster, self._cluster = self._cluster, None
            if cluster is not None:
                pending = tuple(self._pending)
                if cancel_futures:
                    with contextlib.suppress(ClosedError):  # then they have ended already
                        cluster._open().cancel_waiting([one._task for one in pending if one._task is not None])
                given = pending, self._stored, cluster if self._owns_cluster else None
                self._ender = threading.Thread(target=_finish, args=given, name="daws-shutdown")
                self._ender.start()
        ender = self._ender
        if wait and ender is not None:
            ender.join()
            self._ender = None

    def terminate_workers(self) -> None:
        """Cancel all tasks that have not ended, also running ones, and accept no more."""
        for future in tuple(self._pending):
            future.cancel()
        self.shutdown()

    kill_workers = terminate_workers

    def _started(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(self._max_workers, setup=self._initializer)
        return self._cluster

    def __reduce__(self) -> NoReturn:
        raise UsageError("an executor cannot be sent to tasks; inside of one, daws.current().submit(f, x) runs others")

    def __del__(self) -> None:
        if not getattr(self, "_is_shut", True):
            self.shutdown(wait=False)

    def __repr__(self) -> str:
        state = "broken" if self._broken else "shut down" if self._is_shut else f"{len(self._pending):,} tasks to end"
        return f"<Executor: {state}>"


answer_to(Executor)
ProcessPoolExecutor = Executor
"""The name that programs know it by."""


def _finish(
    pending: Iterable[ExecutorFuture[Any]], stored: Iterable[ExecutorFuture[Any]], cluster: Cluster | None
) -> None:
    """Wait for what is left, then end the workers. Results that nobody has asked for yet must outlive them."""
    concurrent.futures.wait(pending)
    if cluster is not None:
        for future in tuple(stored):
            with contextlib.suppress(Exception):  # whoever asks for it is told
                future.result()
        cluster.close()


def _as_they_know_it(error: BaseException) -> BaseException:
    """The exception of a task; if its worker died, or could not begin, it is a BrokenProcessPool as well."""
    if isinstance(error, _BROKEN):
        return _broken(error)
    if type(error) is TaskKilledError:
        killed = _kinds()[1](*error.args)
        killed.__cause__ = error
        return killed
    return error


def _broken(error: BaseException) -> concurrent.futures.BrokenExecutor:
    if isinstance(error, WorkerStartError):
        logging.getLogger("concurrent.futures").critical("Exception in initializer: %s", error)
    broken = _kinds()[0](str(error))
    broken.__cause__ = error
    return broken


@functools.cache
def _kinds() -> tuple[type[concurrent.futures.BrokenExecutor], type[TaskKilledError]]:
    """The errors that programs expect of a ProcessPoolExecutor, for tasks and for workers that died."""
    from concurrent.futures.process import BrokenProcessPool

    class WorkerDiedError(TaskKilledError, BrokenProcessPool):
        """The worker of a task died, and again at each retry. Unlike in a ProcessPoolExecutor, others go on."""

    WorkerDiedError.__qualname__ = "WorkerDiedError"  # `__getattr__` finds it, for those who unpickle one
    return BrokenProcessPool, WorkerDiedError


if not TYPE_CHECKING:  # which would believe that there is every name

    def __getattr__(name: str) -> object:
        if name == "WorkerDiedError":
            return _kinds()[1]
        home = _LATER.get(name)
        if home is not None:
            return getattr(importlib.import_module(home), name)
        if name.startswith("_"):
            raise AttributeError(f"module 'daws.futures' has no attribute {name!r}")
        said = answer_of_module("daws.futures", name, __all__)
        caller = sys._getframe(1)
        if caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]:
            raise ImportError(said)  # `from daws.futures import X` would say nothing of an AttributeError
        raise AttributeError(said, name=name, obj=None)


def _chunks(items: Iterable[tuple[Any, ...]], size: int) -> Iterator[tuple[tuple[Any, ...], ...]]:
    items = iter(items)
    while chunk := tuple(itertools.islice(items, size)):
        yield chunk


def _call_all(function: Callable[..., T], chunk: tuple[tuple[Any, ...], ...]) -> list[T]:
    return [function(*item) for item in chunk]


def _in_turn(
    begun: "collections.deque[ExecutorFuture[T]]",
    calls: Iterator[tuple[Any, ...]],
    whose: "weakref.ref[Executor]",
    fn: Callable[..., T],
    until: float | None,
) -> Iterator[T]:
    """Results in order; with each that is handed out, one more call begins. The rest is cancelled at the end."""
    try:
        while begun:
            executor = whose()
            call = next(calls, None) if executor is not None else None
            if executor is not None and call is not None:
                begun.append(executor.submit(fn, *call))
            del executor, call
            yield begun.popleft().result(None if until is None else until - time.monotonic())
    finally:
        for future in begun:
            future.cancel()


def _each(chunks: Iterator[list[T]]) -> Iterator[T]:
    for chunk in chunks:
        chunk.reverse()
        while chunk:
            yield chunk.pop()  # no reference is kept to what was handed out


@atexit.register
def _finish_all() -> None:
    """A program that ends waits for what it has submitted, as with the executors of the standard library."""
    for executor in tuple(_open):
        executor.shutdown(wait=True)
