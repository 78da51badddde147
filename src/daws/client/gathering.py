"""`gather`: the results of many futures, in the shape in which the futures are given."""

import time
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, Literal

from daws.client.future import FAILED, INLINE, NOTHING, PENDING, STORED, VALUE, Future, Ring, acquire
from daws.client.hints import check_value, refuse_waiting
from daws.client.mapping import ItemFuture, Mapped, error_of
from daws.client.waiting import each_once, wait_inside, watch
from daws.data.codec import loads_plain
from daws.model.errors import DawsError, UsageError

Errors = Literal["raise", "return", "skip"]
TOGETHER = 1024
"""The number of results that are waited for at once. A thread that is woken by each end takes the interpreter from the
thread that brings the ends, and a processor too where all are busy."""
TOGETHER_MIN = 8
"""The least number of results that are waited for at once. Of fewer each is waited for by itself."""
SESSION = attrgetter("_session")
SKIPPED = object()
"""The value that stands for a future that failed and is left out."""


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
        refuse_waiting("gather", others, ("errors", "timeout", "progress"))
    if errors not in ("raise", "return", "skip"):
        raise UsageError(f"errors={errors!r}: give 'raise', 'return' or 'skip'")
    until = None if timeout is None else time.monotonic() + timeout
    if isinstance(futures, Iterator) and not isinstance(futures, Mapped):
        futures = list(futures)
    if progress:
        watch(each_once(_given(futures)), timeout, to_the_first_error=errors == "raise")
    elif timeout is None:
        wait_inside(_leaves(futures))
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
    """The results of all futures in here, in its shape; SKIPPED for one that is left out."""
    if isinstance(what, (Future, ItemFuture)):
        left = None if until is None else max(0.0, until - time.monotonic())
        if errors == "raise":
            return what.result(left)
        error = what.exception(left)
        try:
            if error is None:
                return what.result()
        except DawsError as unreadable:  # the task is not to blame
            error = unreadable
        return error if errors == "return" else SKIPPED
    if isinstance(what, Mapped):
        return list(what) if errors == "raise" and until is None else _items(what, errors, until)
    if isinstance(what, dict):
        pairs = [(key, _gathered(value, errors, until)) for key, value in what.items()]
        return {key: value for key, value in pairs if value is not SKIPPED}
    if isinstance(what, (list, tuple, set, frozenset)):
        if errors == "raise" and until is None and len(what) >= TOGETHER_MIN:
            items = _results(what)
        elif errors == "raise" and until is None:
            items = [one.result() if one.__class__ is Future else _gathered(one, errors, until) for one in what]
        else:
            items = [one for value in what if (one := _gathered(value, errors, until)) is not SKIPPED]
        return _in_the_shape_of(what, items)
    if _fields(what):
        return _with_results(what, errors, until)
    check_value(what, "gather")
    return what


def _items(mapped: Mapped[Any], errors: Errors, until: float | None) -> list[Any]:
    """The results of a map. Items of a chunk that failed as a whole have failed, each of them."""
    items: list[Any] = []
    first = 0
    for future, count in mapped._chunks():
        found = _gathered(future, errors, until)
        for item, one in enumerate(found if type(found) is list else [found] * count, first):
            error = error_of(future, one, item)
            if error is not None and errors == "raise":
                raise error
            one = one if error is None else error if errors == "return" else SKIPPED
            if one is not SKIPPED:
                items.append(one)
        first += count
    return items


def _results(what: Iterable[Any]) -> list[Any]:
    """The results of a list of futures that are all to end well, however long that takes."""
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
    """Wait until all of these have ended, or raise the error of the first that fails. A list with other things than
    futures of one session is not waited for here."""
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
                awaited._tell(bell.release)
            acquire(bell.lock, None)
    finally:
        session.alarms.remove(bell)


def _with_results(what: Any, errors: Errors, until: float | None) -> Any:
    """A copy of a dataclass, made without its constructor, which has seen the futures. A field whose future is skipped
    is None."""
    from copy import copy

    found = copy(what)
    for name in _fields(what):
        value = getattr(what, name, None)
        result = _gathered(value, errors, until)
        if result is not value:
            object.__setattr__(found, name, None if result is SKIPPED else result)
    return found


def _in_the_shape_of(what: Any, items: list[Any]) -> Any:
    if isinstance(what, list):
        return items
    if hasattr(what, "_make"):  # a named tuple, unless some were skipped
        return what._make(items) if len(items) == len(what) else tuple(items)
    return type(what)(items)
