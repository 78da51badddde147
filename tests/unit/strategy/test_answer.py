from math import inf, nan
from typing import Annotated, Any, ClassVar, Literal

import pytest
from msgspec import Meta, Struct, field

from daws.model.errors import StrategyError
from daws.strategy.answer import ParameterizedAnswer, format_value, parameters_of, values_of


class Sample(ParameterizedAnswer, frozen=True):
    kind: ClassVar[str] = "not a parameter"

    count: Annotated[int, Meta(ge=1, le=9, description="how many")] = 4
    share_max: Annotated[float, Meta(gt=0)] = 0.5
    rule: Literal["a", "b"] = "a"
    reach: Annotated[int | Literal["all"], Meta(ge=0)] = 3
    inner: float = field(default=1.0, name="outer")


class Plain:
    pass


class Odd(Struct, frozen=True):
    names: list[str] = []


def parse(key: str, text: str) -> Any:
    return {parameter.key: parameter for parameter in parameters_of(Sample)}[key].parse(text)


def test_parameters_are_read_off_the_fields():
    assert [parameter.key for parameter in parameters_of(Sample)] == ["count", "share-max", "rule", "reach", "outer"]
    count = parameters_of(Sample)[0]
    assert (count.field, count.default, count.low, count.high, count.help) == ("count", 4, 1, 9, "how many")
    assert parameters_of(Plain) == ()
    with pytest.raises(TypeError):
        parameters_of(Odd)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("count", "7", 7),
        ("share-max", "2", 2.0),
        ("share-max", "1e-3", 0.001),
        ("share-max", "inf", inf),
        ("rule", "b", "b"),
        ("reach", "all", "all"),
        ("reach", "0", 0),
    ],
)
def test_parse(key: str, text: str, value: object):
    assert parse(key, text) == value
    assert type(parse(key, text)) is type(value)


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("count", "0", "count=0: expected a whole number of at least 1 and at most 9"),
        ("count", "10", "count=10: expected a whole number of at least 1 and at most 9"),
        ("count", "1.5", "count=1.5: expected a whole number of at least 1 and at most 9"),
        ("count", "inf", "count=inf: expected a whole number of at least 1 and at most 9"),
        ("share-max", "0", "share-max=0.0: expected a number above 0"),
        ("share-max", "nan", "share-max=nan: expected a number above 0"),
        ("share-max", "-inf", "share-max=-inf: expected a number above 0"),
        ("rule", "c", "rule=c: expected 'a' or 'b'"),
        ("reach", "some", "reach=some: expected 'all' or a whole number of at least 0"),
        ("rule", "x" * 200, f"rule={'x' * 37}...: expected 'a' or 'b'"),
        ("count", "9" * 5000, f"count={'9' * 37}...: expected a whole number of at least 1 and at most 9"),
    ],
)
def test_parse_refuses(key: str, text: str, message: str):
    with pytest.raises(StrategyError) as error:
        parse(key, text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "bad",
    [{"count": 0}, {"count": True}, {"count": 4.0}, {"share_max": nan}, {"rule": "c"}, {"rule": 1}, {"reach": inf}],
)
def test_answers_made_in_python_are_checked_too(bad: dict[str, Any]):
    with pytest.raises(StrategyError):
        Sample(**bad)


def test_values_can_be_typed_back():
    assert values_of(Sample(share_max=0.1)) == {"count": 4, "share-max": 0.1, "rule": "a", "reach": 3, "outer": 1.0}
    assert [format_value(value) for value in (0.1, 100.0, inf, 3, "a")] == ["0.1", "100", "inf", "3", "a"]
