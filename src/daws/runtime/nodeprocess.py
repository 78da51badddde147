"""A node in a process of its own. It ends when the client says so or is gone."""

import pickle
from asyncio import AbstractEventLoop
from contextlib import suppress
from socket import socket

from daws.core.events import EventType
from daws.data.files import ObjectFiles
from daws.model.errors import UnavailableError
from daws.runs.facts import FactType
from daws.runs.notes import News
from daws.runtime.away import PeersAway, StoreAway
from daws.runtime.connection import Connection, connect, listen
from daws.runtime.engine import Engine
from daws.runtime.journals import write_journal
from daws.runtime.ports import Outcome
from daws.runtime.talk import (
    FROM_STORE,
    TO_NODE,
    Adopt,
    Adopted,
    BeNode,
    Broken,
    Count,
    Counted,
    Ends,
    FromStore,
    Go,
    Hello,
    Learnt,
    Ran,
    Said,
    Stop,
    ToNode,
    Up,
    objects_path,
    store_path,
)
from daws.runtime.transfer import ObjectServer
from daws.wire.worker import Learn
from daws.workers.failures import failure_of
from daws.workers.logs import Logs
from daws.workers.sharedstreams import share_logs, share_streams

STORE_GONE_S = 1.0


class NodeServer:
    def __init__(self, loop: AbstractEventLoop, begin: BeNode, client: socket) -> None:
        self.begin = begin
        self.files = ObjectFiles(begin.memory or None, begin.scratch, begin.limit_bytes or None)
        self._logs: Logs | None = None
        if begin.crew.kind == "threads":
            share_streams()
            self._logs = share_logs(f"node-{begin.node}", self._on_logged)
        strategy = pickle.loads(begin.strategy)
        self._loop = loop
        self._client: Connection[ToNode] = Connection(loop, client, TO_NODE, self._on_client, loop.stop, "the client")
        store = Connection(
            loop, connect(store_path(begin.run)), FROM_STORE, self._on_store, self._on_store_gone, "the store"
        )
        store.say(Hello(begin.node))
        self.objects = ObjectServer(listen(objects_path(begin.run, begin.node)), self.files)
        peers = PeersAway(loop, begin.node, begin.run, self.files, self._happened, self.on_broken)
        self.engine = Engine(
            begin.node, begin.crew, strategy, self.files, StoreAway(store), peers, self, bool(begin.journal)
        )
        self.engine.spread = lambda function, pickled: self._client.say(Learn(function, pickled))
        loop.set_exception_handler(self.engine.on_exception)

    async def start(self) -> None:
        """Whatever goes wrong is told to the client."""
        try:
            await self.engine.open(self._loop)
        except Exception as error:
            self.on_broken(error)
        else:
            self._client.say(Up())

    async def close(self) -> None:
        if self._logs is not None:
            self._logs.tell_lost()
        await self.engine.close()
        if self.engine.journal is not None:
            write_journal(self.begin.journal, self.engine.journal)

    # -- what the others say -------------------------------------------------------------------------------------------

    def _happened(self, events: list[EventType]) -> None:
        self.engine.happened(events)

    def _on_client(self, messages: list[ToNode]) -> None:
        events: list[EventType] = []
        for message in messages:
            if isinstance(message, Learn):
                self.engine.learn(message.function, message.pickled)
            elif isinstance(message, Go):
                self.engine.begin(message.members)
            elif isinstance(message, Count):
                self._client.say(Counted(self.engine.counters(), [*self.engine.started()]))
            elif isinstance(message, Adopt):
                self.files.adopt(message.object, message.path, message.size_bytes)
                self._client.say(Adopted(message.object))
            elif isinstance(message, Stop):
                self._loop.stop()
            else:
                events.append(message)
        if events:
            self.engine.happened(events)

    def _on_store(self, messages: list[FromStore]) -> None:
        events: list[EventType] = []
        for message in messages:
            if isinstance(message, Ends):
                self.engine.on_ended(message.outcomes)
            else:
                events.append(message)  # type: ignore[arg-type]
        if events:
            self.engine.happened(events)

    def _on_store_gone(self) -> None:
        """If it has died, the fork server tells the client, and why; else we do."""
        error = UnavailableError(f"node {self.begin.node} has lost its connection to the store", retry=False)
        self._loop.call_later(STORE_GONE_S, self.on_broken, error)

    # -- what the engine says ------------------------------------------------------------------------------------------

    def on_ended(self, outcomes: list[Outcome]) -> None:
        """The store tells the client."""

    def on_printed(self, stream: int, text: bytes, task: int) -> None:
        self._client.say(Said(stream, text, task))

    def _on_logged(self, what: int, text: bytes) -> None:
        """By a thread that runs no task."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.on_printed, what, text, -1)

    def on_ran(self, news: News) -> None:
        self._client.say(Ran(news))

    def on_fact(self, fact: FactType) -> None:
        self._client.say(Learnt(fact))

    def on_broken(self, error: BaseException) -> None:
        self._client.say(Broken(failure_of(error)))
