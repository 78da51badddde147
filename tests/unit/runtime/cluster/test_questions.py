"""Questions of a client to all nodes: each is answered by the nodes that answer in time."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, cast

import pytest

from daws.model.errors import UnavailableError
from daws.runtime.cluster.questions import COUNT_S, Questions
from daws.wire.session import Count, Counted, Counters


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
        self.questions.ask(nodes, Count(), asked)
        return asked

    def answer(self, node: int, done: int = 1) -> Counted:
        counted = Counted(Counters(node, done, 0, 0, 0), [])
        self.questions.answered(node, counted)
        return counted


@pytest.fixture
def asking() -> Asking:
    return Asking()


def test_a_question_is_answered_when_all_nodes_have(asking: Asking):
    asked = asking.ask(4, 5)
    assert sorted(asking.sent) == [(4, Count()), (5, Count())]
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
    counts = [asking.answer(4), asking.answer(4)]
    assert not first.done() and not second.done()
    asking.timers[0]()
    assert first.result(0) == counts[:1], "5 was silent for too long"
    asking.questions.without(5)
    assert second.result(0) == counts[1:]
    for timer in asking.timers:
        timer()  # nothing is left to be ended


def test_each_node_answers_in_the_order_in_which_it_was_asked(asking: Asking):
    first, second = asking.ask(4, 5), asking.ask(4, 5)
    early = [asking.answer(5, 1), asking.answer(5, 2)]
    late = [asking.answer(4, 3), asking.answer(4, 4)]
    assert first.result(0) == [early[0], late[0]] and second.result(0) == [early[1], late[1]]


def test_who_waits_hears_that_no_answer_will_come(asking: Asking):
    asked, given_up = asking.ask(4), asking.ask(4)
    given_up.cancel()
    asking.questions.fail(UnavailableError("gone", retry=False))
    with pytest.raises(UnavailableError, match="gone"):
        asked.result(0)
    asking.answer(4)
    asking.timers[0]()


def test_whoever_has_given_up_is_not_answered(asking: Asking):
    asked = asking.ask(4)
    asked.cancel()
    asking.answer(4)
    assert asked.cancelled()
