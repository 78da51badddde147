"""What is in the picture of a comparison."""

import pytest

from daws.compare.picture import draw_comparison
from daws.compare.summary import Cell

pytest.importorskip("matplotlib")


def cells(factor: float, strategies: int = 3) -> list[Cell]:
    return [
        Cell(f"s{number}", nodes, 2, 10.0 * factor**step, 0.5, 8.0, 0.9, 0.01, 0.8, 1e6)
        for step, nodes in enumerate((1, 4))
        for number in range(strategies)
    ]


def test_axes_have_names_and_units_and_lines_a_legend():
    figure = draw_comparison(cells(1.0), "title", 2)
    times, shares = figure.axes
    assert (times.get_xlabel(), times.get_ylabel()) == ("nodes", "makespan in s")
    assert "in %" in shares.get_ylabel()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["s0", "s1", "s2", "no schedule below"]
    assert "2 seeds" in legend.get_title().get_text()


def test_the_axis_is_logarithmic_only_where_makespans_differ_much():
    assert draw_comparison(cells(2.0), "title", 1).axes[0].get_yscale() == "linear"
    assert draw_comparison(cells(0.01), "title", 1).axes[0].get_yscale() == "log"


def test_no_two_lines_look_alike():
    figure = draw_comparison(cells(1.0, 20), "title", 1)
    looks = [
        (bars.lines[0].get_color(), bars.lines[0].get_marker(), str(bars.lines[0].get_linestyle()))
        for bars in figure.axes[0].containers
    ]
    assert len(set(looks)) == 20
