"""The other ends of the links of a store's server, and the questions that it asks all nodes."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from daws.model.task import CLIENT, NodeId
from daws.net.link import Link
from daws.runtime.cluster.words import NOBODY, Counted, ToStore
from daws.wire.messages import LetGo

if TYPE_CHECKING:
    from daws.runtime.cluster.sessions import Session

COUNT_S = 5.0
"""Nodes that have not answered a question after so long are left out."""


class Caller:
    """Somebody who is connected: a node, a client, or a tool."""

    def __init__(
        self,
        link: Link[ToStore],
        unsent: "list[tuple[Caller, Any]]",
        has_read: Callable[[int], bool] = lambda task: False,
    ) -> None:
        """`has_read` says whether a task has ended, so that it needs nothing any more."""
        self.link = link
        self.node: NodeId = NOBODY
        self.session: Session | None = None
        self.quiet: list[Any] = []  # what need not be said on its own
        self.unheld: dict[int, tuple[int, ...]] = {}  # the same: what clients have let go of, and who is to read it
        self.is_timed = False  # it will be said in a while
        self._unsent = unsent
        self._has_read = has_read

    def send(self, word: Any) -> None:
        """It leaves when all that it tells is safe."""
        if self.quiet or self.unheld:
            self.send_quiet()
        self._unsent.append((self, word))

    def send_quiet(self) -> None:
        self._unsent += [(self, word) for word in self.quiet]
        self.quiet.clear()
        if self.unheld:
            # Who has ended meanwhile may have said so to the node already, and would be waited for in vain.
            left = [tuple([one for one in readers if not self._has_read(one)]) for readers in self.unheld.values()]
            self._unsent.append((self, LetGo(CLIENT, tuple(self.unheld), tuple(left))))
            self.unheld = {}


class QuietWords:
    """Messages for which nobody waits: they leave after `quiet_s`, or with the next message to the same caller."""

    def __init__(
        self, loop: AbstractEventLoop, quiet_s: float, callers: set[Caller], flush: Callable[[], None]
    ) -> None:
        """`callers` are those that are connected. `flush` sends what callers are told."""
        self._loop = loop
        self._quiet_s = quiet_s
        self._callers = callers
        self._flush = flush

    def send(self, caller: Caller, word: Any) -> None:
        caller.quiet.append(word)
        self.send_later(caller)

    def send_later(self, caller: Caller) -> None:
        """Have the quiet words of this caller sent in a while."""
        if not caller.is_timed:
            caller.is_timed = True
            self._loop.call_later(self._quiet_s, self._on_time, caller)

    def _on_time(self, caller: Caller) -> None:
        caller.is_timed = False
        if (caller.quiet or caller.unheld) and caller in self._callers:
            caller.send_quiet()
            self._flush()


class Counting:
    """A question to all nodes; who does not answer in time is left out."""

    def __init__(self, asked: list[Caller], done: Callable[[list[Counted]], None]) -> None:
        self._left = set(asked)
        self._counts: list[Counted] = []
        self._done = done
        self.is_over = False

    def answered(self, caller: Caller, counted: Counted) -> bool:
        """Is that an answer to this question? Each node answers in the order in which it was asked."""
        if caller not in self._left:
            return False
        self._counts.append(counted)
        self.without(caller)
        return True

    def without(self, caller: Caller) -> None:
        self._left.discard(caller)
        self.look()

    def look(self) -> None:
        if not self._left:
            self.end()

    def end(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._done(self._counts)


class Questions:
    """The questions to all nodes that are not answered yet. `flush` sends what callers are told."""

    def __init__(self, loop: AbstractEventLoop, flush: Callable[[], None]) -> None:
        self._loop = loop
        self._flush = flush
        self._open: list[Counting] = []

    def ask(self, nodes: list[Caller], question: Any, done: Callable[[list[Counted]], None]) -> None:
        counting = Counting(nodes, done)
        self._open.append(counting)
        for node in nodes:
            node.send(question)
        self._loop.call_later(COUNT_S, self._end, counting)
        counting.look()
        self._forget()

    def answered(self, caller: Caller, counted: Counted) -> None:
        for counting in self._open:
            if counting.answered(caller, counted):
                break
        self._forget()

    def without(self, caller: Caller) -> None:
        """It is gone and will not answer."""
        for counting in self._open:
            counting.without(caller)
        self._forget()

    def _end(self, counting: Counting) -> None:
        counting.end()
        self._forget()
        self._flush()

    def _forget(self) -> None:
        self._open = [one for one in self._open if not one.is_over]
