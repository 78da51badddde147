"""Store and peers of a node in a process of its own: all of them are behind sockets."""

import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from socket import socket
from threading import Thread

from daws.core.effects import CallStore
from daws.core.events import EventType, ObjectsFetched
from daws.data.files import ObjectFiles
from daws.model.task import CLIENT, NodeId, Transfer
from daws.runtime.connection import Connection, accept_on, connect, listen
from daws.runtime.ports import Outcome
from daws.runtime.talk import BETWEEN_NODES, FromStore, KeepFailure, node_path, objects_path
from daws.runtime.transfer import ObjectSource
from daws.wire.messages import MessageType
from daws.workers.system import wait_for_turns


class StoreAway:
    """The answers come from the connection as events."""

    def __init__(self, connection: Connection[FromStore]) -> None:
        self.unsaid: list[EventType] = []  # every answer wakes the node
        self._connection = connection

    def call(self, effect: CallStore, now_ns: int, events: list[EventType]) -> None:
        self._connection.say(effect)

    def keep_failure(self, task: int, failure: bytes) -> None:
        self._connection.say(KeepFailure(task, failure))

    def settle(self) -> list[Outcome]:
        """What was said leaves at the end of the turn; the store tells of ends by itself."""
        return []


class PeersAway:
    """Nodes are connected to when there is something to say to them; what they say comes by `happened`."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        node: NodeId,
        run: str,
        files: ObjectFiles,
        happened: Callable[[list[EventType]], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._node = node
        self._run = run
        self._files = files
        self._happened = happened
        self._failed = failed
        self._peers: dict[NodeId, Connection[MessageType]] = {}
        self._heard: set[Connection[MessageType]] = set()
        self._fetchers: dict[NodeId, SimpleQueue[tuple[Transfer, ...]]] = {}
        accept_on(loop, listen(node_path(run, node)), self._accept)

    def send(self, to: NodeId, message: MessageType, events: list[EventType]) -> None:
        if to == self._node:
            events.append(message)
        elif to != CLIENT:  # the client's link loses nothing: it needs no receipts
            peer = self._peers.get(to) or self._connect(to)
            if peer is not None:
                peer.say(message)

    def fetch(self, wanted: Sequence[Transfer], events: list[EventType]) -> None:
        by_source: dict[NodeId, list[Transfer]] = {}
        for transfer in wanted:
            by_source.setdefault(transfer[2], []).append(transfer)
        for source, some in by_source.items():
            queue = self._fetchers.get(source)
            if queue is None:
                queue = self._fetchers[source] = SimpleQueue()
                Thread(target=self._fetch, args=(source, queue), name=f"daws-fetch-{source}", daemon=True).start()
            queue.put(tuple(some))

    # -- messages ------------------------------------------------------------------------------------------------------

    def _connect(self, to: NodeId) -> Connection[MessageType] | None:
        try:
            sock = connect(node_path(self._run, to))
        except OSError as error:  # who is gone is told to the client by others; a message may be lost
            logging.getLogger("daws").warning("node %s: a message to node %s is lost: %s", self._node, to, error)
            return None
        peer = self._peers[to] = Connection(
            self._loop, sock, BETWEEN_NODES, self._on_messages, lambda: self._forget(to), f"node {to}"
        )
        return peer

    def _forget(self, to: NodeId) -> None:
        self._peers.pop(to, None)

    def _accept(self, sock: socket) -> None:
        """Each node talks on the connections that it has made, and listens on those that others have made."""
        heard: Connection[MessageType] = Connection(
            self._loop, sock, BETWEEN_NODES, self._on_messages, lambda: self._heard.discard(heard), "another node"
        )
        self._heard.add(heard)

    def _on_messages(self, messages: list[MessageType]) -> None:
        self._happened(messages)  # type: ignore[arg-type]

    # -- objects: a thread for each node that gives us some ------------------------------------------------------------

    def _fetch(self, source: NodeId, queue: "SimpleQueue[tuple[Transfer, ...]]") -> None:
        wait_for_turns(False)  # whatever the node does that has started this thread: some executor may wait for us
        from_there = ObjectSource(lambda: connect(objects_path(self._run, source)))
        with suppress(RuntimeError):  # the loop was closed meanwhile
            while True:
                wanted = queue.get()
                try:
                    for event in from_there.fetch_patiently(wanted, self._files, self._loop.is_closed):
                        self._loop.call_soon_threadsafe(self._on_fetched, event)
                except Exception as error:
                    self._loop.call_soon_threadsafe(self._failed, error)
                    return

    def _on_fetched(self, event: ObjectsFetched) -> None:
        self._happened([event])
