"""Numbers as users give them: Python's own, and those of numpy, which look the same when they are printed."""

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


def seconds(name: str, value: Any, high: int, can_be_zero: bool = False) -> float:
    """A time; UsageError that says what is allowed."""
    number = -1.0
    if hasattr(value, "__float__") and not isinstance(value, bool):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = -1.0
    if not (0 < number <= high or (can_be_zero and number == 0)):
        bounds = f"from 0 to {high:,}" if can_be_zero else f"above 0, up to {high:,}"
        raise UsageError(f"{name}={value!r}: give a number of seconds {bounds}")
    return number


def arguments(args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Those of a call, as `Cluster.call` is given them. A text would be taken for its letters."""
    if isinstance(args, (str, bytes, dict)) or not hasattr(args, "__iter__"):
        raise UsageError(f"args={args!r:.100}: give a list of the arguments, also if there is one")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise UsageError(f"kwargs={kwargs!r:.100}: give a dict of the arguments that have names")
    return tuple(args), kwargs or {}
