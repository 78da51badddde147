"""What the server of a store keeps beside it."""

from pathlib import Path

import pytest

from daws.model.errors import StoreFullError, UnavailableError
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


def test_without_room_no_number_is_given_and_nothing_else_forgotten(tmp_path: Path):
    path = tmp_path / "book"
    book = Book(path)
    kept, ended = book.open("kept", True, 1.0), book.open("ended", True, 2.0)
    blocked = path.with_name("book.part")
    blocked.mkdir()  # as if there were no room for it
    for ask in (book.new_node, lambda: book.open("new", True, 3.0)):
        with pytest.raises(StoreFullError, match=r"book cannot be written: .*; make room there"):
            ask()
    assert book.named("new") is None
    book.keep(kept, False)
    book.end(ended.number)
    blocked.rmdir()
    assert Book(path).sessions.keys() == {kept.number, ended.number}
    book.write_again()
    assert Book(path).sessions == {kept.number: kept} and not kept.kept
    assert (book.new_node(), book.open("new", True, 3.0).name) == (0, "new")


@pytest.mark.parametrize(("text", "why"), [("nonsense", "cannot be read"), ('{"version": 99}', "has version 99")])
def test_what_somebody_else_wrote_is_refused(tmp_path: Path, text: str, why: str):
    path = tmp_path / "book"
    path.write_text(text)
    with pytest.raises(UnavailableError, match=why):
        Book(path)
