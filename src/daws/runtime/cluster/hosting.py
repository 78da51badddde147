"""A node of a cluster in a process of its own, from its start to its farewell.

The process outlives its incarnations: one that was declared dead ends with its workers and its objects, and the process
begins anew under the next number. While the store is away the workers go on, and the node tries to reach it again.
"""

import asyncio
import logging
import signal
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from functools import partial
from typing import Any

import uvloop

from daws.core import view
from daws.core.events import EventType, Leave, NewStrategy
from daws.data.files import ObjectFiles
from daws.data.session import SessionFolders as Folders
from daws.logs import set_place
from daws.model.cluster import Members
from daws.model.errors import UnavailableError
from daws.model.session import owner_of, session_of
from daws.model.task import FROM_OUTSIDE, NO_TASK, NOBODY, NodeId
from daws.net.link import Link
from daws.runtime.cluster.access import StoreConnection
from daws.runtime.cluster.clients import ClientLinks
from daws.runtime.cluster.noting import SessionNotes
from daws.runtime.cluster.peers import PeersAcross, StoreAcross
from daws.runtime.cluster.reach import Reach
from daws.runtime.crew import config_of
from daws.runtime.engine import Engine
from daws.runtime.objects import ObjectGiver
from daws.runtime.ports import StoreLink
from daws.strategy import parse_strategy
from daws.strategy.decisions import Strategy
from daws.wire.cluster import AskEnds, AskFunction, Ends, Enrol, Enrolled, Forgotten, FromStore, OpenSessions, Refused
from daws.wire.crew import Crew
from daws.wire.ends import Outcome
from daws.wire.messages import MessageType
from daws.wire.notes import FactType, News
from daws.wire.session import Counted, TaskPrinted
from daws.wire.worker import Learn

SIGNALS_S = 2.0
"""Signals within this time count as one: batch systems send SIGTERM twice within milliseconds."""
FAREWELL_S = 10.0
"""The time after its deadline after which a node that cannot say farewell goes without."""

LEFT = "left"
STRUCK = "struck"
STOPPED = "stopped"
log = logging.getLogger("daws.node")


class NodeHost:
    """All methods belong to the thread of the loop. `bind` is the address of this machine for others; a port is
    chosen."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        reach: Reach,
        crew: Crew,
        bind: str,
        limit_bytes: int | None = None,
        store_is_away: Callable[[], None] = lambda: None,
        strategy: Strategy | None = None,
        journal: str = "",
        folders: Folders | None = None,
        opened: Callable[[NodeId], None] = lambda node: None,
    ) -> None:
        """`store_is_away` is called when the store does not answer: whoever can may start it. `strategy` is used in the
        place of the store's, until that changes. With `journal`, a folder, each incarnation writes a journal at its
        end. Objects lie in `folders`, or in new ones. `opened` is called when an incarnation can take tasks."""
        self.node: NodeId = NOBODY
        self._loop = loop
        self._reach = reach
        self._crew = crew
        self._bind = bind
        self._limit_bytes = limit_bytes
        self._strategy = strategy
        self._journal = journal
        self._folders = Folders() if folders is None else folders
        self._opened = opened
        self._store = StoreConnection(reach, self, log, self._say_what_was_missed, self._fail, store_is_away)
        self._life: Incarnation | None = None
        self._enrolled: Future[Enrolled] = loop.create_future()
        self._over: Future[str] = loop.create_future()
        self.is_leaving = False
        self._chosen = ""  # the strategy that was told last, as text
        self._seen = ""  # the one that stands in the members

    async def run(self) -> str:
        """Run the node. Return when it has left or was stopped."""
        self._store.open()
        try:
            while True:
                ended = await self._live()
                if ended != STRUCK or self.is_leaving:  # it may have been told to leave while that life was closed
                    log.info("the node has %s", "left in good order" if ended == LEFT else "stopped")
                    return ended
                log.warning("node %s was declared dead, and begins anew", self.node)
        finally:
            await self._store.close()
            self._folders.close()

    def leave(self, within_s: float) -> None:
        """Leave in good order, and be gone after so many seconds in any case."""
        self.is_leaving = True
        log.info("the node leaves within %g s", within_s)
        if self._life is None:
            self.stop()
            return
        self._life.engine.happened([Leave(time.monotonic_ns() + int(within_s * 1e9))])
        self._loop.call_later(within_s + FAREWELL_S, self.stop)

    def stop(self) -> None:
        """Go at once; others take over."""
        self._end(STOPPED)

    def on_printed(self, stream: int, text: bytes, task: int = NO_TASK) -> None:
        if self._life is not None:
            self._life.clients.send_printed(TaskPrinted(task, stream, text))

    def _end(self, how: str) -> None:
        if not self._over.done():
            self._over.set_result(how)

    def _fail(self, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(error)

    # -- one incarnation -----------------------------------------------------------------------------------------------

    async def _live(self) -> str:
        self.node = NOBODY
        self._over = self._loop.create_future()
        self._enrolled = self._loop.create_future()
        self._store.send(Enrol())
        first: list[Future[Any]] = [self._enrolled, self._over]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not self._enrolled.done():
            return self._over.result()
        enrolled = self._enrolled.result()
        self.node = enrolled.node
        self._chosen = self._seen = enrolled.strategy
        set_place(node=self.node)
        life = Incarnation(self, enrolled)
        try:
            await life.open()
            self._life = life
            life.engine.begin(Members(0, ()))
            life.take_notes()
            self._opened(self.node)
            return await self._over
        finally:
            self._life = None
            await life.close()

    # -- the store -----------------------------------------------------------------------------------------------------

    def waits_for(self) -> list[int]:
        return [] if self._life is None else self._life.engine.nesting.unheard()

    def tell_node(self, node: NodeId, message: MessageType) -> None:
        if self._life is not None:
            self._life.tell(node, message)

    def client_of(self, session: int) -> Link[Any] | None:
        return None if self._life is None else self._life.clients.link_of(session)

    def _say_what_was_missed(self, link: StoreLink) -> None:
        link.send(Enrol(self.node))
        if self._life is not None:
            engine = self._life.engine
            for function in engine.functions.held_back:
                link.send(AskFunction(function))
            unheard = engine.nesting.unheard()
            if unheard:
                link.send(AskEnds(unheard))

    def on_store(self, said: list[FromStore]) -> None:
        events: list[EventType] = []
        for word in said:
            if isinstance(word, Enrolled):
                if not self._enrolled.done():
                    self._enrolled.set_result(word)
            elif isinstance(word, Refused):
                self._fail(UnavailableError(word.reason, retry=False))
            elif self._life is None:
                continue  # it is about an incarnation that is over
            elif isinstance(word, Ends):
                self._life.engine.on_ended(word.outcomes)
            elif isinstance(word, Forgotten):
                engine = self._life.engine
                engine.nesting.on_forgotten(word.tasks)
                engine.happened([*engine.functions.give_up(word.tasks, engine.runs)])
            elif isinstance(word, Learn):
                self._life.engine.learn(word.function, word.pickled)
            elif isinstance(word, OpenSessions):
                self._forget(set(word.sessions))
            else:
                events.append(word)  # type: ignore[arg-type]
        if events:
            self.happened(events)
        if self._life is not None:
            self._look_at_strategy(view.members(self._life.engine.core).strategy)

    def _look_at_strategy(self, chosen: str) -> None:
        """The members say which strategy was chosen. Most often the client that chose it has told it before."""
        before, self._seen = self._seen, chosen
        if chosen != before and chosen not in ("", self._chosen):
            self.happened([NewStrategy(chosen)])

    def happened(self, events: list[EventType]) -> None:
        """The store or a client has told the node something."""
        for event in events:
            if isinstance(event, NewStrategy):
                self._strategy = None  # later incarnations use the store's
                self._chosen = event.text
        if self._life is not None:
            self._life.engine.happened(events)

    def _forget(self, open_: set[int]) -> None:
        """Let go of functions of sessions that have ended. A failover may have hidden a session: ask again for what it
        has yet to bring."""
        if self._life is not None:
            self._life.engine.forget(lambda root: session_of(root) not in open_)
            for function in self._life.engine.functions.held_back:
                if owner_of(function, FROM_OUTSIDE) in open_:
                    self._store.send(AskFunction(function))


class Incarnation:
    """One life of a node: an engine with its workers and objects, and where others find them."""

    def __init__(self, host: NodeHost, enrolled: Enrolled) -> None:
        self.node = enrolled.node
        self._host = host
        self._enrolled = enrolled
        self._closing: list[Callable[[], None]] = []
        learn = partial(host._store.learn, self.node)
        self.clients = ClientLinks(host.happened, self._counted, host.leave, self.take_notes, learn)
        self.notes = SessionNotes(self.clients.wishes, self.clients.send)

    async def open(self) -> None:
        host, reach = self._host, self._host._reach
        memory, scratch = host._folders.part(f"node-{self.node}")
        files = ObjectFiles(memory, scratch, host._limit_bytes)
        streams = reach.serve_streams(host._bind, ObjectGiver(files), self.node)
        self._closing.append(streams.close)
        self._peers = PeersAcross(
            host._loop,
            reach,
            self.node,
            files,
            host._store.send,
            lambda: view.members(self.engine.core),
            self._on_messages,
            self.on_broken,
            self.clients.acknowledge,
        )
        self._closing.append(self._peers.close)
        door = await reach.serve(host._bind, self._welcome, self.node)
        self._closing.append(door.close)
        self.engine = Engine(
            self.node,
            host._crew,
            host._strategy or parse_strategy(self._enrolled.strategy),
            files,
            StoreAcross(host._store.send),
            self._peers,
            self,
            host._journal,
            addresses=(door.address, streams.address),
            config=config_of(
                files.limit_bytes, self._enrolled.lease_ns, not reach.is_embedded, self._enrolled.shard_count
            ),
        )
        self.engine.want = lambda function: host._store.send(AskFunction(function))
        self.engine.nesting.ask = lambda tasks: host._store.send(AskEnds(tasks, have_ended=True))
        self.engine.struck = lambda reason: host._end(STRUCK)
        self.engine.departed = self._on_departed
        host._loop.set_exception_handler(self.engine.on_exception)
        await self.engine.open(host._loop)
        slots = host._crew.slots
        log.info("%s executor%s, at %s", slots, "s" * (slots != 1), door.address)

    async def close(self) -> None:
        for close in self._closing:
            close()
        if hasattr(self, "engine"):
            try:
                await self.engine.close()
            finally:
                self.clients.close()  # workers may have printed last lines

    def _welcome(self, link: Link[Any]) -> None:
        """Another node has come, or a client."""
        if link.peer.role == "node":
            self._peers.adopt(link)
        else:
            self.clients.welcome(link)

    def take_notes(self) -> None:
        """Take the notes on runs and decisions that clients ask for."""
        runs, decisions = self.clients.wishes()
        crew = self._host._crew
        self.engine.take_notes(crew.tells_runs or bool(runs), crew.explains or bool(decisions))

    def _counted(self, number: int) -> Counted:
        return Counted(self.engine.counters(), [*self.engine.started()], number)

    def tell(self, node: NodeId, message: MessageType) -> None:
        events: list[EventType] = []
        self._peers.send(node, message, events)
        if events:
            self._on_messages(events)

    def _on_messages(self, events: list[EventType]) -> None:
        if self._host._life is self:
            self.engine.happened(events)

    def _on_departed(self, behind: str) -> None:
        if behind:
            log.warning("node %s has left behind: %s", self.node, behind)
        self._host._end(LEFT)

    # -- what the engine says ------------------------------------------------------------------------------------------

    def on_ended(self, outcomes: list[Outcome]) -> None:
        """The server of the store tells the client."""

    def on_printed(self, stream: int, text: bytes, task: int) -> None:
        self._host.on_printed(stream, text, task)

    def on_ran(self, news: News) -> None:
        self.notes.ran(news, self.engine.functions)

    def on_fact(self, fact: FactType) -> None:
        self.notes.learnt(fact)

    def on_broken(self, error: BaseException) -> None:
        if self._host._life in (None, self):  # else another life has begun, which is whole
            self._host._fail(error)


def run_node(
    reach: Reach,
    crew: Crew,
    bind: str,
    limit_bytes: int | None,
    leave_within_s: float,
    store_is_away: Callable[[], None],
) -> str:
    """A node on the main thread of this process, until it has left. SIGTERM and SIGINT have it leave in good order, and
    so does the end of its terminal (SIGHUP), unless that is ignored (nohup). A signal that comes seconds later ends it
    at once."""
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    host = NodeHost(loop, reach, crew, bind, limit_bytes, store_is_away)

    first_s = 0.0

    def on_signal() -> None:
        nonlocal first_s
        if not host.is_leaving:
            first_s = time.monotonic()
            host.leave(leave_within_s)
        elif time.monotonic() - first_s > SIGNALS_S:
            host.stop()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, on_signal)
    try:
        return loop.run_until_complete(host.run())
    finally:
        loop.close()
