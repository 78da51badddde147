import pytest

from daws.workers.roots import BOOK_MAX, BOOK_MAX_BYTES, GAP, FailureBook, head_of, once_each, root_in, way

ERROR = "task 3 (load) failed on node 1: ValueError: bad: very"
NAMES = {10: "load", 11: "mean", 12: "stack"}


def name(kind: int) -> str:
    return NAMES.get(kind, "")


@pytest.mark.parametrize(
    "error, root",
    [
        (ERROR, 3),
        ("task 7 failed: KeyError", 7),
        ("task 7 (<lambda>) failed: KeyError", 7),
        ("task 7 was running on 3 nodes when they died", -1),
        ("ObjectLost: task 7 finds object 3 damaged", -1),
        ("", -1),
    ],
)
def test_an_error_names_its_root(error: str, root: int):
    assert root_in(error) == root


def test_the_head_of_an_error_is_who_failed():
    assert head_of(ERROR) == "task 3 (load) failed on node 1"


def test_each_step_of_the_way_is_named():
    root = "task 3 (load), which failed on node 1: ValueError: bad: very"
    assert way(((9, 12),), ERROR, name) == f"task 9 (stack) was not run: it needs {root}"
    assert way(((9, 12), (7, 11)), ERROR, name) == (
        f"task 9 (stack) was not run: it needs task 7 (mean), which needs {root}"
    )
    assert way(((9, 12), (7, 99), GAP), ERROR, name) == (
        f"task 9 (stack) was not run: it needs task 7, which needs others, and these need {root}"
    )
    assert way((), ERROR, name) == f"it was not run: it needs {root}"
    assert way((GAP,), ERROR, name) == f"it was not run: it needs {root}"


def test_who_fails_because_of_another_shares_what_that_raised():
    book = FailureBook()
    raised = bytes(1000)
    assert book.find(3, ERROR, raised)[1] is raised
    assert book.find(5, ERROR) == (ERROR, raised) and book.find(5, ERROR)[1] is raised
    assert book.find(6, "task 4 failed: KeyError")[1] == b""
    assert book.find(7, "no task", b"own")[1] == b"own"
    book.find(3, "task 3 failed: KeyError", b"another run")
    assert book.find(5, ERROR)[1] == b"another run"


def test_who_was_created_when_its_parent_had_failed_finds_the_root_of_that():
    book = FailureBook()
    said = "task {}, which it needs, has failed, was cancelled, or is forgotten with all it made"
    book.find(3, ERROR, b"raised")
    book.find(5, ERROR)
    assert book.find(8, said.format(5)) == (ERROR, b"raised")
    assert book.find(9, said.format(8)) == (ERROR, b"raised")
    assert book.find(10, said.format(77)) == (said.format(77), b"")
    assert way(((8, 12),), said.format(77), name) == (
        "task 8 (stack) was not run: it needs task 77, which failed, was cancelled, or is forgotten with all it made"
    )


def test_the_book_is_bounded():
    book = FailureBook()
    for task in range(BOOK_MAX + 10):
        book.keep(task, b"x")
        book.find(task, f"task {task} failed")
    assert len(book) == len(book._errors) == BOOK_MAX
    assert book.find(0, "task 9 failed")[1] == b"" and book.find(0, "task 10 failed")[1] == b"x"
    large = bytes(BOOK_MAX_BYTES // 2)
    for task in (1, 2, 3):
        book.keep(task, large)
    assert len(book) == 2 and book.find(0, "task 1 failed")[1] == b"" and book.find(0, "task 2 failed")[1] is large


def test_what_travels_together_is_sent_once():
    other = "task 4 failed: KeyError"
    sent = once_each([(ERROR, b"a"), (other, b""), (other, b"b"), (ERROR, b"a"), (other, b"b"), ("odd", b"c")])
    assert sent == [b"a", b"", b"b", b"", b"", b"c"]
