"""The parameters of workloads: named, typed, bounded values, and how they are read from text.

This module knows nothing of graphs. Every refusal is a WorkloadError of one line that says what would have been right.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from daws.model.errors import WorkloadError
from daws.model.numbers import read_number

Value = int | float | str
TASK_COUNT_MAX = 200_000_000


@dataclass(frozen=True)
class Whole:
    """A whole number; `default` None means that another key decides."""

    key: str
    default: int | None
    help: str
    unit: str = ""
    low: int = 1
    high: int = TASK_COUNT_MAX

    @property
    def type_name(self) -> str:
        return "whole number"

    def read(self, text: str) -> int:
        number = _read_number(self.key, text, "a whole number")
        if number != int(number):
            raise WorkloadError(f"{self.key}={shown(text)} is not a whole number")
        _check_bounds(self.key, text, number, self.low, self.high, self.unit)
        return int(number)


@dataclass(frozen=True)
class Real:
    """A number that need not be whole."""

    key: str
    default: float | None
    help: str
    unit: str = ""
    low: float = 0.0
    high: float = 1e9

    @property
    def type_name(self) -> str:
        return "number"

    def read(self, text: str) -> float:
        number = float(_read_number(self.key, text, "a number"))
        _check_bounds(self.key, text, number, self.low, self.high, self.unit)
        return number


@dataclass(frozen=True)
class Choice:
    """One word out of a few."""

    key: str
    default: str
    help: str
    choices: tuple[str, ...]
    unit: str = ""

    @property
    def type_name(self) -> str:
        return "|".join(self.choices)

    def read(self, text: str) -> str:
        if text not in self.choices:
            raise WorkloadError(f"{self.key}={shown(text)} is not one of {', '.join(self.choices)}")
        return text


Parameter = Whole | Real | Choice


class Values:
    """The values of one workload by key: the given value, else the default."""

    def __init__(self, parameters: tuple[Parameter, ...], given: Mapping[str, Value]) -> None:
        self._values: dict[str, Value | None] = {one.key: given.get(one.key, one.default) for one in parameters}

    def whole(self, key: str) -> int:
        value = self._values[key]
        assert isinstance(value, int)
        return value

    def whole_or_none(self, key: str) -> int | None:
        return None if self._values[key] is None else self.whole(key)

    def real(self, key: str) -> float:
        value = self._values[key]
        assert isinstance(value, int | float)
        return float(value)

    def word(self, key: str) -> str:
        value = self._values[key]
        assert isinstance(value, str)
        return value

    def __str__(self) -> str:
        shown = {key: value for key, value in self._values.items() if value is not None}
        if "tasks" in shown or "width" in shown:
            shown.pop("per-core", None)  # overridden, so it would only mislead
        return " ".join(f"{key}={written(value)}" for key, value in shown.items())


def read_values(kind: str, parameters: tuple[Parameter, ...], text: str) -> dict[str, Value]:
    """Read `key=value,key=value`; refuses unknown and repeated keys."""
    by_key = {one.key: one for one in parameters}
    given: dict[str, Value] = {}
    for item in text.split(","):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not value:
            raise WorkloadError(f"workload {kind}: expected key=value, not {shown(item)}; keys: {', '.join(by_key)}")
        if key not in by_key:
            raise WorkloadError(f"workload {kind} has no key {shown(key)}; keys: {', '.join(by_key)}")
        if key in given:
            raise WorkloadError(f"workload {kind}: {key} is given twice")
        try:
            given[key] = by_key[key].read(value)
        except WorkloadError as error:
            raise WorkloadError(f"workload {kind}: {error}") from None
    return given


def written(value: Value | None) -> str:
    """A value as a user would write it; it reads back as the same value."""
    if value is None:
        return "-"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def shown(text: str) -> str:
    """Text from outside, fit for a one-line message."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _read_number(key: str, text: str, what: str) -> int | float:
    number = read_number(text)
    if number is None:
        raise WorkloadError(f"{key}={shown(text)} is not {what}")
    if math.isinf(number):
        raise WorkloadError(f"{key}={shown(text)} is too large")
    return number


def _check_bounds(key: str, text: str, number: float, low: float, high: float, unit: str) -> None:
    if not low <= number <= high:
        limits = f"{written(low)} and {written(high)}{' ' if unit else ''}{unit}"
        raise WorkloadError(f"{key}={shown(text)} is out of bounds; it must lie between {limits}")
