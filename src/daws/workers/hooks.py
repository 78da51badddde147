"""Set-up and tear-down of a worker: values that they set in their module are there for the tasks of that module.

    def set_up():
        global model
        model = load()

Functions of scripts and notebooks travel by value, each with globals of its own. Without this, a task would not see the
values that the set-up of its worker has set.
"""

import functools
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

from daws.data.codec import loads

DEPTH_MAX = 4


class Hooks:
    """The values that the set-up of a worker has set, by name, for each module whose functions travel by value."""

    def __init__(self) -> None:
        self._left: dict[str, dict[str, Any]] = {}

    def set_up(self, pickled: bytes) -> None:
        """Run the hook, and keep the values that it has set."""
        hook = loads(pickled)
        before = [(module, space, dict(space)) for module, space in spaces_of(hook)]
        hook()
        for module, space, was in before:
            changed = {name: value for name, value in space.items() if name not in was or was[name] is not value}
            changed.pop("__builtins__", None)
            if changed:
                self._left.setdefault(module, {}).update(changed)

    def tear_down(self, pickled: bytes) -> None:
        self.applied(loads(pickled))()

    def applied(self, function: Any) -> Any:
        """The function, with the values of the set-up among its globals."""
        if self._left:
            for module, space in spaces_of(function):
                space.update(self._left.get(module, ()))
        return function


def spaces_of(value: Any, depth: int = DEPTH_MAX) -> Iterator[tuple[str, dict[str, Any]]]:
    """The globals of functions that travelled by value, with the name of their module."""
    if isinstance(value, FunctionType):
        module = value.__module__ or ""
        space = value.__globals__
        if space is not getattr(sys.modules.get(module), "__dict__", None):
            yield module, space
        value = getattr(value, "__wrapped__", None)
        inside: tuple[Any, ...] = (value,) if value is not None else ()
    elif isinstance(value, functools.partial):
        inside = (value.func, *value.args)
    elif isinstance(value, MethodType):
        inside = (value.__func__,)
    else:
        called = vars(type(value)).get("__call__")
        inside = tuple([one for one in (called, getattr(value, "function", None)) if callable(one)])
    if depth:
        for one in inside:
            yield from spaces_of(one, depth - 1)
