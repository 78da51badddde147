"""The exact part of a value that could not be pickled, and what to do instead."""

import dataclasses
from collections.abc import Callable, Iterator
from itertools import islice
from types import FunctionType, MethodType, ModuleType

from daws.model.errors import UnpicklableError, UsageError

DEPTH_MAX = 20
PARTS_MAX = 1000
"""The depth of the search, and the number of parts of one value, at which it stops with the result so far."""

_HINTS = {
    "_io.": "pass the file's name and open it inside the task",
    "socket.": "pass the address and connect inside the task",
    "_thread.": "tasks work on copies, and a lock has none; leave it out or make it inside the task",
    "builtins.generator": "pass list(...) of it",
    "builtins.coroutine": "pass its result",
    "builtins.frame": "pass what you need from it",
    "_asyncio.": "pass its result",
    "sqlite3.": "pass the file's name and connect inside the task",
    "daws.client.future.": "pass the future itself, or in lists, dicts and such, as an argument of submit",
}
_SHARED = "multiprocessing.Manager() has locks, queues and values that can be sent to tasks on one machine"
_HINT = "pass what it is made from and make it inside the task, or give its class a __reduce__"


def complain(
    value: object, what: str, error: BaseException, is_picklable: Callable[[object], bool]
) -> UnpicklableError:
    """The error for a value that could not be pickled because of `error`."""
    path, part = find_culprit(value, is_picklable)
    name = type_name(part)
    usual = "" if isinstance(error, UsageError) else _HINT  # ours say themselves what to do
    if "through inheritance" in str(error):  # as multiprocessing says
        usual = _SHARED
    hint = next((hint for start, hint in _HINTS.items() if name.startswith(start)), usual)
    if "result" in what:
        hint = hint.replace("pass ", "return ", 1).replace(" inside the task", " where it is needed")
    within = f" (in {path})" if path else ""
    reason = " ".join(str(error).split()) or type(error).__name__
    return UnpicklableError(f"{what} cannot be pickled: {name}{within}: {reason}{hint and f'; {hint}'}", what)


def type_name(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def find_culprit(value: object, is_picklable: Callable[[object], bool]) -> tuple[str, object]:
    """The way to the innermost part that cannot be pickled by itself, written as Python, and that part."""
    path = ""
    seen = {id(value)}
    for _ in range(DEPTH_MAX):
        for step, part in islice(_parts(value), PARTS_MAX):
            if id(part) not in seen and not is_picklable(part):
                seen.add(id(part))
                path, value = path + step, part
                break
        else:
            break
    return path, value


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"[{key!r:.50}]", part
            yield f".key({key!r:.50})", key
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield f"[{index}]", part
    elif isinstance(value, set | frozenset):
        for part in value:
            yield f".item({part!r:.50})", part
    elif isinstance(value, FunctionType):
        yield from _used_by(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield f".{field.name}", getattr(value, field.name, None)
    elif isinstance(value, MethodType):
        yield ".__self__", value.__self__
    elif not isinstance(value, ModuleType | type) and not type(value).__module__.startswith("daws."):  # none of ours
        for name, part in getattr(value, "__dict__", {}).items():
            yield f".{name}", part


def _used_by(function: FunctionType) -> Iterator[tuple[str, object]]:
    name = function.__name__
    for free, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield f"{name}: {free}", getattr(cell, "cell_contents", None)
    for used in function.__code__.co_names:
        if used in function.__globals__:
            yield f"{name}: {used}", function.__globals__[used]
