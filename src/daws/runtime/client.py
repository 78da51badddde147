"""The driver of a session: gives its machine (`SessionCore`) what happened, and carries out what it wants.

The machine decides what is written, sent, repeated and read. How calls reach the store, and messages the nodes, is the
business of the clusters: in this process (`runtime.thread`), or on links (`runtime.cluster.joined`).
"""

import os
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from daws.core.effects import CallStore, Send, SetTimer
from daws.core.events import NewStrategy, Started, TimerFired
from daws.core.session import SessionCore
from daws.core.session_events import (
    MembersSeen,
    SessionClosed,
    SessionEffect,
    SessionEvent,
    SessionOpened,
    SessionRefused,
    StillUnwritten,
    TasksCancelled,
    TasksEnded,
)
from daws.model.cluster import Members
from daws.model.errors import ClosedError, InternalError
from daws.model.session import NO_SESSION
from daws.model.task import NodeId
from daws.runtime.loopthread import LoopThread
from daws.wire.ends import Outcome

ALIVE_S = 0.5
T = TypeVar("T")


class SessionDriver(LoopThread):
    """The session of one client, driven on a thread of its own."""

    def __init__(self, thread: str, name: str = "") -> None:
        super().__init__(thread)
        self.members = Members(0, ())
        self.session = NO_SESSION
        self.name = name
        self.tasks: Sequence[tuple[int, int]] = ()  # of the session, when this client came
        self._machine: SessionCore | None = None
        self._nonce = os.urandom(16)
        self._unwritten = 0  # tasks that the store has yet to take, when the session is closed

    # -- from any thread -----------------------------------------------------------------------------------------------

    def cancel(self, tasks: tuple[int, ...], running: bool = True) -> None:
        """Stop these tasks; with `running=False` only those that no worker has yet."""
        self._call(self._cancel if running else self._cancel_waiting, tasks)

    def use_strategy(self, text: str) -> None:
        """Change the strategy. Return when all nodes use it."""
        self._call(self._use_strategy, text)
        self.counters()  # who answers has heard of it before

    def counters(self) -> Any:
        """The counters of each node."""
        raise NotImplementedError

    def _answer_of(self, asked: "Future[T]") -> T:
        """Wait for something that the thread will say, as long as there is one."""
        while True:
            try:
                return asked.result(ALIVE_S)
            except TimeoutError:
                if self._thread is None or not self._thread.is_alive():
                    raise ClosedError("the cluster was closed before it could answer") from None

    # -- the machine ---------------------------------------------------------------------------------------------------

    def _begin(self, machine: SessionCore) -> None:
        """Drive this machine from now on."""
        self._machine = machine
        self._step(Started(self.members))

    def _step(self, *events: SessionEvent) -> None:
        """Give the machine what happened, and do what it wants."""
        if self._machine is None:
            return
        now_ns = time.monotonic_ns()
        out: list[SessionEffect] = []
        self._machine.step(now_ns, events, out)
        for effect in out:
            if isinstance(effect, Send):
                self._send(effect.to, effect.message)
            elif isinstance(effect, CallStore):
                self._call_store(effect)
            elif isinstance(effect, TasksEnded):
                self._on_ended(effect.ends)
            else:
                self._perform(effect, now_ns)

    def _perform(self, effect: SessionEffect, now_ns: int) -> None:
        if isinstance(effect, SetTimer):
            delay_s = max(0, effect.at_ns - now_ns) / 1e9
            self.loop.call_later(delay_s, self._on_timer, self._machine, TimerFired(effect.timer))
        elif isinstance(effect, SessionOpened):
            self.session, self.name = effect.session, effect.name
            self.next_task, self.tasks = effect.next_task, sorted(effect.tasks)
            self._on_opened()
        elif isinstance(effect, SessionRefused):
            self._on_refused(effect)
        elif isinstance(effect, MembersSeen):
            self._on_members(effect.members)
        elif isinstance(effect, StillUnwritten):
            self._unwritten = effect.count
        elif isinstance(effect, SessionClosed):
            self._unwritten = 0
            self._on_closed()
        else:
            self._break(InternalError(f"there is no way to carry out {effect}"))

    def _on_timer(self, machine: SessionCore | None, event: TimerFired) -> None:
        if machine is self._machine:
            self._step(event)

    # -- what the client says ------------------------------------------------------------------------------------------

    def _cancel(self, tasks: tuple[int, ...]) -> None:
        while self.new_tasks and self.members:
            self._take_in()  # the store must know of them first
        self._step(TasksCancelled(tasks))

    def _cancel_waiting(self, tasks: tuple[int, ...]) -> None:
        """Cancel those of these tasks that no worker has yet."""
        raise NotImplementedError

    def _take_in(self) -> None:
        """Take in what the client has said since the last turn."""
        raise NotImplementedError

    def _use_strategy(self, text: str) -> None:
        for node in self.members.nodes:
            self._send(node, NewStrategy(text))

    # -- the ways of calls and messages --------------------------------------------------------------------------------

    def _call_store(self, effect: CallStore) -> None:
        raise NotImplementedError

    def _send(self, node: NodeId, message: Any) -> None:
        raise NotImplementedError

    # -- what the machine says -----------------------------------------------------------------------------------------

    def _on_ended(self, outcomes: Sequence[Outcome]) -> None:
        raise NotImplementedError

    def _on_opened(self) -> None:
        """The session can be used."""
        raise NotImplementedError

    def _on_refused(self, effect: SessionRefused) -> None:
        raise NotImplementedError

    def _on_closed(self) -> None:
        """Nothing is left to do for the session."""
        raise NotImplementedError

    def _on_members(self, members: Members) -> None:
        raise NotImplementedError

    def _break(self, error: BaseException) -> None:
        """Report an error to everything that waits: nothing will come any more."""
        raise NotImplementedError
