"""The parameters of answers: fields of a frozen struct with bounds and a line of help.

A field `poll_max_ms: Annotated[float, Meta(gt=0, description="…")] = 100.0` is the parameter `poll-max-ms` in the text
that users type; `= field(default=…, name="copies")` gives it another name there. Types are int, float, and Literal for
words; `int | Literal["sqrt"]` takes both. Answers without parameters need not derive from anything here.
"""

from functools import cache
from math import inf, isnan
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

from daws.model.errors import StrategyError
from daws.model.numbers import read_number, read_whole

Value = int | float | str
INFINITE = {"inf": inf, "-inf": -inf}


class Parameter(Struct, frozen=True):
    """One setting of an answer. `field` is its name in Python, `key` its name where users type it."""

    key: str
    field: str
    kind: type[int] | type[float] | None
    words: tuple[str, ...]
    default: Value | None
    low: float | None
    high: float | None
    above_low: bool
    help: str

    @property
    def expects(self) -> str:
        """A description of the values that may be typed."""
        options = [repr(word) for word in self.words]
        if self.kind is not None:
            number = "a whole number" if self.kind is int else "a number"
            if self.low is not None:
                number += f" {'above' if self.above_low else 'of at least'} {self.low:g}"
            if self.high is not None:
                number += f"{' and' if self.low is not None else ' of'} at most {self.high:g}"
            options.append(number)
        return " or ".join(options)

    def parse(self, text: str) -> Value:
        """The value of a typed text; StrategyError if it makes no sense."""
        if text in self.words:
            return text
        if self.kind is not None:
            value = read_whole(text) if self.kind is int else INFINITE.get(text, read_number(text))
            if value is not None:
                return self.check(self.kind(value))
        raise StrategyError(f"{self.key}={_shown(text)}: expected {self.expects}")

    def check(self, value: Value) -> Value:
        """The value itself if it is within bounds; else StrategyError."""
        if not self.fits(value):
            raise StrategyError(f"{self.key}={_shown(str(value))}: expected {self.expects}")
        return value

    def fits(self, value: Value) -> bool:
        if isinstance(value, str):
            return value in self.words
        if self.kind is None or isinstance(value, bool) or isnan(value):
            return False
        if self.kind is int and isinstance(value, float):
            return False
        if self.low is not None and (value < self.low or (self.above_low and value == self.low)):
            return False
        return self.high is None or value <= self.high


class ParameterizedAnswer(Struct, frozen=True):
    """A base for answers that have parameters: it refuses values out of bounds, however the answer is made."""

    def __post_init__(self) -> None:
        for parameter in parameters_of(type(self)):
            parameter.check(getattr(self, parameter.field))


@cache
def parameters_of(cls: type) -> tuple[Parameter, ...]:
    """The settings of an answer's class, in the order of its fields."""
    if not issubclass(cls, Struct):
        return ()
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_parameter(field.name, field.encode_name, hints[field.name], field.default) for field in fields(cls))


def values_of(answer: object) -> dict[str, Value]:
    """The settings of an answer by their typed names."""
    cls: type = type(answer)
    return {parameter.key: getattr(answer, parameter.field) for parameter in parameters_of(cls)}


def format_value(value: Value) -> str:
    """The value as a user would type it."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _parameter(name: str, key: str, hint: Any, default: Any) -> Parameter:
    meta = Meta()
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        meta = next((extra for extra in extras if isinstance(extra, Meta)), meta)
    kind, words = _kind_and_words(hint)
    return Parameter(
        key=key.replace("_", "-"),
        field=name,
        kind=kind,
        words=words,
        default=None if default is NODEFAULT else default,
        low=meta.gt if meta.ge is None else meta.ge,
        high=meta.le,
        above_low=meta.gt is not None,
        help=meta.description or "",
    )


def _kind_and_words(hint: Any) -> tuple[type[int] | type[float] | None, tuple[str, ...]]:
    if hint is int or hint is float:
        return hint, ()
    if get_origin(hint) is Literal:
        return None, get_args(hint)
    parts = [_kind_and_words(part) for part in get_args(hint)]
    kinds = [kind for kind, _ in parts if kind is not None]
    words = tuple(word for _, some in parts for word in some)
    if not parts or len(kinds) > 1:
        raise TypeError(f"a parameter is an int, a float, a Literal, or one of them or a Literal, not {hint!r}")
    return (kinds[0] if kinds else None), words


def _shown(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
