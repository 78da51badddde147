import pytest

from daws.formats.values import CORES_MAX, bytes_in, cores, megabytes, nanoseconds, number, shown, size, words


@pytest.mark.parametrize(
    ("found", "value"),
    [
        ("1.5", 1.5),
        ("0,01", 0.01),
        (" 12 ", 12.0),
        ("1.234,5", 1234.5),
        ("1,234.5", 1234.5),
        ("-1,64", -1.64),
        ("1e3", 1000.0),
        ("1,024", 1.024),
        ("1,024,000", 1_024_000.0),
        (7, 7.0),
        (0.25, 0.25),
        ("", None),
        ("  ", None),
        (None, None),
        ("nan", None),
        (float("nan"), None),
    ],
)
def test_numbers_as_they_are_written(found, value):
    assert number(found) == value


@pytest.mark.parametrize(
    ("found", "value"),
    [("1,024", 1024.0), ("-1,024,000", -1_024_000.0), ("0,004", 0.004), ("1234,567", 1234.567), (7, 7.0), (None, None)],
)
def test_sizes_have_no_decimals(found, value):
    assert bytes_in(found) == value


@pytest.mark.parametrize(
    ("text", "value"), [("3 GB", "3072.0"), ("2048k", "2.0"), ("1TiB", "1048576.0"), ("7", "7"), ("1+1 GB", "1+1 GB")]
)
def test_memory_has_units(text, value):
    assert megabytes(text) == value


def test_command_lines_are_taken_apart_as_a_shell_would():
    assert words("a 'b c' d\\ e") == ("a", "b c", "d e")
    assert words("it's  one") == ("it's", "one")


@pytest.mark.parametrize("found", ["abc", "1,2,3.4.5", "1_000", "0x10", "inf", "-inf", "1e999", float("inf"), 10**400])
def test_what_is_no_number_is_refused(found):
    with pytest.raises(ValueError, match="is not a"):
        number(found)


def test_lengths_and_sizes_are_rounded_and_bounded():
    assert nanoseconds(0.05) == 50_000_000
    assert nanoseconds(1e-10) == 0
    for length_ns in (2**52 - 1, 2**52 - 5, 4_194_303_999_999_999):
        assert nanoseconds(length_ns / 1e9) == length_ns
    assert size(10.4) == 10
    for read in (nanoseconds, size, cores):
        with pytest.raises(ValueError, match="is more than"):
            read(1e20)


def test_a_part_of_a_core_is_a_core():
    assert [cores(value) for value in (-1.0, 0.0, 0.5, 1.0, 1.5, float(CORES_MAX))] == [1, 1, 1, 1, 2, CORES_MAX]


def test_long_or_broken_texts_are_shown_short_and_on_one_line():
    assert shown("a\nb") == "'a\\nb'"
    assert len(shown("x" * 1000)) == 42
