"""The ports of a node in a cluster of many machines: the store, and the other nodes. Any of them may be gone for now.

What cannot be said is dropped: the core says again what was not answered, and asks elsewhere for what did not come.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from msgspec import msgpack

from daws.core.effects import CallStore
from daws.core.events import EventType, ObjectsFetched
from daws.data.files import ObjectFiles
from daws.model.cluster import Members
from daws.model.task import NodeId, Transfer
from daws.net.link import Link
from daws.net.links import Links
from daws.runtime.cluster.reach import Reach
from daws.runtime.ports import Outcome, StoreLink
from daws.runtime.talk import KeepFailure
from daws.runtime.transfer import ObjectSource
from daws.wire.messages import CancelTaken, MessageType, SubmissionTaken

IDLE_S = 60.0
BETWEEN_NODES: msgpack.Decoder[list[MessageType]] = msgpack.Decoder(list[MessageType])


class StoreAcross:
    """The store, as long as there is a `link` to it."""

    def __init__(self) -> None:
        self.link: StoreLink | None = None
        self.unsaid: list[EventType] = []  # every answer wakes the node
        self._failures: dict[int, bytes] = {}  # that could not be told yet

    def say(self, word: Any) -> None:
        if self.link is not None:
            self.link.say(word)

    def connected(self, link: StoreLink) -> None:
        self.link = link
        for task, failure in self._failures.items():
            link.say(KeepFailure(task, failure))
        self._failures.clear()

    def call(self, effect: CallStore, now_ns: int, events: list[EventType]) -> None:
        self.say(effect)

    def keep_failure(self, task: int, failure: bytes) -> None:
        if self.link is None:
            self._failures[task] = failure
        else:
            self.link.say(KeepFailure(task, failure))

    def settle(self) -> list[Outcome]:
        """What was said leaves at the end of the turn; the store tells of ends by itself."""
        return []


class PeersAcross:
    """Nodes are connected to when there is something to say to them; what they say comes by `happened`."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        reach: Reach,
        node: NodeId,
        files: ObjectFiles,
        store: StoreAcross,
        members: Callable[[], Members],
        happened: Callable[[list[EventType]], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._reach = reach
        self._receipts = CancelTaken if reach.is_embedded else CancelTaken | SubmissionTaken
        self._node = node
        self._files = files
        self._store = store
        self._members = members
        self._happened = happened
        self._failed = failed
        self._fetchers: dict[NodeId, SimpleQueue[tuple[Transfer, ...]]] = {}
        self._is_closed = False
        self._links: Links[MessageType] = Links(
            reach.keys,
            reach.hello(node),
            BETWEEN_NODES,
            lambda peer: self._address(peer, 0),
            self._on_messages,
            lambda peer, messages, why: None,  # if it is dead, the store will say so
            lambda peer: None,
            reach.config.idle_s,
        )

    def adopt(self, link: Link[Any]) -> None:
        """Another node has come."""
        self._links.adopt(link)

    def close(self) -> None:
        self._is_closed = True
        self._links.close()

    def send(self, to: NodeId, message: MessageType, events: list[EventType]) -> None:
        if to == self._node:
            events.append(message)
        elif to >= 0:
            self._links.say(to, message)
        elif isinstance(message, self._receipts):  # to whoever speaks for clients
            self._store.say(message)

    def _on_messages(self, peer: NodeId, messages: list[MessageType]) -> None:
        if not self._is_closed:
            self._happened(messages)  # type: ignore[arg-type]

    def _address(self, node: NodeId, which: int) -> str | None:
        info = self._members().info(node)
        return info.addresses[which] if info is not None and len(info.addresses) > which else None

    # -- objects: a thread for each node that gives us some, while it does ---------------------------------------------

    def fetch(self, wanted: Sequence[Transfer], events: list[EventType]) -> None:
        by_source: dict[NodeId, list[Transfer]] = {}
        for transfer in wanted:
            by_source.setdefault(transfer[2], []).append(transfer)
        for source, some in by_source.items():
            address = self._address(source, 1)
            if address is None:
                events.append(ObjectsFetched((), tuple(some)))
                continue
            queue = self._fetchers.get(source)
            if queue is None:
                queue = self._fetchers[source] = SimpleQueue()
                arguments = (source, address, queue)
                Thread(target=self._fetch, args=arguments, name=f"daws-fetch-{source}", daemon=True).start()
            queue.put(tuple(some))

    def _fetch(self, source: NodeId, address: str, queue: "SimpleQueue[tuple[Transfer, ...]]") -> None:
        from_there = ObjectSource(lambda: self._reach.open_stream(address, source))
        while not self._is_closed:
            try:
                wanted = queue.get(timeout=IDLE_S)
            except Empty:
                self._tell(self._retire, source, queue)
                wanted = queue.get()  # whoever asked just before; or nothing, the last word
                if not wanted:
                    break
            try:
                came = set(from_there.fetch([one[0] for one in wanted], self._files))
            except Exception as error:  # there is no room for it
                self._tell(self._failed, error)
                return
            fetched = tuple([one for one in wanted if one[0] in came])
            failed = tuple([one for one in wanted if one[0] not in came])
            self._tell(self._on_fetched, ObjectsFetched(fetched, failed))
        from_there.close()

    def _retire(self, source: NodeId, queue: "SimpleQueue[tuple[Transfer, ...]]") -> None:
        """On the loop's thread, which alone asks for objects: the last word is the last."""
        if queue.empty():
            self._fetchers.pop(source, None)
            queue.put(())

    def _tell(self, function: Callable[..., object], *what: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *what)
        except RuntimeError:  # the loop was closed meanwhile
            self._is_closed = True

    def _on_fetched(self, event: ObjectsFetched) -> None:
        if not self._is_closed:
            self._happened([event])
