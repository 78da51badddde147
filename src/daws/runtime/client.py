"""The driver of a session: gives its machine (`SessionCore`) what happened, and carries out what it wants.

The machine decides what is written, sent, repeated and read. How calls reach the store, and messages the nodes, is the
business of the clusters: in this process (`runtime.thread`), or on links (`runtime.cluster.joined`).
"""

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from errno import EMFILE, ENFILE
from typing import Any

import uvloop

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
from daws.data.codec import Packed
from daws.model.cluster import Members
from daws.model.errors import ClosedError, InternalError, UnavailableError
from daws.model.session import NO_SESSION
from daws.model.task import NodeId
from daws.wire.ends import Outcome
from daws.wire.notes import Counters
from daws.wire.store import Submit

ALIVE_S = 0.5


class SessionDriver:
    """Nodes and a store, as the session of one client knows them. The session is driven on a thread of its own: any
    thread may append to `new_tasks` and `let_go` and call `wake`."""

    loop: asyncio.AbstractEventLoop  # of the thread, once it runs

    def __init__(self, thread: str, name: str = "") -> None:
        """`thread` is the name of the thread, `name` that of the session."""
        self.new_tasks: deque[Submit] = deque()  # and `PlainTask`s, where the node is in this process
        self.let_go: deque[int] = deque()
        self.awake = False
        self.next_task = 0  # the first number for tasks and functions, once it has started
        self.members = Members(0, ())
        self.session = NO_SESSION
        self.name = name
        self.tasks: Sequence[tuple[int, int]] = ()  # of the session, when this client came
        self._machine: SessionCore | None = None
        self._nonce = os.urandom(16)
        self._unwritten = 0  # tasks that the store has yet to take, when the session is closed
        self._thread_name = thread
        self._thread: threading.Thread | None = None
        self._ident = 0  # of the thread while it runs
        self._ready = threading.Event()  # tasks can be taken, or never will be because of `_broken`
        self._broken: BaseException | None = None

    # -- from any thread -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the cluster. Return when workers can take tasks."""
        thread = self._thread = threading.Thread(target=self._run, name=self._thread_name, daemon=True)
        try:
            thread.start()
            self._ready.wait()
        except BaseException:  # Ctrl-C, perhaps while the thread begins: what has begun to start ends in good order
            if self._ready.wait(ALIVE_S) or thread.is_alive():
                self._ready.wait()
                self.stop()
            raise
        if self._broken is not None:
            thread.join()
            raise self._broken

    def stop(self) -> None:
        """End everything. Tasks that have not ended never will."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return
        self._call(self.loop.stop)
        thread.join()
        self._thread = None  # keep no reference to a thread that has ended

    def wake(self) -> None:
        self.awake = True
        try:
            self._call(self._turn)
        except BaseException:  # Ctrl-C: else no call would ever wake it again
            self.awake = False
            raise

    @property
    def is_here(self) -> bool:
        """Is this the thread that brings the results?"""
        return self._ident == threading.get_ident()

    def catch_up(self) -> None:
        """Return when the thread has done what it is doing now, with the callbacks of tasks that have ended."""
        done = threading.Event()
        self._call(done.set)
        while not done.wait(ALIVE_S) and self._thread is not None and self._thread.is_alive():
            pass

    def learn(self, function: int, pickled: bytes) -> None:
        """Learn a function. This has to be called before the first task of that kind is submitted."""
        raise NotImplementedError

    def cancel(self, tasks: tuple[int, ...], running: bool = True) -> None:
        """Stop these tasks; with `running=False` only those that no worker has yet."""
        self._call(self._cancel if running else self._cancel_waiting, tasks)

    def started(self) -> set[int]:
        """The tasks that workers have, or that are on their way to them. Not to be called on the thread itself, unless
        the node is there."""
        raise NotImplementedError

    def store_object(self, object_: int, packed: Packed, home: NodeId) -> tuple[NodeId, ...]:
        """Write an object from outside where `home` has its own; returns its places. Submit it then."""
        raise NotImplementedError

    def load(self, object_: int, places: tuple[NodeId, ...]) -> Any:
        """The value of an object that lies in a file."""
        raise NotImplementedError

    def bring(self, object_: int, places: tuple[NodeId, ...]) -> str:
        """The path at which an object that is a file itself can be read."""
        raise NotImplementedError

    def fetch(self, object_: int, places: tuple[NodeId, ...]) -> None:
        """Fetch an object into the client's own files; `read_and_drop` it then."""
        raise NotImplementedError

    def outcome_of(self, task: int) -> Outcome:
        """How a task has ended, as the store knows it now: its objects may be on other nodes by now."""
        raise NotImplementedError

    def counters(self) -> list[Counters]:
        """The counters of each node."""
        raise NotImplementedError

    def use_strategy(self, text: str) -> None:
        """Change the strategy. Return when all nodes use it. The text was checked before."""
        self._call(self._use_strategy, text)
        self.counters()  # a node that answers has received the change

    def _call(self, function: Callable[..., object], *args: object) -> None:
        try:  # noqa: SIM105 (each submission comes here: `suppress` would take three calls more)
            self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            pass  # another thread has closed the loop, and has told all waiting threads

    def _answer(self, ask: Callable[..., object], *args: object) -> Any:
        """Have the thread call `ask(*args, future)`, and wait for the answer as long as one may come."""
        answer: Future[Any] = Future()
        self._call(ask, *args, answer)
        while self._broken is None:
            has_thread = self._thread is not None and self._thread.is_alive()
            with suppress(TimeoutError):
                return answer.result(ALIVE_S)
            if not has_thread:
                raise ClosedError("the cluster was closed before it could answer")
        raise self._broken

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Run the thread. If it cannot even open an event loop, `start` raises the error."""
        self._ident = threading.get_ident()
        try:
            loop = self.loop = uvloop.new_event_loop()
            asyncio.set_event_loop(loop)
            loop.set_exception_handler(self._on_exception)
            try:
                loop.run_until_complete(self._open())
                self._ready.set()
                loop.run_forever()
            except BaseException as error:
                if self._ready.is_set():
                    self._break(error)  # nobody may wait for what will not come
                else:
                    self._broken = self._broken or error
                raise
            finally:
                try:
                    loop.run_until_complete(self._close())
                finally:
                    loop.close()
        except BaseException as error:
            if self._ready.is_set():
                raise
            self._broken = self._broken or error
            if isinstance(error, OSError) and error.errno in (EMFILE, ENFILE):
                self._broken = UnavailableError(f"{error.strerror}; raise the limit (ulimit -n)", retry=True)
                self._broken.__cause__ = error
        finally:
            self._ident = 0
            self._ready.set()

    async def _open(self) -> None:
        """Return when tasks can be taken."""
        raise NotImplementedError

    async def _close(self) -> None:
        """End everything, also what `_open` has begun before it failed."""
        raise NotImplementedError

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an exception that a callback of the loop has raised."""
        self._break(context.get("exception") or InternalError(str(context)))

    def _break(self, error: BaseException) -> None:
        """Report an error to everything that waits: nothing will come any more."""
        raise NotImplementedError

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
            if type(effect) is Send:
                self._send(effect.to, effect.message)
            elif type(effect) is CallStore:
                self._call_store(effect)
            elif type(effect) is TasksEnded:
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

    def _turn(self) -> None:
        """Take in what the client has said since the last turn, now or soon."""
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

    def _on_refused(self, effect: SessionRefused) -> None:
        raise NotImplementedError

    def _on_closed(self) -> None:
        """Nothing is left to do for the session."""

    def _on_members(self, members: Members) -> None:
        """The store knows other members than before."""
