import dataclasses
import socket
import threading
from typing import Any

import pytest

from daws.data.culprit import complain, find_culprit

BAD = object()


def holds_no_bad(value: object) -> bool:
    """As if `BAD` were the one thing that cannot be pickled."""
    return "<object object" not in repr(value)


@dataclasses.dataclass
class Holder:
    inner: Any


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (BAD, ""),
        ([1, BAD], "[1]"),
        ({"a": (0, BAD)}, "['a'][1]"),
        (Holder([BAD]), ".inner[0]"),
        ([Holder({"x": BAD})], "[0].inner['x']"),
    ],
)
def test_the_innermost_part_is_found(value: object, path: str):
    assert find_culprit(value, holds_no_bad) == (path, BAD)


def test_methods_lead_to_what_they_belong_to():
    class Bound:
        def __init__(self) -> None:
            self.bad = BAD

        def __repr__(self) -> str:
            return repr(self.bad)

        def method(self) -> None: ...

    assert find_culprit([Bound().method], holds_no_bad) == ("[0].__self__.bad", BAD)


def test_keys_and_members_of_sets_are_looked_at():
    assert find_culprit({BAD: 1}, holds_no_bad)[1] is BAD
    assert find_culprit({BAD}, holds_no_bad)[1] is BAD


def test_a_value_that_holds_itself_ends_the_search():
    value: list[object] = []
    value.append(value)
    assert find_culprit(value, lambda part: False) == ("", value)


def test_the_search_is_bounded():
    calls: list[object] = []

    def is_picklable(part: object) -> bool:
        calls.append(part)
        return True

    find_culprit(list(range(100_000)), is_picklable)
    assert len(calls) <= 1000


def test_the_message_is_one_line_with_a_hint():
    with socket.socket() as value:
        error = complain([value], "argument 1", TypeError("cannot\n pickle"), lambda part: part is not value)
    assert str(error) == (
        "argument 1 cannot be pickled: socket.socket (in [0]): cannot pickle; "
        "pass the address and connect inside the task"
    )


def test_locks_are_said_to_have_no_copy_wherever_tasks_run():
    said = str(complain(threading.Lock(), "argument 1", TypeError("no"), lambda part: False))
    assert "tasks work on copies, and a lock has none" in said and "process" not in said
