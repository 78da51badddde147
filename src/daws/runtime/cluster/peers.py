"""The ports of a node in a cluster of many machines: the store, and the other nodes. Any of them may be gone for now.

Messages that cannot be sent are dropped. The core sends again what was not answered, and requests objects that did not
come from other places.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from daws.core.effects import CallStore
from daws.core.events import EventType, ObjectsFetched
from daws.data.files import ObjectFiles
from daws.model.cluster import Members
from daws.model.task import NodeId, ObjectTransfer
from daws.net.link import Link
from daws.net.links import Links
from daws.runtime.cluster.parcels import Parcels
from daws.runtime.cluster.reach import Reach
from daws.runtime.objects import ObjectSource
from daws.wire.ends import Outcome
from daws.wire.messages import CancelTaken, MessageType, SubmissionTaken
from daws.wire.objects import BETWEEN_NODES, AskObjects, BetweenNodes, GiveObjects
from daws.workers.system import wait_for_turns

IDLE_S = 60.0


class StoreAcross:
    """The store, as long as there is a connection to it. `send` sends a message to it."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self.deferred: list[EventType] = []  # every answer wakes the node
        self.send = send

    def call(self, effect: CallStore, now_ns: int, events: list[EventType]) -> None:
        self.send(effect)

    def settle(self) -> list[Outcome]:
        """Return nothing: messages are sent at the end of the turn, and the store tells of ends by itself."""
        return []


class PeersAcross:
    """The other nodes. A connection is opened when there is a message to send; received messages go to `happened`."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        reach: Reach,
        node: NodeId,
        files: ObjectFiles,
        tell_store: Callable[[Any], None],
        members: Callable[[], Members],
        happened: Callable[[list[EventType]], None],
        failed: Callable[[BaseException], None],
        acknowledge: Callable[[SubmissionTaken | CancelTaken], bool],
    ) -> None:
        """`acknowledge` sends an acknowledgement to the client that waits for it, if there is one; else it is for the
        sweeper, which is where the store is called."""
        self._loop = loop
        self._reach = reach
        self._acknowledge = acknowledge
        self._node = node
        self._files = files
        self._tell_store = tell_store
        self._members = members
        self._happened = happened
        self._failed = failed
        self._fetchers: dict[NodeId, SimpleQueue[tuple[ObjectTransfer, ...]]] = {}  # requests to threads, by node
        self._lock = Lock()  # held by a thread that ends, and for each request
        self._is_closed = False
        self._links: Links[BetweenNodes] = Links(
            reach.keys,
            reach.hello(node),
            BETWEEN_NODES,
            lambda peer: self._address(peer, 0),
            self._on_words,
            lambda peer, words, why: self._parcels.on_lost(peer),  # if it is dead, the store will say so
            lambda peer: self._parcels.on_lost(peer),
            reach.config.idle_s,
        )
        self._parcels = Parcels(
            loop,
            files,
            self._links.send,
            lambda failed: self._on_fetched(ObjectsFetched((), tuple(failed))),
            self._fetch_by_stream,
        )

    def adopt(self, link: Link[Any]) -> None:
        """Another node has come."""
        self._links.adopt(link)

    def close(self) -> None:
        self._is_closed = True
        self._parcels.close()
        self._links.close()

    def send(self, to: NodeId, message: MessageType, events: list[EventType]) -> None:
        if to == self._node:
            events.append(message)
        elif to >= 0:
            self._links.send(to, message)
        elif isinstance(message, SubmissionTaken | CancelTaken) and not self._acknowledge(message):
            self._tell_store(message)

    def _on_words(self, peer: NodeId, words: list[BetweenNodes]) -> None:
        events: list[EventType] = []
        for word in words:
            if self._is_closed:
                return
            if word.__class__ is AskObjects:
                self._parcels.on_ask(peer, word)
            elif word.__class__ is GiveObjects:
                came = self._parcels.on_give(peer, word)
                if came:
                    events.append(ObjectsFetched(tuple(came)))
            else:
                events.append(word)  # type: ignore[arg-type]
        if events and not self._is_closed:
            self._happened(events)

    def _address(self, node: NodeId, which: int) -> str | None:
        info = self._members().info(node)
        return info.addresses[which] if info is not None and len(info.addresses) > which else None

    # -- objects: small ones on the links, large ones by a thread for each node that we fetch from --------------------

    def fetch(self, wanted: Sequence[ObjectTransfer], events: list[EventType]) -> None:
        small: dict[NodeId, list[ObjectTransfer]] = {}
        large: dict[NodeId, list[ObjectTransfer]] = {}
        for transfer in wanted:
            kind = small if self._parcels.takes(transfer) else large
            kind.setdefault(transfer.source, []).append(transfer)
        for source, some in small.items():
            self._parcels.ask(source, some)
        for source, some in large.items():
            self._fetch_by_stream(source, some)

    def _fetch_by_stream(self, source: NodeId, wanted: list[ObjectTransfer]) -> None:
        address = self._address(source, 1)
        if address is None:
            self._loop.call_soon(self._on_fetched, ObjectsFetched((), tuple(wanted)))
            return
        with self._lock:
            queue = self._fetchers.get(source)
            if queue is None:
                queue = self._fetchers[source] = SimpleQueue()
                arguments = (source, address, queue)
                Thread(target=self._fetch, args=arguments, name=f"daws-fetch-{source}", daemon=True).start()
            queue.put(tuple(wanted))

    def _fetch(self, source: NodeId, address: str, queue: "SimpleQueue[tuple[ObjectTransfer, ...]]") -> None:
        """Fetch objects from a node, until there was no request for IDLE_S."""
        wait_for_turns(False)  # unlike the thread that has started this one: an executor may wait for us
        from_there = ObjectSource(lambda: self._reach.open_stream(address, source))
        while not self._is_closed:
            try:
                wanted = queue.get(timeout=IDLE_S)
            except Empty:
                with self._lock:
                    if queue.empty():
                        del self._fetchers[source]
                        break
                continue
            try:
                for event in from_there.fetch_patiently(wanted, self._files, lambda: self._is_closed):
                    self._tell(self._on_fetched, event)
            except Exception as error:  # there is no room for it, and none was made
                self._tell(self._failed, error)
                return
        from_there.close()

    def _tell(self, function: Callable[..., object], *what: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *what)
        except RuntimeError:  # the loop was closed meanwhile
            self._is_closed = True

    def _on_fetched(self, event: ObjectsFetched) -> None:
        if not self._is_closed:
            self._happened([event])
