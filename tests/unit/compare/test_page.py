"""The page: everything is inside, and nothing in it can do harm."""

import re
from html.parser import HTMLParser

import pytest

from daws.compare.page import page_of
from daws.compare.picture import draw_comparison
from daws.compare.summary import Cell
from daws.sim.plot import bytes_of

pytest.importorskip("matplotlib")

CELLS = [
    Cell(strategy, nodes, 3, 10.0 / nodes + number, 0.5, 9.0 / nodes, 0.9, 0.01, 0.8, 1e6)
    for nodes in (1, 4, 16)
    for number, strategy in enumerate(("daws", "flds:t=0.2,tt=5", "<random>&$x$"))
]


class Loads(HTMLParser):
    """What a browser would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.cells: list[str] = []
        self.is_best = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "iframe", "object", "embed", "img", "image"):
            self.found.append(tag)
        names = dict(attrs)
        for name in ("src", "href", "xlink:href"):
            value = names.get(name)
            if value is not None and not value.startswith("#"):
                self.found.append(value)
        self.is_best = tag == "td" and names.get("class") == "best"

    def handle_data(self, data: str) -> None:
        if self.is_best:
            self.cells.append(data)
            self.is_best = False


@pytest.fixture(scope="module")
def page() -> str:
    figure = draw_comparison(CELLS, "a <title> & $more$", 3)
    return page_of(CELLS, "a <title>", "daws compare 'a b'", [("costs", "<measured>")], bytes_of(figure, ".svg"))


def test_it_needs_nothing_else(page):
    reader = Loads()
    reader.feed(page)
    assert reader.found == []
    assert "<svg" in page and "<?xml" not in page and "<!DOCTYPE svg" not in page
    assert not re.search(r"@import|url\((?!#)", page)


def test_what_was_typed_is_text(page):
    assert "<title>a &lt;title&gt;</title>" in page
    assert "&lt;random&gt;&amp;$x$" in page and "<random>" not in page
    assert "daws compare &#x27;a b&#x27;" in page


def test_the_best_of_each_row_stands_out(page):
    reader = Loads()
    reader.feed(page)
    assert reader.cells[:3] == ["10 ± 0.5", "2.5 ± 0.5", "0.625 ± 0.5"]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_pictures_are_drawn_the_same_each_time(suffix):
    one, other = (bytes_of(draw_comparison(CELLS, "title", 3), suffix) for _ in range(2))
    assert len(one) == len(other) > 1000
