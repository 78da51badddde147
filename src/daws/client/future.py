"""A future: the result of a task that may not have ended yet.

Small, because there may be millions: whatever is needed only to wait for one is made when somebody waits. A future that
is garbage collected lets go of its task, and what the task made may go when no other task reads it.
"""

from _thread import LockType, allocate_lock
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from functools import partial
from sys import _getframe
from threading import get_ident, local, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from msgspec import Struct

from daws.client.hints import answer_to, refuse_as_value
from daws.data.codec import dumps, loads
from daws.model.errors import DawsError, UsageError
from daws.workers.errors import UnreadableError
from daws.workers.slots import fill

if TYPE_CHECKING:
    import asyncio

    from daws.client.explaining import Explanation
    from daws.client.session import Session

T = TypeVar("T")

PENDING = 0
INLINE = 1  # the result as bytes
STORED = 2  # the result lies in a file
VALUE = 3  # the result itself
FAILED = 4
CANCELLED = 5

_WORDS = {PENDING: "pending", INLINE: "done", STORED: "done", VALUE: "done", FAILED: "failed", CANCELLED: "cancelled"}


LET_GO_MAX = 256
"""The number of dropped futures that is worth waking the engine."""
LOOK_UP_S = 1.0
ON_LOOP = (
    "asyncio: await the future itself, or asyncio.gather(*futures), or async for future in daws.as_completed(futures); "
    "for run_in_executor: daws.futures.Executor(cluster=cluster)"
)
NOTHING = dumps(None)
"""Many tasks have no result."""


class _Collecting(local):
    found: "dict[Future[Any], int] | None" = None


collecting = _Collecting()
"""The futures among the arguments that are being pickled by this thread; None when no task is being submitted."""


class Future(Struct, Generic[T], gc=False, eq=False):
    """The future result of a task, made by `submit`. Pass it to other tasks to build a graph.

    `task` is the number of the task, `object` the number of its result. `await future` works too.
    """

    # The collector of cycles does not look at these: with many of them pending that was a tenth of what they cost. So
    # nothing that one refers to may refer back to it for long, as the traceback of an exception would.

    _session: "Session"
    task: int
    object: int
    _state: int = PENDING
    _what: Any = None  # by state: bytes, nothing, the value, or how it ended
    _told: list[Callable[[], Any]] | None = None  # called when it ends
    _is_inner: ClassVar[bool] = False  # submitted by a task, where waiting is more than standing still (see `inside`)

    def done(self) -> bool:
        """Has the task ended, in whatever way?"""
        return self._state != PENDING

    def _is_stored(self) -> bool:
        """Does its result lie in a file, and has nobody asked for it yet?"""
        return self._state == STORED

    def cancelled(self) -> bool:
        """Was the task cancelled, or a task that it needs?"""
        return self._state == CANCELLED

    def _has_failed(self) -> bool:
        """Has it ended, and not well?"""
        return self._state >= FAILED

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result and return it. Raises the exception of the task, or TimeoutError."""
        state = self._state
        if state == PENDING:
            self._wait(timeout)
            state = self._state
        value: Any
        if state == INLINE:
            value = self._what
            try:
                self._what = value = None if value == NOTHING else loads(value, True)
            except (DawsError, MemoryError):
                raise
            except Exception as error:
                raise self._unreadable(error) from error
            self._state = VALUE
            return value  # type: ignore[no-any-return]
        if state == VALUE:
            return self._what  # type: ignore[no-any-return]
        if state == STORED:
            try:
                self._what = value = self._session.load(self.object)
            except (DawsError, MemoryError, OSError):
                raise
            except Exception as error:
                raise self._unreadable(error) from error
            self._state = VALUE
            return value  # type: ignore[no-any-return]
        raise self._session.exception_of(self)

    def _unreadable(self, error: Exception) -> UnreadableError:
        """Unpickling calls code of the user's, which may raise anything; that is not what the task raised."""
        return UnreadableError(f"task {self.task}: its result cannot be loaded here: {type(error).__name__}: {error}")

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end of the task and return the exception that it raised, or None."""
        if self._state == PENDING:
            self._wait(timeout)
        return self._session.exception_of(self) if self._state >= FAILED else None

    @property
    def state(self) -> str:
        """The state in a word: pending, done, failed or cancelled."""
        if self._state == FAILED:
            self._session.see([self])
        return _WORDS[self._state]

    def explain(self) -> "Explanation":
        """Say where the task ran and why. Most of the numbers are recorded only with `Cluster(explain=True)`."""
        from daws.client.explaining import explain

        return explain(self)

    @property
    def memo(self) -> str | None:
        """The reason why a task with `memo=True` ran, or where its result was reused from. None for other tasks."""
        return self._session.memo_notes.get(self.task)

    def running(self) -> bool:
        """Does a worker run the task now? Asks the nodes."""
        return self._state == PENDING and self._session.is_running(self.task)

    def cancel(self) -> bool:
        """Stop the task if it runs, drop it if it waits; tasks that need it are cancelled too.

        Returns True if the task is cancelled now, and False if it had ended before. A task that runs in a thread
        (`kind="threads"`) cannot be stopped: it runs to its end, and its result is dropped.
        """
        return self._session.cancel([self]) > 0 or self._state == CANCELLED

    def add_done_callback(self, function: "Callable[[Future[T]], Any]") -> None:
        """Call `function(future)` on a thread of the cluster when the task ends, or now if it has ended."""
        check_callback(function)
        self._tell(partial(_call_back, function, self))

    def _tell(self, listener: Callable[[], Any]) -> None:
        """Have `listener` called when this ends (at once if it has)."""
        if self._told is None:
            self._told = [listener]
        else:
            self._told.append(listener)
        if self._state != PENDING:
            self._tell_all()

    def _tell_all(self) -> None:
        while self._told:
            try:
                listener = self._told.pop(0)
            except IndexError:
                return  # another thread was faster
            try:
                listener()
            except BaseException:  # an exit, or Ctrl-C: the others wait all the same
                self._tell_all()
                raise

    def _wait(self, timeout: float | None) -> None:
        if not (timeout is None or hasattr(timeout, "__float__")):
            raise UsageError(f"timeout={timeout!r}: give a number of seconds")
        self._session.check_may_wait()
        lock = allocate_lock()
        lock.acquire()
        self._tell(lock.release)
        if not acquire(lock, timeout):
            with suppress(ValueError, AttributeError):  # it was told just now
                self._told.remove(lock.release)  # type: ignore[union-attr]
            raise TimeoutError(f"task {self.task} has not ended within {timeout:g} s")

    def __await__(self) -> Generator[Any, None, T]:
        import asyncio  # dear, and tasks that submit tasks have no need of it

        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        self._tell(partial(call_on_loop, loop, _end, ended))
        yield from ended
        return self.result()

    def __copy__(self) -> "Future[T]":
        return self

    def __reduce__(self) -> Any:
        found = collecting.found
        if found is None:
            raise UsageError(f"{self!r} can only be sent to another process as an argument of a task of its cluster")
        if self._state == INLINE:
            return loads, (self._what,)
        return fill, (found.setdefault(self, len(found)),)

    def __del__(self) -> None:
        session = self._session
        gone = session.gone
        gone.append(self.task)
        if session.stored or not len(gone) & 255:  # LET_GO_MAX, which may be gone when the program ends
            session.look_at_gone(self.task)

    def __repr__(self) -> str:
        if _getframe(1).f_globals.get("__name__") == "asyncio.futures":  # `wrap_future`, which is about to refuse it
            raise UsageError(ON_LOOP)
        return f"<Future {self.task}: {self.state}>"

    def _repr_html_(self) -> str:
        from daws.client.html import future_html

        return future_html(self)


answer_to(Future)
refuse_as_value(Future)


class OutputFuture(Future[T], gc=True):
    """A future that does not let go of its task itself. It holds an object that does, if there is one to let go of.

    A task with several outputs is thus kept as long as one of their futures is.
    """

    _held: Any = None

    def __del__(self) -> None:
        """Leave it to the object that is held."""


def end_pending(futures: "Iterable[Future[Any]]", state: int, what: Any) -> None:
    """End those of these futures that have not ended. Listeners are called when all of them have."""
    pending = [one for one in futures if one._state == PENDING]
    for one in pending:
        one._what = what
        one._state = state
    for one in pending:
        one._tell_all()


def check_callback(function: object) -> None:
    """Refuse what `asyncio.wait` gives: it counts on being called on its own loop, and would wait for ever."""
    if getattr(function, "__module__", "") == "asyncio.tasks":
        raise UsageError(ON_LOOP)


def acquire(lock: LockType, timeout: float | None) -> bool:
    """Wait for a lock, and look up now and then: a Ctrl-C that comes just before the interpreter begins to wait does
    not wake it."""
    if timeout is None:
        while not lock.acquire(timeout=LOOK_UP_S):
            pass
        return True
    until = monotonic() + timeout
    while not lock.acquire(timeout=max(0.0, min(LOOK_UP_S, until - monotonic()))):
        if monotonic() >= until:
            return False
    return True


class Ring:
    """Wakes one thread when the first of several futures has ended."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = allocate_lock()
        self.lock.acquire()

    def release(self) -> None:
        with suppress(RuntimeError):  # it was released before
            self.lock.release()


def _call_back(function: Callable[[Any], object], future: Future[Any]) -> None:
    try:
        function(future)
    except BaseException as error:
        # One that wants to exit, or Ctrl-C, is for the main thread alone, if the callback is called there.
        if not isinstance(error, Exception) and get_ident() == main_thread().ident:
            raise
        import logging

        logging.getLogger("daws.client").exception("a callback of %r raised", future)


def call_on_loop(loop: "asyncio.AbstractEventLoop", function: Callable[[Any], object], what: Any) -> None:
    """Have an event loop call `function(what)`."""
    with suppress(RuntimeError):  # the loop was closed, so nothing waits any more
        loop.call_soon_threadsafe(function, what)


def _end(awaited: "asyncio.Future[None]") -> None:
    if not awaited.done():
        awaited.set_result(None)
