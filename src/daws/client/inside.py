"""The cluster as a task sees it that runs there: it may submit tasks too, and wait for them.

The words are those of `Cluster`. While a task waits, its worker runs others, so tasks that wait for tasks never block
each other, however few workers there are. What such a future stands for belongs to the task that made it: it can be
given to other tasks of the same one, not returned, because it goes when that task has ended.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar

from daws.client.future import CANCELLED, FAILED, INLINE, PENDING, STORED, Future, collecting
from daws.client.given import arguments
from daws.client.mapping import Mapped, map_chunks
from daws.client.options import OUTPUTS_MAX, USUAL, Options, options_of
from daws.client.waiting import Errors, gather
from daws.data.codec import dumps_call
from daws.model.errors import ClosedError, TaskCancelledError, TaskFailedError, UsageError
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.wire.worker import ChildEnd, ObjectFile, Seed
from daws.workers.failures import exception_of
from daws.workers.nest import Nest, current_nest
from daws.workers.running import loaded

T = TypeVar("T")
NO_CANCEL = "a task cannot cancel the tasks that it has submitted; they are cancelled with it"


def current() -> "InnerCluster":
    """Inside a task: the cluster that it runs in."""
    nest = current_nest()
    if nest is None:
        raise UsageError("daws.current() is for tasks: here, make a daws.Cluster")
    if nest.session is None:
        nest.session = InnerSession(nest)
    return InnerCluster(nest.session)


class InnerCluster:
    """What `daws.current()` gives; the methods are those of `Cluster`."""

    def __init__(self, session: "InnerSession") -> None:
        self._session = session

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run `function(*args, **kwargs)` in a worker. Futures anywhere inside the arguments become its inputs."""
        return self._session.submit(self._session.number_of(function), args, kwargs, USUAL)

    def call(
        self,
        function: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Like `submit`, with the options of `Cluster.call`."""
        return self._start(function, *arguments(args, kwargs), options_of(**options))

    def _start(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> Any:
        futures = self._session.submit_several(self._session.number_of(function), args, kwargs, options)
        return futures if options.outputs > 1 else futures[0]

    def map(self, function: Callable[..., T], *iterables: Iterable[Any], chunk: int | None = None) -> Mapped[T]:
        """Call `function` for each item, several items per task."""
        return map_chunks(self._session, self._session.nest.workers, function, iterables, chunk)

    def put(self, value: T) -> Future[T]:
        """Hand in an object once that many tasks read. (Another task brings it in, so it may still be pending.)"""
        return self.submit(_same, value)

    def run(self, *_: Any, **__: Any) -> NoReturn:
        """For clients alone."""
        raise UsageError("inside a task, run programs by subprocess.run, or submit commands from outside of tasks")

    def cancel(self, *_: Any) -> NoReturn:
        """For clients alone."""
        raise UsageError(NO_CANCEL)

    def gather(self, futures: Any, errors: Errors = "raise") -> Any:
        """The results of futures in lists, tuples, sets, dicts and dataclasses, however deep, in the same shape."""
        return gather(futures, errors)

    def __reduce__(self) -> NoReturn:
        raise UsageError("a cluster cannot be sent to tasks; inside of one, daws.current() is the cluster it runs in")

    def __repr__(self) -> str:
        return f"<InnerCluster: {len(self._session.futures):,} tasks submitted>"


def _same(value: T) -> T:
    return value


class InnerSession:
    """What one run of a task has submitted."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.futures: dict[int, tuple[InnerFuture[Any], ...]] = {}  # by number of the task: one for each output
        self._files: dict[int, ObjectFile] = {}  # by object that does not travel with messages
        self.number_of = nest.number_of
        nest.on_end = self._on_end

    def check_may_wait(self) -> None:
        """A task may."""

    def memo_of(self, task: int) -> None:
        """Tasks that tasks submit are not looked up."""

    def submit(self, function: int, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Future[Any]:
        return self.submit_several(function, args, kwargs, options)[0]

    def submit_several(
        self, function: int, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> "tuple[Future[Any], ...]":
        found: dict[Future[Any], int] = {}
        collecting.found = found
        try:
            payload = dumps_call(args, kwargs)
        finally:
            collecting.found = None
        for future in found:
            if not future.is_inner or future._session is not self:  # type: ignore[comparison-overlap]
                raise ClosedError(f"{future!r} belongs to another task or cluster; pass its result instead")
        inputs = tuple([(future.task, future.object % OUTPUTS_MAX) for future in found])
        seed = Seed(
            function,
            payload,
            inputs,
            options.outputs,
            options.needs,
            options.priority,
            options.retries,
            options.timeout_ns,
            options.estimate_ns,
            options.rank_ns,
        )
        number = self.nest.spawn(seed)
        first = number * OUTPUTS_MAX
        futures = tuple([InnerFuture[Any](self, number, first + index) for index in range(options.outputs)])
        self.futures[number] = futures
        return futures

    def wait(self, futures: "Iterable[Future[Any]]") -> None:
        """Until all of them have ended."""
        self.nest.wait(dict.fromkeys([future.task for future in futures if future._state == PENDING]))

    def _on_end(self, end: ChildEnd) -> None:
        futures = self.futures[end.number]
        for at, future in enumerate(futures):
            if end.state:
                future._what = end
                future._state = CANCELLED if end.state == STATE_CANCELLED else FAILED
                continue
            result = end.results[at]
            if isinstance(result, bytes):
                future._what = result
                future._state = INLINE
            else:
                self._files[future.object] = result
                future._state = STORED
        for future in futures:
            future._tell_all()

    def load(self, object_: int) -> Any:
        return loaded(self._files[object_])

    def exception_of(self, future: Future[Any]) -> BaseException:
        what = future._what
        if isinstance(what, ChildEnd):
            if what.failure:
                what = exception_of(what.failure)
            elif future._state == CANCELLED:
                what = TaskCancelledError(what.error or "the task was cancelled")
            else:
                what = TaskFailedError(what.error)
            future._what = what
        assert isinstance(what, BaseException)
        return what


class InnerFuture(Future[T], gc=True):
    """The result of a task that another task has submitted. `task` is its number there; `object` names the output."""

    _session: InnerSession  # type: ignore[assignment]
    is_inner: ClassVar[bool] = True

    def done(self) -> bool:
        if self._state == PENDING:
            self._session.nest.look()
        return self._state != PENDING

    def cancel(self) -> None:
        raise UsageError(NO_CANCEL)

    def explain(self) -> NoReturn:
        raise UsageError("inside a task nobody knows why others ran where they did; ask futures outside of tasks")

    def _wait(self, timeout: float | None) -> None:
        if timeout is None:
            self._session.wait([self])
        elif timeout > 0:
            raise UsageError("inside a task there is no time limit for waiting: leave out timeout, or ask done()")
        elif not self.done():
            raise TimeoutError(f"{self!r} has not ended")

    def wait_with(self, others: Iterable[Future[Any]]) -> None:
        self._session.wait([self, *others])

    def __await__(self) -> Generator[Any, None, T]:
        yield from ()
        return self.result()

    def __reduce__(self) -> Any:
        if collecting.found is None:
            raise UsageError(f"{self!r} goes with the task that submitted it: return its result() instead")
        return super().__reduce__()

    def __del__(self) -> None:
        """Its task is let go of when the task that submitted it has ended."""

    def __repr__(self) -> str:
        return super().__repr__().replace("Future", "InnerFuture")
