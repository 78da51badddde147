"""Questions of a client to all nodes. Nodes that do not answer in time are left out."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from itertools import count
from typing import Any

from daws.model.task import NodeId
from daws.wire.session import Count, Counted

COUNT_S = 5.0


class Questions:
    """The questions that have not been answered by all nodes, by number: the future, the nodes that have yet to answer,
    and what the others have said."""

    def __init__(self, loop: AbstractEventLoop, send: Callable[[NodeId, Any], None]) -> None:
        self._loop = loop
        self._send = send
        self._numbers = count(1)
        self._open: dict[int, tuple[Future[list[Counted]], set[NodeId], list[Counted]]] = {}

    def ask(self, nodes: Iterable[NodeId], asked: "Future[list[Counted]]") -> None:
        number = next(self._numbers)
        self._open[number] = asked, {*nodes}, []
        for node in self._open[number][1]:
            self._send(node, Count(number))
        self._loop.call_later(COUNT_S, self._end, number)
        self._look(number)

    def answered(self, node: NodeId, counted: Counted) -> None:
        _, left, counts = self._open.get(counted.number, (None, (), []))
        if node in left:
            counts.append(counted)
            self._leave_out(node, counted.number)

    def without(self, node: NodeId) -> None:
        """A node is gone and will not answer."""
        for number in [*self._open]:
            self._leave_out(node, number)

    def _leave_out(self, node: NodeId, number: int) -> None:
        self._open[number][1].discard(node)
        self._look(number)

    def _look(self, number: int) -> None:
        if not self._open[number][1]:
            self._end(number)

    def _end(self, number: int) -> None:
        asked, _, counts = self._open.pop(number, (None, (), []))
        if asked is not None and not asked.done():
            asked.set_result(counts)
