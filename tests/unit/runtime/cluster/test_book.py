"""What the server of a store keeps beside it."""

from pathlib import Path

import pytest

from daws.model.errors import UnavailableError
from daws.runtime.cluster.book import NODES_AT_ONCE, Book


def test_numbers_are_never_given_twice_and_sessions_stay_until_they_end(tmp_path: Path):
    path = tmp_path / "book"
    first = Book(path)
    nodes = [first.new_node() for _ in range(NODES_AT_ONCE + 5)]
    one, two = first.open("mine", True, 1.5), first.open("", False, 2.5)
    assert two.name == f"session-{two.number}"
    first.keep(two, True)
    first.end(one.number)
    again = Book(path)
    nodes += [again.new_node() for _ in range(3)]
    assert len(set(nodes)) == len(nodes)
    assert again.sessions == {two.number: two}
    assert again.named("mine") is None and again.named(two.name) == two
    assert again.open("mine", False, 3.5).number not in (one.number, two.number)


def test_without_a_path_nothing_is_written():
    book = Book(None)
    assert (book.new_node(), book.new_node()) == (0, 1)
    assert book.open("mine", True, 0.0).number == 1


@pytest.mark.parametrize(("text", "why"), [("nonsense", "cannot be read"), ('{"version": 99}', "has version 99")])
def test_what_somebody_else_wrote_is_refused(tmp_path: Path, text: str, why: str):
    path = tmp_path / "book"
    path.write_text(text)
    with pytest.raises(UnavailableError, match=why):
        Book(path)
