"""The processes that are connected to a store's server, and messages to them for which nobody waits."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any

from daws.model.session import NO_SESSION
from daws.model.task import NOBODY, NodeId
from daws.net.link import Link
from daws.wire.cluster import ToStore


class Caller:
    """A node, a client or a tool at the other end of a link."""

    def __init__(self, link: Link[ToStore], unsent: "list[tuple[Caller, Any]]") -> None:
        self.link = link
        self.node: NodeId = NOBODY
        self.session: int = NO_SESSION
        self.read_to = 0  # the number up to which a client has read the log
        self.quiet: list[Any] = []  # messages that need not be sent on their own
        self.is_timed = False  # they will be sent in a while
        self._unsent = unsent

    @property
    def is_client(self) -> bool:
        """Is it a client, or a tool?"""
        return self.link.peer.role == "client"

    def send(self, word: Any) -> None:
        """Send a message as soon as all that it tells is safe."""
        if self.quiet:
            self.send_quiet()
        self._unsent.append((self, word))

    def send_quiet(self) -> None:
        self._unsent += [(self, word) for word in self.quiet]
        self.quiet.clear()


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
        if not caller.is_timed:
            caller.is_timed = True
            self._loop.call_later(self._quiet_s, self._on_time, caller)

    def _on_time(self, caller: Caller) -> None:
        caller.is_timed = False
        if caller.quiet and caller in self._callers:
            caller.send_quiet()
            self._flush()
