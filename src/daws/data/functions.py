"""Functions as bytes: pickled once, because one function is submitted many times.

Functions that can be imported travel by reference, the others (of `__main__`, local, lambdas) by value. A function by
value is pickled again when something that it uses has changed. That is a global or a cell of the function, or of
functions and methods by value that it calls. It may be bound to another object, as happens in notebooks, or be changed
in place: a dict, a list, an array, an instance, an attribute of a class by value. Functions that use nothing of that
kind cost nothing more.

Each version is a function of its own for workers. One that has changed very often is not kept there any more: it goes
with the arguments of each call, like a large one.
"""

import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

from daws.data.calls import Share
from daws.data.codec import dumps, pack_by_value, shared_bytes
from daws.data.states import State
from daws.data.uses import Used, have_changed, is_at_home, is_by_value, uses_and_state
from daws.model.errors import UsageError

CHANGES_MAX = 256
"""A function that has changed more often goes with the arguments of each call."""


class _PickledFunction(NamedTuple):
    """The pickle of a function, and the values that it uses; `used` is None if it went by reference."""

    ref: "weakref.ref[FunctionType]"
    data: bytes
    used: list[Used] | None
    state: State | None
    changes: int


_kept: dict[int, _PickledFunction] = {}
"""Pickled functions, by identity."""
SHOWN_MAX = 100


class LargeFunction(Exception):
    """A function has something large in it: an array of its closure, or one that is bound to it."""


class Carried:
    """A function that calls its first argument. Functions with large parts go with the arguments of each call, where
    those parts are shared (see `calls`)."""

    def __init__(self, name: str, without_unpicklable: Any = None) -> None:
        self.__qualname__ = name
        self.without_unpicklable = without_unpicklable

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return Carried, (self.__qualname__, self.without_unpicklable)


def refuse_large(buffer: Any) -> NoReturn:
    """Raise LargeFunction. This is the `share` of `dumps_function` for callers that cannot share."""
    raise LargeFunction


def dumps_function(function: Callable[..., object], what: str = "the function", share: Share | None = None) -> bytes:
    """A callable as bytes; quick when it was asked for before. Its large parts go to `share`, if given."""
    kept = _kept.get(id(function))
    if kept is not None:
        if kept.ref() is not function:
            kept = None
        elif kept.changes > CHANGES_MAX and share is refuse_large:
            raise LargeFunction
        elif _is_fresh(function, kept):
            return kept.data
    if not isinstance(function, FunctionType):
        if not callable(function):
            raise UsageError(f"{what}: {_shown(function)} cannot be called")
        _check_no_task(function)
        return dumps(function, what, share)
    used: list[Used] | None = None
    state: State | None = None
    if is_by_value(function):
        used, state = uses_and_state(function)  # before it is pickled: other threads may change something meanwhile
        data = shared_bytes(pack_by_value(function, what), share)
    else:
        data = dumps(function, what)
    key = id(function)
    changes = 0 if kept is None else kept.changes + (data != kept.data)
    _kept[key] = _PickledFunction(weakref.ref(function, lambda _: _kept.pop(key, None)), data, used, state, changes)
    return data


def _is_fresh(function: FunctionType, kept: _PickledFunction) -> bool:
    if kept.used is None:
        return is_at_home(function)
    return not have_changed(kept.used) and (kept.state is None or kept.state.is_as_before())


def _check_no_task(function: Any) -> None:
    """A worker that calls a task submits it, and what comes of it is a future that cannot leave the worker."""
    for inside in ("function", "func", "__func__"):  # of a map, a partial or a method
        function = getattr(function, inside, function)
    if getattr(type(function), "_is_task", False):
        name = function.__qualname__
        raise UsageError(f"{name} is a task already: call it, {name}(…), or give the function itself, {name}.plain")


def inside_of(function: Any) -> Any:
    """The function inside a `partial`, or inside a wrapper of daws that calls it for many items or as a task."""
    while type(function).__module__ == "functools" or type(function).__module__.startswith("daws."):
        around = function
        for inside in ("func", "function", "task"):
            function = getattr(around, inside, function)
        if function is around:
            break
    return function


def name_of(function: Any) -> str:
    """The name of a function, as people know it."""
    function = inside_of(function)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__qualname__


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def is_settled(function: Callable[..., object]) -> bool:
    """True of a function that was pickled before, lives in a module and will be pickled to the same bytes for ever."""
    kept = _kept.get(id(function))
    if kept is None or kept.ref() is not function or kept.used or kept.state is not None:
        return False
    return is_at_home(function)
