"""The cluster as a task sees it that runs there: it may submit tasks too, and wait for them.

The words are those of `Cluster`. While a task waits, its worker runs others, so tasks that wait for tasks never block
each other, however few workers there are. The result of such a future belongs to the task that submitted it, and goes
when that task has ended. The future can be an argument of other tasks of the same one, but it cannot be returned.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from pickle import PickleBuffer
from typing import Any, ClassVar, NoReturn, TypeVar

from msgspec.structs import replace

from daws.client.arguments import LargeArguments
from daws.client.future import CANCELLED, FAILED, INLINE, PENDING, STORED, Future, collecting, end_pending
from daws.client.hints import answer_to, check_arguments
from daws.client.mapping import Mapped, map_chunks
from daws.client.options import NAMES, OPTION_NAMES, OUTPUTS_MAX, USUAL, Args, Function, Kwargs, Options
from daws.client.results import same
from daws.client.signatures import ClusterMethods, Submitter
from daws.data.buffers import BufferObject
from daws.data.codec import dumps_call, dumps_plain
from daws.model.errors import ClosedError, TaskFailedError, UsageError
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.wire.worker import ChildEnd, ObjectFile, Seed
from daws.workers.failures import exception_of, with_way
from daws.workers.nest import RunNest, current_nest
from daws.workers.roots import FailureBook
from daws.workers.running import loaded

T = TypeVar("T")
CLIENTS_ALONE = "inside a task there is no {}(): call it outside of tasks, where the cluster was made or connected to"
NO_RUN = "inside a task, run programs by subprocess.run, or submit commands from outside of tasks"
NO_MEMO = "inside a task results are not reused: leave out memo=, or submit such tasks from outside of tasks"
KEPT_BYTES = 1 << 26
"""The bytes of large arguments that a task keeps for the tasks that it may submit next."""
NO_CANCEL = "a task cannot cancel the tasks that it has submitted; they are cancelled with it"


def current() -> "InnerCluster":
    """Inside a task, return the cluster that the task runs in, with `submit`, `map`, `gather`, `put`, `options`."""
    nest = current_nest()
    if nest is None:
        raise UsageError("daws.current() is for tasks: here, make a daws.Cluster")
    if nest.session is None:
        nest.session = InnerSession(nest)
    return InnerCluster(nest.session)


def _refused(name: str, why: str = CLIENTS_ALONE) -> Callable[..., NoReturn]:
    """A method of clusters or of futures that tasks do not have."""

    def refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
        raise UsageError(why.format(name))

    refuse.__name__, refuse.__doc__ = name, "Refused inside of tasks: for clients alone."
    return refuse


class InnerCluster(ClusterMethods):
    """The cluster that `daws.current()` gives; the methods are those of `Cluster`."""

    _checked = USUAL

    def __init__(self, session: "InnerSession") -> None:
        self._session = session

    def _with_options(self, options: dict[str, Any]) -> Submitter:
        if options.get("memo") is True:
            raise UsageError(NO_MEMO)
        return super()._with_options(options)

    def _start(self, function: Function, args: Args, kwargs: Kwargs, options: Options) -> Any:
        if kwargs and not OPTION_NAMES.isdisjoint(kwargs):
            check_arguments(function, kwargs, NAMES)
        futures = self._session.submit_several(self._session.number_of(function), args, kwargs, options)
        return futures if options.outputs > 1 else futures[0]

    def _map(self, function: Function, iterables: tuple[Any, ...], chunk: int | None, options: Options) -> Mapped[Any]:
        return map_chunks(self._session, self._session.nest.workers, function, iterables, chunk, options)

    def put(self, value: T) -> Future[T]:
        """Hand in an object once that many tasks read. (Another task brings it in, so it may still be pending.)"""
        return self.submit(same, value)

    @property
    def workers(self) -> int:
        """The number of workers."""
        return self._session.nest.workers

    run = _run = _refused("run", NO_RUN)
    cancel = _refused("cancel", NO_CANCEL)
    nodes = _refused("nodes")
    sessions = _refused("sessions")
    drain = _refused("drain")
    end = _refused("end")
    counters = _refused("counters")
    use_strategy = _refused("use_strategy")
    close = _refused("close")

    def __repr__(self) -> str:
        return f"<InnerCluster: {len(self._session.futures):,} tasks submitted>"


answer_to(InnerCluster, "Cluster")


class InnerSession:
    """The tasks that one run of a task has submitted."""

    def __init__(self, nest: RunNest) -> None:
        self.nest = nest
        self.memo_notes: dict[int, str] = {}  # none: tasks that tasks submit are not looked up
        self.futures: dict[int, tuple[InnerFuture[Any], ...]] = {}  # by number of the task: one for each output
        self._files: dict[int, ObjectFile] = {}  # by object that does not travel with messages
        self._raised = FailureBook()
        self.number_of = nest.number_of
        self._large = LargeArguments(self._put, may_exchange=False, kept_bytes=KEPT_BYTES)
        self._reading: dict[int, list[Future[Any]]] = {}  # by task: its large arguments
        self.unneeded: deque[int] = deque()  # tasks that brought in large arguments, which nobody reads any more
        nest.on_end = self._on_end

    hears_of_items = False

    def check_may_wait(self) -> None:
        """A task may."""

    cancel = _refused("cancel", NO_CANCEL)

    def see(self, futures: Iterable[Future[Any]]) -> None:
        """Do nothing: errors of these tasks are raised by the task that submitted them, or dropped with it."""

    def may_have_failed_items(self, task: int) -> bool:
        """Return True: nothing is known here without reading the results."""
        return True

    def submit_number(self, number: int, args: Args, kwargs: Kwargs, options: Options) -> Future[Any]:
        return self.submit_several(number, args, kwargs, options)[0]

    def submit_several(self, function: int, args: Args, kwargs: Kwargs, options: Options) -> "tuple[Future[Any], ...]":
        found: Iterable[Future[Any]] = ()
        payload = b"" if kwargs else dumps_plain(args)
        if not payload:
            payload, found = self._large.pickled(args, kwargs, self._check_own)
        if options.writable and found:
            payload = b"w" + payload
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
        large: list[Future[Any]] = [future for future in found if future.__class__ is LargeFuture]
        if large:
            self._reading[number] = large
            self._large.submitted(number, large)
        return futures

    def _check_own(self, futures: Iterable[Future[Any]]) -> None:
        for future in futures:
            if not future._is_inner or future._session is not self:  # type: ignore[comparison-overlap]
                raise ClosedError(f"{future!r} belongs to another task or cluster; pass its result instead")

    def _put(self, made: BufferObject) -> Future[Any]:
        """A task that brings in an object with one buffer."""
        payload = dumps_call((PickleBuffer(made.view),), {})
        self._drop_unneeded()
        number = self.nest.spawn(Seed(self.number_of(PickleBuffer), payload))
        return LargeFuture(self, number, number * OUTPUTS_MAX)

    def _drop_unneeded(self) -> None:
        gone: list[int] = []
        with suppress(IndexError):  # several threads of a task may submit
            while True:
                gone.append(self.unneeded.popleft())
        if gone:
            self.nest.drop(tuple(gone))

    def wait(self, futures: "Iterable[Future[Any]]") -> None:
        """Wait until all of these futures have ended."""
        self._drop_unneeded()
        self.nest.wait(dict.fromkeys([future.task for future in futures if future._state == PENDING]))

    def _on_end(self, end: ChildEnd) -> None:
        futures = self.futures.get(end.number, ())  # nobody asks how those have ended that brought in an argument
        if self._reading.pop(end.number, None):
            self._large.ended(end.number)
        if end.error:
            error, failure = self._raised.find(end.task, end.error, end.failure)
            end = replace(end, error=error, failure=failure)
        if end.state:
            end_pending(futures, CANCELLED if end.state == STATE_CANCELLED else FAILED, end)
            return
        for future, result in zip(futures, end.results, strict=False):
            if isinstance(result, bytes):
                future._what = result
                future._state = INLINE
            else:
                self._files[future.object] = result
                future._state = STORED
        for future in futures:
            future._tell_all()

    def load(self, object_: int) -> Any:
        return loaded(self._files[object_], private=True)

    def exception_of(self, future: Future[Any]) -> BaseException:
        what = future._what
        if isinstance(what, ChildEnd):
            if future._state == CANCELLED and not what.failure:
                from daws.client.cancelled import TaskCancelledError  # dear, and seldom needed in workers

                future._what = what = TaskCancelledError(what.error or "the task was cancelled")
            else:
                raised = exception_of(what.failure) if what.failure else TaskFailedError(what.error)
                future._what = what = with_way(raised, what.task, what.path, what.error)
        assert isinstance(what, BaseException)
        return what


class InnerFuture(Future[T], gc=True):
    """The result of a task that another task has submitted. `task` is its number there; `object` names the output."""

    _session: InnerSession  # type: ignore[assignment]
    _is_inner: ClassVar[bool] = True

    def done(self) -> bool:
        if self._state == PENDING:
            self._session.nest.look()
        return self._state != PENDING

    cancel = _refused("cancel", NO_CANCEL)
    running = _refused(
        "running", "inside a task it is not known which of its tasks run now; done() says which have ended"
    )
    explain = _refused("explain", "inside a task it is not known why its tasks ran where they did; ask futures outside")

    def _wait(self, timeout: float | None) -> None:
        if timeout is None:
            self._session.wait([self])
        elif timeout > 0:
            raise UsageError("inside a task there is no time limit for waiting: leave out timeout, or ask done()")
        elif not self.done():
            raise TimeoutError(f"{self!r} has not ended")

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


class LargeFuture(InnerFuture[T], gc=True):
    """A large argument. When nothing here refers to it any more, no task reads it, and none will."""

    def __del__(self) -> None:
        self._session.unneeded.append(self.task)  # and no more than that: it may be called in the middle of anything
