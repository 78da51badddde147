"""Sessions that end, and those whose client is gone: a sweeper does for them what the client would do.

The server of an embedded store sweeps its own store. Where nodes call the store themselves, the first node does it; two
nodes that both take themselves for the first do no harm.
"""

import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic_ns
from typing import Any

from daws.core.config import NodeConfig
from daws.core.effects import TICK, CallStore, Send
from daws.core.events import CallFine, CallsSafe, Started, StoreAnswered, StoreChanged, TimerFired
from daws.core.session import SessionCore
from daws.core.session_events import (
    MembersHeard,
    SessionClosed,
    SessionEffect,
    SessionEvent,
    SessionRefused,
)
from daws.logs import about
from daws.model.cluster import Members
from daws.model.session import SWEEPER, SessionEntry
from daws.model.task import NodeId
from daws.wire.messages import CancelTaken, MessageType, SubmissionTaken
from daws.wire.store import TO_SWEEP, SessionList

FIRST_TOKEN = 1 << 48
TOKEN_BITS = 32
"""Each session machine of a sweeper counts its calls from a number of its own on, above those of nodes."""
NONCE_BYTES = 16
log = logging.getLogger("daws.store")


def is_sweepers(token: int) -> bool:
    """Is this the call of a sweeper, not that of the node in the same process?"""
    return token >= FIRST_TOKEN


class Sweeper:
    """All sessions that this process looks after. Events go in by `hear`; `look` is called now and then."""

    def __init__(
        self,
        config: NodeConfig,
        call: Callable[[CallStore], None],
        send: Callable[[NodeId, MessageType], None],
    ) -> None:
        """`call` makes a call, whose answer comes by `hear`, and `send` tells a node."""
        self._config = config
        self._call = call
        self._send = send
        self._members = Members(0, ())
        self._machines: dict[int, SessionCore] = {}  # by the first of its tokens
        self._next = FIRST_TOKEN
        self._todo: deque[tuple[int, SessionEvent]] = deque()
        self._is_at_work = False

    def begin_anew(self) -> None:
        """Forget all that is under way: the calls made so far will not be answered, or never be said to be safe."""
        self._machines.clear()
        self._todo.clear()

    def look(self, members: Members, listed: SessionList) -> None:
        """Let sessions that end take their next steps, and begin with those of the list that have lost their client."""
        self._members = members
        for first in [*self._machines]:
            self._feed(first, MembersHeard(members))
            self._feed(first, TimerFired(TICK))
        swept = {machine.session for machine in self._machines.values()}
        for entry in listed.sessions:
            is_left = entry.number not in listed.attached and (entry.nonce or entry.ending)
            if is_left and entry.number not in swept:
                self._begin(entry)
        self._work()

    def hear(self, event: StoreAnswered | CallFine | CallsSafe | StoreChanged | SubmissionTaken | CancelTaken) -> None:
        """Take the answer to a call, or the acknowledgement of a node."""
        if isinstance(event, StoreAnswered | CallFine):
            self._feed(event.token >> TOKEN_BITS << TOKEN_BITS, event)
        else:
            for first in [*self._machines]:
                self._feed(first, event)
        self._work()

    def _begin(self, entry: SessionEntry) -> None:
        if not entry.ending:
            left = "goes on without one" if entry.kept else "ends"
            log.warning("the client of %s is gone: it %s", entry.name, left, extra=about(session=entry.name))
        self._next += 1 << TOKEN_BITS
        self._machines[self._next] = SessionCore(
            os.urandom(NONCE_BYTES) + SWEEPER,
            self._config,
            session=entry.number,
            why=TO_SWEEP,
            first_token=self._next,
        )
        self._feed(self._next, Started(self._members))

    def _feed(self, first: int, event: SessionEvent) -> None:
        if first in self._machines:
            self._todo.append((first, event))

    def _work(self) -> None:
        """Carry out events one after the other: answers may come while a call is made."""
        if self._is_at_work:
            return
        self._is_at_work = True
        try:
            while self._todo:
                first, event = self._todo.popleft()
                machine = self._machines.get(first)
                if machine is not None:
                    out: list[SessionEffect] = []
                    machine.step(monotonic_ns(), (event,), out)
                    self._carry_out(first, out)
        finally:
            self._is_at_work = False

    def _carry_out(self, first: int, effects: Sequence[Any]) -> None:
        for effect in effects:
            if isinstance(effect, CallStore):
                self._call(effect)
            elif isinstance(effect, Send):
                self._send(effect.to, effect.message)
            elif isinstance(effect, SessionClosed | SessionRefused):
                del self._machines[first]
