"""Ranges of sessions that have ended."""

import random

from daws.model.session import SESSION_BITS, brought_id
from daws.model.task import spawned_id
from daws.store.memory.closed import FUNCTIONS, any_closed, close, is_closed


def is_session_closed(closed: list[int], session: int) -> bool:
    return is_closed(closed, (session << SESSION_BITS) + 5)


def test_sessions_that_end_one_after_the_other_are_one_range():
    closed: list[int] = []
    for session in range(1, 10_000):
        close(closed, session)
        close(closed, FUNCTIONS + session)
    assert closed == [1, 10_000, FUNCTIONS + 1, FUNCTIONS + 10_000]


def test_a_session_that_goes_on_parts_a_range_until_it_ends():
    closed: list[int] = []
    for session in (1, 2, 4, 5):
        close(closed, session)
    assert closed == [1, 3, 4, 6]
    close(closed, 3)
    assert closed == [1, 6]


def test_ranges_say_what_a_set_would_say():
    rng = random.Random(7)
    closed: list[int] = []
    known: set[int] = set()
    for _ in range(400):
        session = rng.randrange(200)
        close(closed, session)
        known.add(session)
        assert closed == sorted(set(closed)), "the ends are in order, and ranges do not touch"
        asked = rng.sample(range(220), 20)
        assert [is_session_closed(closed, one) for one in asked] == [one in known for one in asked]
        assert any_closed(closed, [one << SESSION_BITS for one in asked]) == (not known.isdisjoint(asked))


def test_functions_are_closed_apart_and_tasks_of_runs_never():
    closed: list[int] = []
    close(closed, 3)
    function = brought_id(3, b"\xff" * 8)
    assert is_session_closed(closed, 3) and not is_closed(closed, function)
    close(closed, FUNCTIONS + 3)
    assert is_closed(closed, function) and not is_closed(closed, brought_id(4, b""))
    assert not any(is_closed(closed, spawned_id(3 << SESSION_BITS, 0, number)) for number in range(100))
