"""Questions of a client to all nodes. Nodes that do not answer in time are left out."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from daws.model.task import NodeId
from daws.wire.session import Counted

COUNT_S = 5.0


class Question:
    """A question, the nodes that have yet to answer it, and what the others have said."""

    def __init__(self, nodes: Iterable[NodeId], asked: "Future[list[Counted]]") -> None:
        self.left = set(nodes)
        self.asked = asked
        self.counts: list[Counted] = []

    def end(self) -> None:
        self.left.clear()
        if not self.asked.done():
            self.asked.set_result(self.counts)


class Questions:
    """The questions that have not been answered by all nodes. Each node answers in the order in which it was asked."""

    def __init__(self, loop: AbstractEventLoop, send: Callable[[NodeId, Any], None]) -> None:
        self._loop = loop
        self._send = send
        self._open: list[Question] = []

    def ask(self, nodes: Iterable[NodeId], word: Any, asked: "Future[list[Counted]]") -> None:
        question = Question(nodes, asked)
        self._open.append(question)
        for node in question.left:
            self._send(node, word)
        self._loop.call_later(COUNT_S, self._end, question)
        self._forget()

    def answered(self, node: NodeId, counted: Counted) -> None:
        for question in self._open:
            if node in question.left:
                question.counts.append(counted)
                question.left.discard(node)
                break
        self._forget()

    def without(self, node: NodeId) -> None:
        """A node is gone and will not answer."""
        for question in self._open:
            question.left.discard(node)
        self._forget()

    def fail(self, error: BaseException) -> None:
        failed, self._open = self._open, []
        for question in failed:
            if not question.asked.done():
                question.asked.set_exception(error)

    def _end(self, question: Question) -> None:
        question.end()
        self._forget()

    def _forget(self) -> None:
        for question in [one for one in self._open if not one.left]:
            question.end()
        self._open = [one for one in self._open if one.left]
