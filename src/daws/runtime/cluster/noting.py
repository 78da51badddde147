"""Notes on runs and decisions: which sessions want them, and how a node sends each session its own.

A node takes notes only while a session asks for them. Notes have times of the monotonic clock of the node's machine.
Each message also says how far that clock is behind the time of day. Clients convert times to their own clock.
"""

import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from daws.model.session import session_of
from daws.model.task import FIRST_SPAWNED_ID
from daws.runtime.functions import FunctionTable
from daws.wire.notes import FactType, News
from daws.wire.session import Learnt, Ran

SAME_CLOCK_NS = 100_000_000
"""Clocks that differ by less are taken for the clock of one machine."""


def clock_ns() -> int:
    """The time of day when the monotonic clock of this machine was 0."""
    return time.time_ns() - time.monotonic_ns()


class SessionNotes:
    """The notes of one node, by session. `wishes` answers the sessions that want to hear of runs, and of decisions;
    `send` sends a message to the client of a session."""

    def __init__(self, wishes: Callable[[], tuple[set[int], set[int]]], send: Callable[[int, Any], None]) -> None:
        self._wishes = wishes
        self._send = send

    def ran(self, news: News, functions: FunctionTable) -> None:
        """Send each session that asks the runs of its own tasks."""
        asked = set().union(*self._wishes())
        rows: dict[int, list[Any]] = {}
        whose: dict[int, int] = {}
        for row in news.rows:
            session = whose[row[0]] = session_of(functions.session_number(row[0], row[1]))
            if session in asked:
                rows.setdefault(session, []).append(row)
        for session, own in rows.items():
            links = tuple([one for one in news.links if whose.get(one.task) == session])
            self._send(session, Ran(session, replace(news, rows=tuple(own), links=links), clock_ns()))

    def learnt(self, fact: FactType) -> None:
        """Send a fact to the session of its task. Facts about tasks that runs have created are not sent: no client has
        futures of these."""
        if fact.task < FIRST_SPAWNED_ID and (session := session_of(fact.task)) in self._wishes()[1]:
            self._send(session, Learnt(session, fact, clock_ns()))


def news_here(word: Ran) -> News:
    """The runs with times of the clock of this machine."""
    by_ns = _ahead_ns(word.clock_ns)
    if not by_ns:
        return word.news
    rows = tuple([(*row[:4], row[4] + by_ns, row[5] + by_ns, *row[6:]) for row in word.news.rows])
    links = tuple([replace(one, start_ns=one.start_ns + by_ns) for one in word.news.links])
    return replace(word.news, rows=rows, links=links)


def fact_here(word: Learnt) -> FactType:
    """The fact with a time of the clock of this machine."""
    by_ns = _ahead_ns(word.clock_ns)
    return replace(word.fact, at_ns=word.fact.at_ns + by_ns) if by_ns else word.fact


def _ahead_ns(their_clock_ns: int) -> int:
    """How far our monotonic clock is ahead of theirs; 0 for a process of this machine."""
    by_ns = their_clock_ns - clock_ns()
    return by_ns if abs(by_ns) >= SAME_CLOCK_NS else 0
