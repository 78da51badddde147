"""Waiting for many futures at once."""

import time
from _thread import allocate_lock
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Self, TypeVar, overload

from daws.client.future import FAILED, INLINE, NOTHING, PENDING, STORED, VALUE, Future, Ring, acquire
from daws.client.hints import answer_to, check_value, refuse_gathering, refuse_waiting
from daws.client.mapping import ItemFuture, Mapped, error_of
from daws.client.progress import noun_of, show
from daws.data.codec import loads_plain
from daws.model.errors import DawsError, UsageError
from daws.runs.progress import Progress

T = TypeVar("T")
F = TypeVar("F")
Errors = Literal["raise", "return", "skip"]
TOGETHER = 1024
"""So many results are waited for at once: a thread that is woken by each end takes the interpreter, and where all
processors are busy one of those too, from the one that brings the ends."""
TOGETHER_MIN = 8
"""Of fewer each is waited for by itself."""
SESSION = attrgetter("_session")
WORDS = {"ALL_COMPLETED": "all", "FIRST_COMPLETED": "first", "FIRST_EXCEPTION": "error"}


NO_FUTURE = "is no future of daws; give what submit, map or run returned"


def distinct(futures: Any) -> dict[Future[Any], list[Any]]:
    """By future of a task, each once: what of the given futures ends with it. UsageError for what is no future.

    Given may be the futures of tasks or of items, and what `map` gives, which stands for all of its items: these are
    made when they are asked for, so here they are a range.
    """
    if isinstance(futures, (Future, ItemFuture)):
        raise UsageError(f"{futures!r} is one future; give a list of them, or ask it for its result()")
    if not isinstance(futures, Iterable):
        raise UsageError(f"{futures!r:.100} {NO_FUTURE}")
    found: dict[Future[Any], list[Any]] = {}
    for one in [futures] if isinstance(futures, Mapped) else dict.fromkeys(futures):
        if isinstance(one, Future):
            found.setdefault(one, []).append(one)
        elif isinstance(one, ItemFuture):
            found.setdefault(one._chunk, []).append(one)
        elif isinstance(one, Mapped):
            first = 0
            for chunk, count in one._chunks():
                found.setdefault(chunk, []).append(range(first, first + count))
                first += count
        else:
            check_value(one, "daws")
            raise UsageError(f"{one!r:.100} {NO_FUTURE}")
    return found


def _each(task: Future[Any], entries: list[Any]) -> Iterator[Any]:
    """The futures that end with a task, each once."""
    for entry in entries:
        if isinstance(entry, range):
            yield from [ItemFuture(task, at, item) for at, item in enumerate(entry)]
        else:
            yield entry


def each_once(futures: Any) -> list[Any]:
    """The futures that are given, each once; what `map` gives stands for those of its items."""
    return [one for task, entries in distinct(futures).items() for one in _each(task, entries)]


class _Gate:
    """Futures arrive here when they end."""

    def __init__(self) -> None:
        self.arrived: deque[Future[Any]] = deque()
        self.inner: deque[Future[Any]] = deque()
        self.lock = allocate_lock()
        self.lock.acquire()

    def expect(self, future: Future[Any]) -> None:
        if future._is_inner:
            self.inner.append(future)
        future._tell(_Arrival(self, future))

    def next(self, until: float | None) -> Future[Any]:
        while not self.arrived and self.inner:
            # Inside a task: what has ended by now, or else the oldest, which the executor need not stand still for.
            if self.inner[0].done():
                self.inner.popleft()
            elif not self.arrived:
                self.inner[0].exception(None if until is None else max(0.0, until - time.monotonic()))
        while not self.arrived:
            if not acquire(self.lock, None if until is None else until - time.monotonic()):
                raise TimeoutError
        return self.arrived.popleft()


class _Arrival:
    __slots__ = ("future", "gate")

    def __init__(self, gate: _Gate, future: Future[Any]) -> None:
        self.gate = gate
        self.future = future

    def release(self) -> None:
        self.gate.arrived.append(self.future)
        if self.gate.lock.locked():
            try:
                self.gate.lock.release()
            except RuntimeError:
                return  # somebody else has just done it


class AsCompleted(Iterator[F]):
    """Futures in the order in which they end, for `for` and for `async for`."""

    def __init__(self, futures: Any, timeout: float | None) -> None:
        self._timeout = timeout
        self._until = None if timeout is None else time.monotonic() + timeout
        self._entries = distinct(futures)
        self._left = len(self._entries)
        self._steps = self._wait()

    def _wait(self) -> Iterator[F]:
        entries = self._entries
        if any(not future.done() for future in entries):
            next(iter(entries))._session.check_may_wait()
        gate = _Gate()
        for future in entries:
            gate.expect(future)
        while self._left:
            try:
                ended = gate.next(self._until)
            except TimeoutError:
                raise self._too_late() from None
            self._left -= 1
            yield from _each(ended, entries[ended])

    async def _wait_on_loop(self) -> AsyncIterator[F]:
        import asyncio

        if any(future._is_inner for future in self._entries):
            for one in self._steps:
                yield one
            return
        ended: asyncio.Queue[Future[Any]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        for future in self._entries:
            future._tell(_ToLoop(loop, ended.put_nowait, future))
        while self._left:
            try:
                left_s = None if self._until is None else self._until - time.monotonic()
                found = await asyncio.wait_for(ended.get(), left_s)
            except TimeoutError:
                raise self._too_late() from None
            self._left -= 1
            for one in _each(found, self._entries[found]):
                yield one

    def _too_late(self) -> TimeoutError:
        return TimeoutError(f"{self._left} of {len(self._entries)} tasks have not ended within {self._timeout:g} s")

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> F:
        return next(self._steps)

    def __aiter__(self) -> AsyncIterator[F]:
        return self._wait_on_loop()


answer_to(AsCompleted)


class _ToLoop:
    """Tells an event loop that a future has ended."""

    __slots__ = ("future", "loop", "tell")

    def __init__(self, loop: Any, tell: Any, future: Future[Any]) -> None:
        self.loop = loop
        self.tell = tell
        self.future = future

    def release(self) -> None:
        with suppress(RuntimeError):  # the loop was closed, so nobody waits any more
            self.loop.call_soon_threadsafe(self.tell, self.future)


@overload
def as_completed(futures: Mapped[T], timeout: float | None = None) -> AsCompleted[ItemFuture[T]]: ...
@overload
def as_completed(futures: Iterable[F], timeout: float | None = None) -> AsCompleted[F]: ...


def as_completed(futures: Any, timeout: float | None = None, *more: Any, **others: Any) -> Any:
    """Iterate over the futures in the order in which they end; TimeoutError after `timeout` seconds.

    The result of a `map` stands for the futures of its items. `async for` works as well as `for`.
    """
    if more or others or isinstance(timeout, (Future, ItemFuture, Mapped)):
        refuse_waiting("as_completed", more, others, ("timeout",))
    return AsCompleted(futures, timeout)


class Waited(NamedTuple):
    """Futures that have ended, and those that have not."""

    done: set[Any]
    not_done: set[Any]


def wait(
    futures: Iterable[Future[Any] | ItemFuture[Any] | Mapped[Any]] | Mapped[Any],
    timeout: float | None = None,
    return_when: str = "all",
    *more: Any,
    **others: Any,
) -> Waited:
    """Wait for futures, and return two sets: `done` and `not_done`.

    `return_when` is `"all"`, `"first"`, or `"error"` for the first error (or all futures, if none fails). The words of
    `concurrent.futures` (`FIRST_COMPLETED` …) are understood too. The result of a `map` stands for the futures of its
    items.
    """
    if more or others or isinstance(timeout, (Future, ItemFuture, Mapped)):
        refuse_waiting("wait", more, others, ("timeout", "return_when"))
    return_when = WORDS.get(return_when, return_when)
    if return_when not in ("all", "first", "error"):
        raise UsageError(f"return_when={return_when!r}: give 'all', 'first' or 'error' (or {', '.join(WORDS)})")
    ending: AsCompleted[Any] = AsCompleted(futures, timeout)
    waiting = [one for task, entries in ending._entries.items() for one in _each(task, entries)]
    done: set[Any] = set()
    if return_when == "all" and timeout is None:
        _wait_inside(ending._entries)
    try:
        for future in ending:
            done.add(future)
            if return_when == "first" or (return_when == "error" and future.exception() is not None):
                done.update([other for other in waiting if other.done()])
                break
    except TimeoutError:
        pass
    return Waited(done, {future for future in waiting if future not in done})


def gather(
    futures: Any,
    errors: Errors = "raise",
    timeout: float | None = None,
    progress: bool = False,
    *more: Any,
    **others: Any,
) -> Any:
    """Wait for all futures and return their results in the same shape.

    Futures may be in lists, tuples, sets, dicts and dataclasses, however deep. A generator becomes a list, and so do
    the results of a `map`.

    `errors="return"` puts exceptions where results would be, `"skip"` leaves failed ones out of lists and dicts.
    `progress=True` shows a bar on terminals and in notebooks.
    """
    if more or others or isinstance(errors, (Future, ItemFuture, Mapped)):
        refuse_gathering(more, others)
    if errors not in ("raise", "return", "skip"):
        raise UsageError(f"errors={errors!r}: give 'raise', 'return' or 'skip'")
    until = None if timeout is None else time.monotonic() + timeout
    if isinstance(futures, Iterator) and not isinstance(futures, Mapped):
        futures = list(futures)
    if progress:
        _watch(each_once(_given(futures)), errors == "raise", timeout)
    elif timeout is None:
        _wait_inside(_leaves(futures))
    try:
        return _gathered(futures, errors, until)
    except Exception as error:
        leaves = set(_leaves(futures))
        for leaf in leaves:
            leaf._session.see([leaf])  # one error is raised for all
        if not isinstance(error, TimeoutError):
            raise
        left = sum(not future.done() for future in leaves)
        if timeout is None or not left:
            raise  # by a task
        raise TimeoutError(f"{left} of {len(leaves)} tasks have not ended within {timeout:g} s") from None


def _watch(futures: list[Any], to_the_first_error: bool, timeout: float | None) -> None:
    with Progress(len(futures), counted=noun_of(futures)) as bar:
        show(bar, as_completed(futures, timeout), to_the_first_error)


def _wait_inside(futures: Iterable[Future[Any]]) -> None:
    """A task that waits for many of its own waits once for all of them."""
    first = next(iter(futures), None)
    if first is not None and first._is_inner:
        first._wait_with(futures)


def _leaves(what: Any) -> Iterator[Future[Any]]:
    """The futures of tasks that have to end."""
    for one in _given(what):
        if isinstance(one, ItemFuture):
            yield one._chunk
        elif isinstance(one, Mapped):
            yield from one._futures
        else:
            yield one


def _given(what: Any) -> Iterator[Any]:
    """All futures in here, of tasks and of items, and what `map` gives."""
    if isinstance(what, (Future, ItemFuture, Mapped)):
        yield what
    elif isinstance(what, dict):
        for value in what.values():
            yield from _given(value)
    elif isinstance(what, (list, tuple, set, frozenset)):
        for value in what:
            yield from _given(value)
    else:
        for name in _fields(what):
            yield from _given(getattr(what, name, None))


def _fields(what: Any) -> Iterable[str]:
    """The names of a dataclass's fields, which are none for all else. (`dataclasses` itself takes 20 ms to import.)"""
    return getattr(type(what), "__dataclass_fields__", ())


def _gathered(what: Any, errors: Errors, until: float | None) -> Any:
    if isinstance(what, (Future, ItemFuture)):
        left = None if until is None else max(0.0, until - time.monotonic())
        if errors == "raise":
            return what.result(left)
        error = what.exception(left)
        try:
            return what.result() if error is None else error
        except DawsError as unreadable:  # the task is not to blame
            return unreadable
    if isinstance(what, Mapped):
        return list(what) if errors == "raise" and until is None else _items(what, errors, until)
    if isinstance(what, dict):
        return {key: _gathered(value, errors, until) for key, value in what.items() if _kept(value, errors, until)}
    if isinstance(what, (list, tuple, set, frozenset)):
        if errors == "raise" and until is None and len(what) >= TOGETHER_MIN:
            items = _results(what)
        elif errors == "raise" and until is None:
            items = [one.result() if one.__class__ is Future else _gathered(one, errors, until) for one in what]
        else:
            items = [_gathered(value, errors, until) for value in what if _kept(value, errors, until)]
        return _in_the_shape_of(what, items)
    if _fields(what):
        return _with_results(what, errors, until)
    check_value(what, "gather")
    return what


def _items(mapped: Mapped[Any], errors: Errors, until: float | None) -> list[Any]:
    """The results of a map. Items of a chunk that failed as a whole have failed, each of them."""
    items: list[Any] = []
    for future, count in mapped._chunks():
        is_good = _kept(future, "skip", until)
        found = _gathered(future, errors, until)
        for one in found if is_good else [found] * count:
            error = error_of(future, one) if is_good else one
            if error is None:
                items.append(one)
            elif errors == "raise":
                raise error
            elif errors == "return":
                items.append(error)
    return items


def _results(what: Iterable[Any]) -> list[Any]:
    """Whatever becomes of `what` when all that it has in it is to end well, however long that takes."""
    rest = list(what)
    items: list[Any] = []
    add = items.append
    for low in range(0, len(rest), TOGETHER):
        some = rest[low : low + TOGETHER]
        _wait_for_all(some)
        for one in some:
            if one.__class__ is not Future:
                value = _gathered(one, "raise", None)
            elif one._state != INLINE:
                value = one.result()
            elif one._what == NOTHING:  # most have no result
                value = None
            elif (value := loads_plain(one._what)) is None:
                value = one.result()
            else:  # as `result` would
                one._what = value
                one._state = VALUE
            add(value)
    return items


def _wait_for_all(some: list[Any]) -> None:
    """Until all of these have ended; what one raised that did not end well is raised at once. What is unusual (not all
    are futures, or not of one session) is not waited for here."""
    first = some[0]
    if first.__class__ is not Future:
        return
    session = first._session
    if {*map(type, some)} != {Future} or len({*map(SESSION, some)}) > 1:
        return
    awaited, bell = None, Ring()
    session.alarms.append(bell)
    try:
        while True:
            states = [one._state for one in some]
            if max(states) >= FAILED:
                some[next(at for at, state in enumerate(states) if state >= FAILED)].result()
            if PENDING not in states:
                if STORED in states:
                    session.expect_reading([one for one, state in zip(some, states, strict=True) if state == STORED])
                return
            if awaited is None or awaited._state != PENDING:
                left = [one for one, state in zip(some, states, strict=True) if state == PENDING]
                # Most often the last ends last. If not, half of the others may have ended with one in the middle.
                awaited = left[-1] if awaited is None else left[len(left) // 2]
                session.check_may_wait()
                awaited._tell(bell)
            acquire(bell.lock, None)
    finally:
        session.alarms.remove(bell)


def _with_results(what: Any, errors: Errors, until: float | None) -> Any:
    """A copy of a dataclass, made without its constructor, which has seen the futures. What is skipped is None."""
    from copy import copy

    found = copy(what)
    for name in _fields(what):
        value = getattr(what, name, None)
        result = _gathered(value, errors, until) if _kept(value, errors, until) else None
        if result is not value:
            object.__setattr__(found, name, result)
    return found


def _in_the_shape_of(what: Any, items: list[Any]) -> Any:
    if isinstance(what, list):
        return items
    if hasattr(what, "_make"):  # a named tuple, unless some were skipped
        return what._make(items) if len(items) == len(what) else tuple(items)
    return type(what)(items)


def _kept(what: Any, errors: Errors, until: float | None) -> bool:
    if errors != "skip" or not isinstance(what, (Future, ItemFuture)):
        return True
    if what.exception(None if until is None else max(0.0, until - time.monotonic())) is not None:
        return False
    try:
        what.result()
    except DawsError:  # it cannot be read
        return False
    return True
