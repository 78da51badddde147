"""Functions that are coroutines (`async def`): a worker carries each call out on an event loop of its own."""

from collections.abc import Callable
from functools import partial
from types import CoroutineType
from typing import Any

CO_COROUTINE = 0x80  # as `inspect` has it, which takes long to import


def run_coroutine(coroutine: Any) -> Any:
    """Run a coroutine, and return its result or raise its exception."""
    import asyncio  # dear, and most workers never need it

    return asyncio.run(coroutine)


def is_coroutine(value: Any) -> bool:
    """Is this the value that a coroutine function returns when it is called?"""
    return type(value) is CoroutineType


def is_coroutine_function(function: Any) -> bool:
    """Is it an `async def`, as a function, a method, inside a partial, or as what an object does when it is called?"""
    while isinstance(function, partial):
        function = function.func
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        code = getattr(type(function).__call__, "__code__", None)
    return code is not None and bool(getattr(code, "co_flags", 0) & CO_COROUTINE)


class Awaiting:
    """A coroutine function as a function that returns when its result is there."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return run_coroutine(self.function(*args, **kwargs))


def awaiting(function: Callable[..., Any]) -> Callable[..., Any]:
    """The callable that a worker uses for a function; computed once, when the worker learns the function."""
    return Awaiting(function) if is_coroutine_function(function) else function
