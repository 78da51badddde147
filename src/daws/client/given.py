"""Numbers as users give them: Python's own, and those of numpy, which look the same when they are printed."""

from contextlib import suppress
from operator import index
from typing import Any

from daws.model.errors import UsageError


def whole(name: str, value: Any, low: int, high: int | None = None, unit: str = "") -> int:
    """A whole number within bounds; UsageError that says which are allowed."""
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None or number < low or (high is not None and number > high):
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise UsageError(f"{name}={value!r}: give a whole number {unit and f'of {unit} '}{bounds}")
    return number


def flag(name: str, value: Any) -> bool:
    """True or False; UsageError for all else."""
    if type(value) is not bool:
        raise UsageError(f"{name}={value!r}: give True or False")
    return value


def size(name: str, value: Any, low: int, high: int | None = None) -> int:
    """A number of bytes, or a text such as `4 GB`; UsageError that says what is allowed."""
    if isinstance(value, str):
        from daws.model.numbers import read_size

        read = read_size(value)
        if read is None:
            raise UsageError(f"{name}={value!r}: give a number of bytes, or a text such as '4 GB'")
        return whole(name, round(read), low, high, "bytes")
    return whole(name, value, low, high, "bytes")


def seconds(name: str, value: Any, high: int, can_be_zero: bool = False) -> float:
    """A time; UsageError that says what is allowed."""
    number = -1.0
    if hasattr(value, "__float__") and not isinstance(value, bool):
        with suppress(TypeError, ValueError, OverflowError):
            number = float(value)
    if not (0 < number <= high or (can_be_zero and number == 0)):
        bounds = f"from 0 to {high:,}" if can_be_zero else f"above 0, up to {high:,}"
        raise UsageError(f"{name}={value!r}: give a number of seconds {bounds}")
    return number
