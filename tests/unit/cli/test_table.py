"""Numbers for people."""

import pytest

from daws.cli.table import grid, seconds, size


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (12_345_678, "12.3 MB"), (5e9, "5.00 GB"), (3.21e17, "321 PB")],
)
def test_size(value, shown):
    assert size(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0.00 s"), (12.34, "12.3 s"), (4321, "4,321 s"), (0.05, "50.0 ms"), (2e-6, "2.00 µs")]
)
def test_seconds(value, shown):
    assert seconds(value) == shown


def test_grid_aligns():
    assert grid([("a", "1", "x"), ("bcd", "100", "")], right=(1,), indent="  ") == "  a      1  x\n  bcd  100"
