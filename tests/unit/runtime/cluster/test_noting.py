"""Notes of a node, by session, and the clocks of machines."""

from typing import Any

import pytest

from daws.data.tags import rooted
from daws.model.session import SESSION_BITS
from daws.model.task import FIRST_SPAWNED_ID
from daws.runtime.cluster import noting
from daws.runtime.cluster.noting import SessionNotes, clock_ns, fact_here, news_here
from daws.runtime.functions import FunctionTable
from daws.wire.notes import News, Row, RunLinks, Sent
from daws.wire.session import Learnt, Ran

FIRST, SECOND = (session << SESSION_BITS for session in (1, 2))
NESTED = FIRST_SPAWNED_ID + 5


def row(task: int, kind: int = 0) -> Row:
    return (task, kind, 3, 0, 100, 200, 1, 0, 0, 1)


def sent(task: int) -> Sent:
    return Sent(task, 3, 50, 0, 0, 0, 0)


def test_each_session_is_sent_its_own_runs_and_decisions():
    said: list[tuple[int, Any]] = []
    runs: set[int] = set()
    decisions: set[int] = set()
    notes = SessionNotes(lambda: (runs, decisions), lambda session, word: said.append((session, word)))
    functions = FunctionTable(3, "/nowhere")
    functions.known[NESTED] = rooted(SECOND + 1, b"pickled")
    links = (RunLinks(FIRST, 100), RunLinks(NESTED, 100))
    news = News(3, (row(FIRST), row(SECOND), row(NESTED, NESTED)), 1, 7, links)
    notes.ran(news, functions)
    notes.learnt(sent(FIRST))
    assert not said, "nobody has asked"
    runs.update((1, 2))
    decisions.add(2)
    notes.ran(news, functions)
    for task in (FIRST, SECOND, NESTED):
        notes.learnt(sent(task))
    (to_one, one), (to_two, two), (to_three, learnt) = said
    assert (to_one, to_two, to_three) == (1, 2, 2)
    assert one.session == 1 and one.news == News(3, (row(FIRST),), 1, 7, links[:1])
    assert two.session == 2 and two.news == News(3, (row(SECOND), row(NESTED, NESTED)), 1, 7, links[1:])
    assert learnt.session == 2 and learnt.fact == sent(SECOND)


def test_times_of_other_machines_are_converted(monkeypatch: pytest.MonkeyPatch):
    news = News(3, (row(FIRST),), 1, 7, (RunLinks(FIRST, 100),))
    assert news_here(Ran(1, news, clock_ns())) is news, "the clock of this machine"
    monkeypatch.setattr(noting, "clock_ns", lambda: 10**15)
    moved = news_here(Ran(1, news, 10**15 + 10**9))
    assert moved.rows[0][3:6] == (0, 100 + 10**9, 200 + 10**9) and moved.links[0].start_ns == 100 + 10**9
    assert fact_here(Learnt(1, sent(FIRST), 10**15 - 10**9)).at_ns == 50 - 10**9
