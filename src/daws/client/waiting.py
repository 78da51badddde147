"""Waiting for many futures at once, with or without a progress bar."""

import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar, overload

from daws.client.future import Future, Ring, acquire, call_on_loop
from daws.client.hints import answer_to, check_value, refuse_waiting
from daws.client.mapping import ItemFuture, Mapped
from daws.model.errors import UsageError
from daws.runs.progress import Progress

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


class AsCompleted(Iterator[F]):
    """Futures in the order in which they end, for `for` and for `async for`."""

    def __init__(self, futures: Any, timeout: float | None) -> None:
        self._timeout = timeout
        self._until = None if timeout is None else time.monotonic() + timeout
        self._entries = distinct(futures)
        self._left = len(self._entries)
        self._steps = self._wait()

    def _wait(self) -> Iterator[F]:
        entries, until = self._entries, self._until
        if any(not future.done() for future in entries):
            next(iter(entries))._session.check_may_wait()
        arrived: deque[Future[Any]] = deque()
        inner = deque([future for future in entries if future._is_inner])
        ring = Ring()

        def arrive(future: Future[Any]) -> None:
            arrived.append(future)
            if ring.lock.locked():
                ring.release()

        for future in entries:
            future._tell(partial(arrive, future))
        while self._left:
            while not arrived and inner:
                # Inside a task: what has ended by now, or else the oldest, which the executor need not stand still for.
                if inner[0].done():
                    inner.popleft()
                elif not arrived:
                    try:
                        inner[0].exception(None if until is None else max(0.0, until - time.monotonic()))
                    except TimeoutError:
                        raise self._too_late() from None
            while not arrived:
                if not acquire(ring.lock, None if until is None else until - time.monotonic()):
                    raise self._too_late()
            ended = arrived.popleft()
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
            future._tell(partial(call_on_loop, loop, ended.put_nowait, future))
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
        refuse_waiting("as_completed", others, ("timeout",))
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
        refuse_waiting("wait", others, ("timeout", "return_when"))
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
    rest = iter(futures)
    first = next(rest, None)
    if first is not None and first._is_inner:
        session: Any = first._session
        session.wait([first, *rest])


class FutureList(list[T]):
    """Futures, as a list that says in one line how far they are: the last line of a cell is shown."""

    def __repr__(self) -> str:
        from daws.client.html import states

        return f"<{len(self):,} futures: {states(self)}>"

    def _repr_html_(self) -> str:
        from daws.client.html import futures_html

        return futures_html(self)


@overload
def progress(futures: Mapped[T], timeout: float | None = None) -> FutureList[ItemFuture[T]]: ...
@overload
def progress(futures: Iterable[F], timeout: float | None = None) -> FutureList[F]: ...


def progress(futures: Any, timeout: float | None = None, *more: Any, **others: Any) -> Any:
    """Wait for all futures with a progress bar, and return them as a list.

    The bar is shown on terminals and in notebooks. The result of a `map` stands for the futures of its items. Failed
    and cancelled tasks are counted; they raise nothing here.
    """
    if more or others or isinstance(timeout, (Future, ItemFuture, Mapped)):
        refuse_waiting("progress", others, ("timeout",))
    waiting: FutureList[Any] = FutureList(each_once(futures))
    watch(waiting, timeout)
    return waiting


def watch(futures: Sequence[Any], timeout: float | None, to_the_first_error: bool = False) -> None:
    """Wait for futures of tasks or of items, with a bar that moves with each that ends."""
    noun = "items" if any(isinstance(one, ItemFuture) for one in futures) else "tasks"
    failed = 0
    with Progress(len(futures), counted=noun) as bar:
        for done, future in enumerate(as_completed(futures, timeout), 1):
            failed += future._has_failed()
            bar(done, failed)
            if failed and to_the_first_error:
                return
