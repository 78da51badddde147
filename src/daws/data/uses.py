"""The values that functions and classes by value use: globals, cells, and attributes of classes of the same kind.

As long as each of these is bound to the same object, and nothing was changed in place in those that can be (see
`states`), the earlier pickle is still valid.
"""

import sys
from dis import get_instructions
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any

from daws.data.local import is_local
from daws.data.states import Looked, State, is_changeable

Used = tuple[dict[str, Any] | CellType | type, str, object]
"""The place of a used value, its name there, and the value."""
_NOTHING = object()
_INSIDE = ("__func__", "__wrapped__", "func", "fget", "fset", "fdel")
"""Where methods, decorated functions, partials and properties have their functions."""


def is_by_value(function: Any) -> bool:
    """True if another process could not import it by its name and find the same function."""
    name: str | None = getattr(function, "__module__", None)
    return name is None or name == "__main__" or name in _modules_by_value() or not is_at_home(function)


def is_at_home(function: Any) -> bool:
    """Is it in its module under its name?"""
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is function


def uses_of(what: Any) -> list[Used]:
    """All values that a function or a class by value uses, directly or through others that it uses."""
    return Uses(what).used


def uses_and_state(what: Any) -> tuple[list[Used], State | None]:
    """The same, with the state of what can be changed in place; None if nothing can."""
    uses = Uses(what)
    values = [one for one in uses.looked.values() if one.has_state]
    return uses.used, State(values, uses.classes) if values or uses.classes else None


def have_changed(used: list[Used]) -> bool:
    """Is any of these bound to something else by now?"""
    for where, name, value in used:
        if isinstance(where, dict):
            now = where.get(name, _NOTHING)
        elif isinstance(where, CellType):
            now = _content(where)
        else:
            now = where.__dict__.get(name, _NOTHING)
        if now is not value:
            return True
    return False


def names_in(function: Any) -> set[str]:
    """All names in the code of a function by value, and of those of the same kind that it calls."""
    if not isinstance(function, FunctionType):
        return set()
    called = [entry[2] for entry in uses_of(function) if isinstance(entry[2], FunctionType) and is_by_value(entry[2])]
    return {name for one in (function, *called) for name in names_of(one.__code__)}


def names_of(code: CodeType) -> list[str]:
    """The names in a piece of code, with those of the functions inside."""
    names = list(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names += names_of(inner)
    return names


class Uses:
    """`used` are all bindings; `looked`, by identity, the values that may be changed in place; `classes` those that
    travel by value."""

    def __init__(self, what: Any) -> None:
        self.used: list[Used] = []
        self.looked: dict[int, Looked] = {}
        self.classes: list[type] = []
        self._seen: set[int] = set()
        self._collect(what)

    def _collect(self, what: Any) -> None:
        self._seen.add(id(what))
        found = self._of_function(what) if isinstance(what, FunctionType) else self._of_class(what)
        for inner in found:
            if id(inner) in self._seen:
                continue
            if is_by_value(inner):
                self._collect(inner)
            elif is_local(module := sys.modules[inner.__module__]):  # it may be loaded anew
                self._seen.add(id(inner))
                name = inner.__qualname__.partition(".")[0]
                self.used.append((vars(module), name, vars(module).get(name, _NOTHING)))

    def _of_function(self, what: FunctionType) -> list[Any]:
        space = what.__globals__
        found: list[Used] = [(space, name, space.get(name, _NOTHING)) for name in names_of(what.__code__)]
        cells: list[Used] = [(cell, "", _content(cell)) for cell in what.__closure__ or ()]
        self.used += found + cells
        parts = [inner for entry in found + cells for inner in _parts(entry[2])]
        read = _globals_of(what.__code__)  # other names are those of attributes
        parts += self._inside([value for _, name, value in found if name in read])
        parts += self._inside([value for _, _, value in cells])
        return parts + self._inside([what.__defaults__, what.__kwdefaults__, what.__dict__ or None])

    def _of_class(self, what: type) -> list[Any]:
        self.classes.append(what)
        items = [*what.__dict__.items()]
        found: list[Used] = [
            (what, name, value) for name, value in items if not name.startswith("__") or _functions_in(value)
        ]
        self.used += found
        parts = [inner for entry in found for inner in _functions_in(entry[2])]
        return parts + self._inside([value for _, _, value in found]) + [*what.__bases__]

    def _inside(self, values: list[Any]) -> list[Any]:
        """The functions and classes by value in what can be changed."""
        inside: list[Any] = []
        for value in values:
            if id(value) not in self.looked and is_changeable(value):
                looked = self.looked[id(value)] = Looked(value)
                inside += [one for one in looked.code() if is_by_value(one)]
        return inside


@lru_cache(1024)
def _globals_of(code: CodeType) -> frozenset[str]:
    """The names of the globals in a piece of code, with those of the functions inside."""
    names = {one.argval for one in get_instructions(code) if one.opname.endswith("_GLOBAL")}
    inner = [_globals_of(one) for one in code.co_consts if isinstance(one, CodeType)]
    return frozenset(names).union(*inner)


def _parts(value: Any) -> list[Any]:
    """The functions and classes in a value."""
    return [value] if isinstance(value, type) else _functions_in(value)


def _functions_in(value: Any) -> list[FunctionType]:
    if isinstance(value, FunctionType):
        return [value]
    if type(value).__module__ not in ("builtins", "functools"):
        return []
    found = [getattr(value, name, None) for name in _INSIDE]
    return [one for one in found if isinstance(one, FunctionType)]


def _modules_by_value() -> set[str]:
    cloudpickle = sys.modules.get("cloudpickle")
    return cloudpickle.list_registry_pickle_by_value() if cloudpickle else set()


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return _NOTHING
