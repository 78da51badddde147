"""Functions as bytes: pickled once, because one function is submitted many times.

Functions that can be imported travel by reference, the others (of `__main__`, local, lambdas) by value. A function by
value is pickled again when a global or a cell that it uses, or that a function of the same kind it calls uses, was
bound to something else in the meantime, as happens in notebooks. What was changed in place is not noticed.
"""

import sys
import weakref
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from daws.data.codec import dumps, pack_by_value
from daws.model.errors import UsageError

_Used = tuple[dict[str, Any] | CellType, str, object]
_kept: dict[int, tuple["weakref.ref[FunctionType]", bytes, list[_Used]]] = {}
_NOTHING = object()
SHOWN_MAX = 100


def dumps_function(function: Callable[..., object], what: str = "the function") -> bytes:
    """A callable as bytes; quick when it was asked for before."""
    kept = _kept.get(id(function))
    if kept is not None and kept[0]() is function and not (kept[2] and _is_stale(kept[2])):
        return kept[1]
    used: list[_Used] = []
    if not isinstance(function, FunctionType):
        if not callable(function):
            raise UsageError(f"{what}: {_shown(function)} cannot be called")
        _check_no_task(function)
        return dumps(function, what)
    if is_by_value(function):
        data = pack_by_value(function, what).to_bytes()
        _collect(function, used, set())
    else:
        data = dumps(function, what)
    key = id(function)
    _kept[key] = (weakref.ref(function, lambda _: _kept.pop(key, None)), data, used)
    return data


def _check_no_task(function: Any) -> None:
    """A worker that calls a task submits it, and what comes of it is a future that cannot leave the worker."""
    for inside in ("function", "func", "__func__"):  # of a map, a partial or a method
        function = getattr(function, inside, function)
    if getattr(type(function), "is_task", False):
        name = function.__qualname__
        raise UsageError(f"{name} is a task already: call it, {name}(…), or give the function itself, {name}.plain")


def inside_of(function: Any) -> Any:
    """What is inside a `partial`, or inside one of ours that calls it for many items or as a task."""
    while type(function).__module__ == "functools" or type(function).__module__.startswith("daws."):
        around = function
        for inside in ("func", "function", "task"):
            function = getattr(around, inside, function)
        if function is around:
            break
    return function


def name_of(function: Any) -> str:
    """As people know it."""
    function = inside_of(function)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__qualname__


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def is_by_value(function: Any) -> bool:
    """True if another process could not import it by its name and find the same function."""
    name: str | None = function.__module__
    return name is None or name == "__main__" or name in _modules_by_value() or not _is_at_home(function)


def is_settled(function: Callable[..., object]) -> bool:
    """True of a function that was pickled before, lives in a module and will be pickled to the same bytes for ever."""
    kept = _kept.get(id(function))
    return kept is not None and kept[0]() is function and not kept[2] and _is_at_home(function)


def names_in(function: Callable[..., object]) -> set[str]:
    """All names in the code of a function by value, and of those of the same kind that it calls."""
    if not isinstance(function, FunctionType):
        return set()
    used: list[_Used] = []
    _collect(function, used, set())
    called = [entry[2] for entry in used if isinstance(entry[2], FunctionType) and is_by_value(entry[2])]
    return {name for one in (function, *called) for name in _names(one.__code__)}


def _is_at_home(function: Any) -> bool:
    """Is it in its module under its name?"""
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is function


def _modules_by_value() -> set[str]:
    cloudpickle = sys.modules.get("cloudpickle")
    return cloudpickle.list_registry_pickle_by_value() if cloudpickle else set()


def _collect(function: FunctionType, used: list[_Used], seen: set[int]) -> None:
    seen.add(id(function))
    names = function.__globals__
    found: list[_Used] = [(names, name, names.get(name, _NOTHING)) for name in _names(function.__code__)]
    found += [(cell, "", _content(cell)) for cell in function.__closure__ or ()]
    for entry in found:
        used.append(entry)
        inner = entry[2]
        if isinstance(inner, FunctionType) and id(inner) not in seen and is_by_value(inner):
            _collect(inner, used, seen)


def _names(code: CodeType) -> list[str]:
    names = list(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names += _names(inner)
    return names


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return _NOTHING


def _is_stale(used: list[_Used]) -> bool:
    for where, name, value in used:
        now = where.get(name, _NOTHING) if isinstance(where, dict) else _content(where)
        if now is not value:
            return True
    return False
