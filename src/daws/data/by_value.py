"""The pickler for code that workers cannot import: functions and classes of `__main__`, of cells and of functions.

It is cloudpickle's, with some additions. Classes and enums are put together in `classes`. Functions with a cache, weak
dictionaries, context variables, thread locals, `NewType`, `ParamSpec`, `TypeVarTuple` and type aliases travel too. An
object with an identity (a context variable, a type parameter) is one object per process, however often it arrives, and
comes back as the object that it was made from.
"""

import dataclasses
import functools
import sys
import threading
import types
import typing
import uuid
import weakref
from collections.abc import Callable
from contextvars import Context, ContextVar
from enum import Enum
from pickle import PickleBuffer
from typing import Any

import cloudpickle

from daws.data.classes import is_by_reference, reduce_class, reduce_exception, reduce_member

Reduced = tuple[Any, ...]
_CACHED = type(functools.lru_cache(lambda: None))
_here: dict[str, Any] = {}  # by name: objects with an identity that were sent or received
_names: dict[int, str] = {}  # by identity of these: their names


def _reduce_memoryview(view: memoryview) -> Reduced:
    flat = view if view.c_contiguous else memoryview(view.tobytes())
    if len(view.format.lstrip("@")) > 1 or not view.nbytes:  # what memoryview.cast cannot make
        return make_memoryview, (PickleBuffer(flat), "B", (view.nbytes,))
    return make_memoryview, (PickleBuffer(flat), view.format, view.shape)


def make_memoryview(buffer: Any, format: Any, shape: tuple[int, ...]) -> Any:
    flat = memoryview(buffer).cast("B")
    return flat.cast(format, shape) if flat.nbytes else flat


def _reduce_cached(function: Any) -> Reduced | str:
    """A function with `lru_cache` or `cache`. The cache itself stays where it is."""
    if is_by_reference(function, function.__qualname__):
        return str(function.__qualname__)
    state = {name: value for name, value in vars(function).items() if name != "__wrapped__"}
    return make_cached, (function.__wrapped__, function.cache_parameters()), state


def make_cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def _reduce_cached_property(one: Any) -> Reduced:
    state = {name: value for name, value in vars(one).items() if name != "lock"}  # the lock is made anew
    return functools.cached_property, (one.func,), state


def _reduce_weak(one: Any) -> Reduced:
    return make_weak, (type(one), dict(one.items()))


def make_weak(kind: type, items: dict[Any, Any]) -> Any:
    return kind(items)


def _reduce_context_variable(variable: ContextVar[Any]) -> Reduced:
    """A context variable without its value: a task begins with the default."""
    if home := _home_of(variable):
        return getattr, home
    return make_context_variable, (_name_of(variable), variable.name, *_default_of(variable))


def _home_of(variable: ContextVar[Any]) -> tuple[Any, str] | None:
    """The module that has it, and its name there. (A context variable does not know that.)"""
    for module in [*sys.modules.values()]:
        if type(module) is types.ModuleType and module.__name__ != "__main__":
            for name, value in [*vars(module).items()]:
                if value is variable and is_by_reference(module, name):
                    return module, name
    return None


def _default_of(variable: ContextVar[Any]) -> tuple[Any, ...]:
    try:
        return (Context().run(variable.get),)
    except LookupError:
        return ()


def make_context_variable(identity: str, name: str, *default: Any) -> Any:
    def make() -> ContextVar[Any]:
        return ContextVar(name, default=default[0]) if default else ContextVar(name)

    return _only(identity, make)


def _reduce_thread_local(local: Any) -> Reduced:
    return make_thread_local, (_name_of(local),)


def make_thread_local(identity: str) -> Any:
    return _only(identity, threading.local)


def _reduce_new_type(one: Any) -> Reduced | str:
    if is_by_reference(one, one.__qualname__):
        return str(one.__qualname__)
    return make_new_type, (_name_of(one), one.__name__, one.__supertype__, one.__module__, one.__qualname__)


def make_new_type(identity: str, name: str, base: Any, module: str, qualified: str) -> Any:
    kind: Any = typing.NewType

    def make() -> Any:
        made: Any = kind(name, base)
        made.__module__, made.__qualname__ = module, qualified
        return made

    return _only(identity, make)


def _reduce_parameter(one: Any) -> Reduced | str:
    if is_by_reference(one, one.__name__):
        return str(one.__name__)
    return make_parameter, (_name_of(one), type(one), one.__name__)


def make_parameter(identity: str, kind: Any, name: str) -> Any:
    return _only(identity, lambda: kind(name))


def _reduce_alias(one: Any) -> Reduced | str:
    if is_by_reference(one, one.__name__):
        return str(one.__name__)
    return make_alias, (_name_of(one), type(one), one.__name__, one.__value__, one.__type_params__)


def make_alias(identity: str, kind: Any, name: str, value: Any, parameters: tuple[Any, ...]) -> Any:
    return _only(identity, lambda: kind(name, value, type_params=parameters))


def _name_of(one: Any) -> str:
    name = _names.get(id(one))
    if name is None:
        name = _names[id(one)] = uuid.uuid4().hex
        _here[name] = one
    return name


def _only(identity: str, make: Callable[[], Any]) -> Any:
    found = _here.get(identity)
    if found is None:
        found = _here.setdefault(identity, make())
        _names[id(found)] = identity
    return found


_MORE: dict[Any, Callable[[Any], Any]] = {
    memoryview: _reduce_memoryview,
    _CACHED: _reduce_cached,
    functools.cached_property: _reduce_cached_property,
    weakref.WeakKeyDictionary: _reduce_weak,
    weakref.WeakValueDictionary: _reduce_weak,
    ContextVar: _reduce_context_variable,
    threading.local: _reduce_thread_local,
    typing.NewType: _reduce_new_type,
    typing.ParamSpec: _reduce_parameter,
    typing.TypeVarTuple: _reduce_parameter,
    type(dataclasses.MISSING): lambda _: "MISSING",
    type(dataclasses.KW_ONLY): lambda _: "KW_ONLY",
    type(dataclasses._HAS_DEFAULT_FACTORY): lambda _: "_HAS_DEFAULT_FACTORY",  # type: ignore[attr-defined]
}
if sys.version_info >= (3, 12):
    _MORE[typing.TypeAliasType] = _reduce_alias


class ByValue(cloudpickle.Pickler):  # type: ignore[misc, unused-ignore]
    """A pickler that includes the code of everything that workers cannot import."""

    dispatch_table = cloudpickle.Pickler.dispatch_table.new_child(_MORE)

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)  # not `isinstance`, which proxies answer for what they stand for
        if issubclass(kind, type):
            return reduce_class(value, super().reducer_override(value))
        if issubclass(kind, Enum):
            return reduce_member(value)
        if issubclass(kind, BaseException):
            return reduce_exception(value)
        return super().reducer_override(value)
