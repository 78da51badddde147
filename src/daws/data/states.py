"""Whether values that functions by value use were changed in place: dicts, lists, arrays, instances, classes.

The state of a value is a pickle, to be compared with a later one and never to be loaded. It is quick to make. Plain
data are pickled at the speed of C. Everything that has code (functions, classes, modules) or cannot be pickled (locks,
open files) is represented by its identity.
"""

import pickle
from functools import cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from daws.data.calls import LARGE_BYTES_MIN

_ATOMS = frozenset(
    [int, float, complex, bool, str, bytes, range, slice, object]
    + [type(one) for one in (None, Ellipsis, NotImplemented, object.__init__, str.join, dict.__dict__["fromkeys"])]
    + [FunctionType, ModuleType, CodeType, property, staticmethod, classmethod]
)
"""Types whose instances hold nothing that can be changed, or have code that is compared elsewhere."""
_FIXED = frozenset(
    [
        *("datetime", "zoneinfo", "decimal", "fractions", "uuid", "pathlib", "pathlib._local", "ipaddress"),
        *("re", "typing", "_contextvars", "_thread"),
    ]
)
"""Modules whose instances are not changed by their users, or never travel with their content."""
_CODE = (type, FunctionType, ModuleType, CodeType)
_HEAP_TYPE = 1 << 9


def is_changeable(value: object) -> bool:
    """Could there be something else in it tomorrow?"""
    kind = type(value)
    if kind in _ATOMS or issubclass(kind, type):
        return False
    if kind in (tuple, frozenset):
        return any(_is_code(one) or is_changeable(one) for one in value)  # type: ignore[attr-defined]
    if kind is BuiltinFunctionType:  # a method of an instance, or a function of a module
        return not isinstance(value.__self__, ModuleType | type | None)  # type: ignore[attr-defined]
    return kind.__module__ not in _FIXED and kind.__name__ != "_lru_cache_wrapper"


class State:
    """The state of some values, and of some classes. Attributes of the classes are compared elsewhere, except for new
    ones."""

    __slots__ = ("_classes", "_values")

    def __init__(self, values: list["Looked"], classes: list[type]) -> None:
        self._values = values
        self._classes = [(kind, len(kind.__dict__)) for kind in classes]

    def is_as_before(self) -> bool:
        """Whether nothing has changed; False if that cannot be told."""
        for kind, count in self._classes:
            if len(kind.__dict__) != count:
                return False
        return all(one.is_as_before() for one in self._values)


class Looked:
    """A value, its state, and what counts by its identity in it (and has to be alive as long as it does)."""

    __slots__ = ("pickled", "same", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.same: list[Any] = []
        self.pickled = pickled_state(value, self.same)

    def is_as_before(self) -> bool:
        return self.pickled is not None and pickled_state(self.value, []) == self.pickled

    @property
    def has_state(self) -> bool:
        """Is there more to it than its identity?"""
        return len(self.same) != 1 or self.same[0] is not self.value

    def code(self) -> list[Any]:
        """The functions and classes in it."""
        return [one for one in self.same if _is_code(one)]


def pickled_state(value: object, same: list[Any]) -> bytes | None:
    """A value as bytes that change when it changes; None if it is large, or impossible. Adds objects that count by
    their identity to `same`."""
    file = _Limited()
    try:
        _StatePickler(file, same).dump(value)
    except Exception:  # it is large, nested too deeply, or changed by another thread meanwhile
        return None
    return b"".join(file.parts)


class _TooLarge(Exception):
    pass


class _Limited:
    """A file that does not take more than a function may be large (see `functions`)."""

    __slots__ = ("parts", "size_bytes")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size_bytes = 0

    def write(self, data: Any) -> None:
        self.size_bytes += len(data)
        if self.size_bytes > LARGE_BYTES_MIN:
            raise _TooLarge
        self.parts.append(bytes(data))

    def write_buffer(self, buffer: pickle.PickleBuffer) -> None:
        self.write(buffer.raw())


class _StatePickler(pickle.Pickler):
    def __init__(self, file: _Limited, same: list[Any]) -> None:
        super().__init__(file, 5, buffer_callback=file.write_buffer)
        self._same = same

    def reducer_override(self, value: Any) -> Any:
        if value is _identity:
            return NotImplemented
        kind = type(value)
        if not issubclass(kind, _CODE):
            try:
                reduce = _dispatch_table().get(kind)
                reduced = value.__reduce_ex__(5) if reduce is None else reduce(value)
                if type(reduced) is tuple:
                    return reduced
            except Exception:  # it cannot be pickled, and travels in a way of its own, or not at all
                pass
        self._same.append(value)
        return _identity, (id(value),)


@cache
def _dispatch_table() -> Any:
    """The dispatch table for functions by value; cloudpickle is imported when it is first needed."""
    from daws.data.by_value import ByValue

    return ByValue.dispatch_table


def _identity(number: int) -> None:
    """Stands in a state for the object of this identity."""


def _is_code(value: object) -> bool:
    """Is it a function or a class in Python?"""
    kind = type(value)
    return kind is FunctionType or (issubclass(kind, type) and bool(value.__flags__ & _HEAP_TYPE))  # type: ignore[attr-defined]
