"""Waiting for many futures at once."""

import time
from _thread import allocate_lock
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, NamedTuple, Self, TypeVar, overload

from daws.client.future import Future, ToLoop, acquire
from daws.client.hints import answer_to, check_value, refuse_waiting
from daws.client.mapping import ItemFuture, Mapped
from daws.model.errors import UsageError

T = TypeVar("T")
F = TypeVar("F")
WORDS = {"ALL_COMPLETED": "all", "FIRST_COMPLETED": "first", "FIRST_EXCEPTION": "error"}


NO_FUTURE = "is no future of daws; give what submit, map or run returned"


def distinct(futures: Any) -> dict[Future[Any], list[Any]]:
    """The futures of tasks, each once, with the given futures that end with each. UsageError for what is no future.

    Futures of tasks or of items may be given, and the result of `map`, which stands for all of its items. These are
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
            future._tell(ToLoop(loop, ended.put_nowait, future))
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
        wait_inside(ending._entries)
    try:
        for future in ending:
            done.add(future)
            if return_when == "first" or (return_when == "error" and future.exception() is not None):
                done.update([other for other in waiting if other.done()])
                break
    except TimeoutError:
        pass
    return Waited(done, {future for future in waiting if future not in done})


def wait_inside(futures: Iterable[Future[Any]]) -> None:
    """A task that waits for many of its own waits once for all of them."""
    first = next(iter(futures), None)
    if first is not None and first._is_inner:
        first._wait_with(futures)
