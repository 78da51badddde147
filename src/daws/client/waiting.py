"""Waiting for many futures at once."""

import time
from _thread import allocate_lock
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeVar

from daws.client.future import FAILED, INLINE, NOTHING, PENDING, STORED, Future, acquire
from daws.client.mapping import Mapped, error_of
from daws.client.progress import Progress
from daws.model.errors import DawsError, UsageError

T = TypeVar("T")
Errors = Literal["raise", "return", "skip"]
TOGETHER = 1024
"""So many results are waited for at once: a thread that is woken by each end takes the interpreter, and where all
processors are busy one of those too, from the one that brings the ends."""
TOGETHER_MIN = 8
"""Of fewer each is waited for by itself."""
WORDS = {"ALL_COMPLETED": "all", "FIRST_COMPLETED": "first", "FIRST_EXCEPTION": "error"}


def distinct(futures: Iterable[Future[T]]) -> dict[Future[T], None]:
    """Each of them once; UsageError for what is no future."""
    if isinstance(futures, Future):
        raise UsageError(f"{futures!r} is one future; give a list of them, or ask it for its result()")
    if isinstance(futures, Mapped):  # to go through it would be to wait for it
        raise UsageError(f"{futures!r} has results, not futures; go through it, or give it to gather")
    found = dict.fromkeys(futures)
    one: Any
    for one in found:
        if not isinstance(one, Future):
            raise UsageError(f"{one!r:.100} is no future of daws; give what submit, call or run returned")
    return found


class _Gate:
    """Futures arrive here when they end."""

    def __init__(self) -> None:
        self.arrived: deque[Future[Any]] = deque()
        self.inner: deque[Future[Any]] = deque()
        self.lock = allocate_lock()
        self.lock.acquire()

    def expect(self, future: Future[Any]) -> None:
        if future.is_inner:
            self.inner.append(future)
        future.tell(_Arrival(self, future))

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


class _Bell:
    """Somebody waits for the first of several things, and is woken once."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = allocate_lock()
        self.lock.acquire()

    def release(self) -> None:
        with suppress(RuntimeError):  # it has rung before
            self.lock.release()


def as_completed(futures: Iterable[Future[T]], timeout: float | None = None) -> Iterator[Future[T]]:
    """The futures in the order in which they end; TimeoutError if that takes longer than `timeout` seconds."""
    until = None if timeout is None else time.monotonic() + timeout
    gate = _Gate()
    waiting = list(distinct(futures))
    if any(not future.done() for future in waiting):
        waiting[0]._session.check_may_wait()
    for future in waiting:
        gate.expect(future)
    for count in range(len(waiting)):
        try:
            yield gate.next(until)
        except TimeoutError:
            left = len(waiting) - count
            raise TimeoutError(f"{left} of {len(waiting)} tasks have not ended within {timeout:g} s") from None


class Waited(NamedTuple):
    """Futures that have ended, and those that have not."""

    done: set[Future[Any]]
    not_done: set[Future[Any]]


def wait(
    futures: Iterable[Future[Any]],
    timeout: float | None = None,
    return_when: str = "all",
) -> Waited:
    """Wait for `"all"`, for the `"first"`, or for the first `"error"` (all, if there is none).

    The words of `concurrent.futures` (`FIRST_COMPLETED` …) are understood too.
    """
    return_when = WORDS.get(return_when, return_when)
    if return_when not in ("all", "first", "error"):
        raise UsageError(f"return_when={return_when!r}: give 'all', 'first' or 'error'")
    waiting = distinct(futures)
    done: set[Future[Any]] = set()
    if return_when == "all" and timeout is None:
        _wait_inside(waiting)
    try:
        for future in as_completed(waiting, timeout):
            done.add(future)
            if return_when == "first" or (return_when == "error" and future.exception() is not None):
                done.update([other for other in waiting if other.done()])
                break
    except TimeoutError:
        pass
    return Waited(done, {future for future in waiting if future not in done})


def gather(futures: Any, errors: Errors = "raise", timeout: float | None = None, progress: bool = False) -> Any:
    """The results of all futures, in the same shape: lists, tuples, sets, dicts and dataclasses of them, however deep.

    A generator becomes a list, and so do the results of a `map`.

    `errors="return"` puts exceptions where results would be, `"skip"` leaves failed ones out of lists and dicts.
    `progress=True` shows a bar on terminals and in notebooks.
    """
    if errors not in ("raise", "return", "skip"):
        raise UsageError(f"errors={errors!r}: give 'raise', 'return' or 'skip'")
    until = None if timeout is None else time.monotonic() + timeout
    if isinstance(futures, Iterator):
        futures = list(futures)
    if progress:
        _watch(list(dict.fromkeys(_leaves(futures))), errors == "raise", timeout)
    elif timeout is None:
        _wait_inside(_leaves(futures))
    try:
        return _gathered(futures, errors, until)
    except TimeoutError:
        leaves = set(_leaves(futures))
        left = sum(not future.done() for future in leaves)
        if timeout is None or not left:
            raise  # by a task
        raise TimeoutError(f"{left} of {len(leaves)} tasks have not ended within {timeout:g} s") from None


def _watch(futures: "list[Future[Any]]", to_the_first_error: bool, timeout: float | None) -> None:
    with Progress(len(futures)) as bar:
        for done, future in enumerate(as_completed(futures, timeout), 1):
            bar(done)
            if to_the_first_error and future.exception() is not None:
                return


def _wait_inside(futures: Iterable[Future[Any]]) -> None:
    """A task that waits for many of its own waits once for all of them."""
    first = next(iter(futures), None)
    if first is not None and first.is_inner:
        first.wait_with(futures)


def _leaves(what: Any) -> Iterator[Future[Any]]:
    if isinstance(what, Future):
        yield what
    elif isinstance(what, Mapped):
        yield from what.futures
    elif isinstance(what, dict):
        for value in what.values():
            yield from _leaves(value)
    elif isinstance(what, (list, tuple, set, frozenset)):
        for value in what:
            yield from _leaves(value)
    else:
        for name in _fields(what):
            yield from _leaves(getattr(what, name, None))


def _fields(what: Any) -> Iterable[str]:
    """The names of a dataclass's fields, which are none for all else. (`dataclasses` itself takes 20 ms to import.)"""
    return getattr(type(what), "__dataclass_fields__", ())


def _gathered(what: Any, errors: Errors, until: float | None) -> Any:
    if isinstance(what, Future):
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
    return _with_results(what, errors, until) if _fields(what) else what


def _items(mapped: Mapped[Any], errors: Errors, until: float | None) -> list[Any]:
    """The results of a map. Items of a chunk that failed as a whole have failed, each of them."""
    items: list[Any] = []
    for future, count in mapped.chunks():
        is_good = _kept(future, "skip", until)
        found = _gathered(future, errors, until)
        for one in found if is_good else [found] * count:
            error = error_of(one) if is_good else one
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
    for low in range(0, len(rest), TOGETHER):
        some = rest[low : low + TOGETHER]
        _wait_for_all(some)
        items += [
            (None if one._state == INLINE and one._what == NOTHING else one.result())  # most have no result
            if one.__class__ is Future
            else _gathered(one, "raise", None)
            for one in some
        ]
    return items


def _wait_for_all(some: list[Any]) -> None:
    """Until all of these have ended; what one raised that did not end well is raised at once. What is unusual (not all
    are futures, or not of one session) is not waited for here."""
    first = some[0]
    if first.__class__ is not Future:
        return
    session = first._session
    for one in some:
        if one.__class__ is not Future or one._session is not session:
            return
    awaited, bell = None, _Bell()
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
                awaited.tell(bell)
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
    if errors != "skip" or not isinstance(what, Future):
        return True
    if what.exception(None if until is None else max(0.0, until - time.monotonic())) is not None:
        return False
    try:
        what.result()
    except DawsError:  # it cannot be read
        return False
    return True
