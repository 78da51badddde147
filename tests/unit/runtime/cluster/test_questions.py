"""Questions of a client to all nodes: each is answered by the nodes that answer in time."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, cast

import pytest

from daws.runtime.cluster.questions import COUNT_S, Questions
from daws.wire.notes import Counters
from daws.wire.session import Count, Counted


class Asking:
    def __init__(self) -> None:
        self.sent: list[tuple[int, Any]] = []
        self.timers: list[Callable[[], None]] = []
        self.questions = Questions(cast(Any, self), lambda node, word: self.sent.append((node, word)))

    def call_later(self, delay_s: float, function: Callable[..., None], *what: Any) -> None:
        assert delay_s == COUNT_S
        self.timers.append(lambda: function(*what))

    def ask(self, *nodes: int) -> "Future[list[Counted]]":
        asked: Future[list[Counted]] = Future()
        self.questions.ask(nodes, asked)
        return asked

    def answer(self, node: int, number: int = 1) -> Counted:
        counted = Counted(Counters(node, number, 0, 0, 0), [], number)
        self.questions.answered(node, counted)
        return counted


@pytest.fixture
def asking() -> Asking:
    return Asking()


def test_a_question_is_answered_when_all_nodes_have(asking: Asking):
    asked = asking.ask(4, 5)
    assert sorted(asking.sent) == [(4, Count(1)), (5, Count(1))]
    one = asking.answer(4)
    asking.answer(4, 99)  # to no question
    assert not asked.done()
    two = asking.answer(5)
    assert asked.result(0) == [one, two]


def test_without_nodes_the_answer_is_empty(asking: Asking):
    assert asking.ask().result(0) == []


def test_nodes_that_are_silent_or_gone_are_left_out(asking: Asking):
    first = asking.ask(4, 5, 6)
    second = asking.ask(4, 5)
    asking.questions.without(6)
    counts = [asking.answer(4), asking.answer(4, 2)]
    assert not first.done() and not second.done()
    asking.timers[0]()
    assert first.result(0) == counts[:1], "5 was silent for too long"
    asking.questions.without(5)
    assert second.result(0) == counts[1:]
    for timer in asking.timers:
        timer()  # nothing is left to be ended


def test_an_answer_is_for_the_question_with_its_number(asking: Asking):
    first, second = asking.ask(4, 5), asking.ask(4, 5)
    early, late = asking.answer(5, 2), asking.answer(5, 1)
    other = asking.answer(4, 1)
    assert first.result(0) == [late, other] and not second.done()
    last = asking.answer(4, 2)
    assert second.result(0) == [early, last]


def test_an_answer_that_comes_late_is_not_taken_for_one_to_the_next_question(asking: Asking):
    first = asking.ask(4)
    asking.timers[0]()
    assert first.result(0) == []
    second = asking.ask(4)
    asking.answer(4, 1)
    assert not second.done()
    asking.answer(4, 2)
    assert [one.number for one in second.result(0)] == [2]


def test_whoever_has_given_up_is_not_answered(asking: Asking):
    asked = asking.ask(4)
    asked.cancel()
    asking.answer(4)
    assert asked.cancelled()
