"""One way to write numbers, wherever they are typed."""

import math

import pytest

from daws.cli.parser import make_parser
from daws.model.errors import DawsError
from daws.model.numbers import read_number, read_whole
from daws.strategy import parse_strategy
from daws.workloads import parse_workload


@pytest.mark.parametrize(
    ("text", "number"),
    [("10", 10), ("-3", -3), ("+4", 4), ("1e3", 1000.0), (".5", 0.5), ("2.", 2.0), ("9007199254740993", 2**53 + 1)],
)
def test_what_is_a_number(text: str, number: float):
    assert read_number(text) == number
    assert read_whole(text) == (number if number == int(number) else None)


@pytest.mark.parametrize("text", ["", "1_0", " 1", "1 0", "nan", "inf", "0x10", "1e", "١", "1" * 41, "--1"])
def test_what_is_none(text: str):
    assert read_number(text) is None and read_whole(text) is None


def test_what_is_too_large_is_infinite_and_not_whole():
    assert read_number("1e999") == math.inf and read_whole("1e999") is None


@pytest.mark.parametrize("number", ["1_0", "nan", "٣"])
def test_all_who_read_numbers_agree(number: str, capsys: pytest.CaptureFixture[str]):
    for parse, text in ((parse_strategy, f"flds:t={number}"), (parse_workload, f"bot:tasks={number}")):
        with pytest.raises(DawsError, match="number"):
            parse(text)
    for option in ("--nodes", "--time-scale"):
        with pytest.raises(SystemExit):
            make_parser().parse_args(["sim", "bot", option, number])
        assert "number" in capsys.readouterr().err


def test_a_strategy_takes_whole_numbers_as_workloads_do():
    assert parse_strategy("mlb:most=1e3").balance == parse_strategy("mlb:most=1000").balance
    assert parse_strategy("flds:t=inf").place == parse_strategy("mlb").place
