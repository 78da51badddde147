"""Small objects between nodes: requested and sent on the link that both nodes have anyway.

A stream has to be opened, and needs a thread on either side. For an object of some kilobytes that costs many times as
much as the object itself. An object that cannot be sent here (it is large after all, on disk, or gone) is withheld, and
is requested by stream. The number of bytes that may be on their way from one node is limited, so that other messages
need not wait for them.

All of this happens on the thread of the loop, so nothing here may wait for a disk.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from daws.data.files import ObjectFiles
from daws.model.errors import UnavailableError
from daws.model.task import NodeId, ObjectTransfer
from daws.wire.objects import AskObjects, GiveObjects

SMALL_BYTES = 64 * 1024
"""Larger objects are worth a stream, and would delay other messages."""
WINDOW_BYTES = 1 << 20
"""How much may be requested from one node and not yet received."""
SILENT_S = 15.0
"""A node that sends nothing for this long after a request does not have the object."""


class Parcels:
    """Requests for small objects. `say` sends a message to a node. `on_give` takes the answers. `failed` is called if
    the node is gone or silent, and `withheld` with objects to request by stream."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        files: ObjectFiles,
        say: Callable[[NodeId, Any], None],
        failed: Callable[[list[ObjectTransfer]], None],
        withheld: Callable[[NodeId, list[ObjectTransfer]], None],
    ) -> None:
        self._loop = loop
        self._files = files
        self._say = say
        self._failed = failed
        self._withheld = withheld
        self._suppliers: dict[NodeId, _Supplier] = {}  # those from whom something is to come
        self._watch: TimerHandle | None = None

    def takes(self, transfer: ObjectTransfer) -> bool:
        """Is this an object to be asked for here? Where memory is scarce, room may have to be made on disk."""
        return transfer.size_bytes <= min(SMALL_BYTES, self._files.held_bytes_max) and not self._files.is_high

    def ask(self, source: NodeId, wanted: Sequence[ObjectTransfer]) -> None:
        supplier = self._suppliers.get(source)
        if supplier is None:
            supplier = self._suppliers[source] = _Supplier(self._loop.time())
            if self._watch is None:
                self._watch = self._loop.call_later(SILENT_S, self._on_watch)
        supplier.waiting.extend(wanted)
        self._go_on(source, supplier)

    def on_ask(self, peer: NodeId, word: AskObjects) -> None:
        given: list[tuple[int, bytes]] = []
        withheld: list[int] = []
        room = WINDOW_BYTES + SMALL_BYTES  # no node requests more at a time
        for object_ in word.objects:
            content = self._content(object_)
            if content is None or len(content) > room:
                withheld.append(object_)
            else:
                room -= len(content)
                given.append((object_, content))
        self._say(peer, GiveObjects(tuple(given), tuple(withheld)))

    def on_give(self, peer: NodeId, word: GiveObjects) -> list[ObjectTransfer]:
        """Put the objects of an answer into the files, and return them."""
        supplier = self._suppliers.get(peer)
        if supplier is None:
            return []  # it was given up
        supplier.heard_s = self._loop.time()
        came: list[ObjectTransfer] = []
        withheld: list[ObjectTransfer] = []
        for object_, content in word.given:
            transfer = supplier.take(object_)
            if transfer is not None and 0 < len(content) <= SMALL_BYTES:
                self._files.hold(object_, content)
                came.append(transfer)
            elif transfer is not None:
                withheld.append(transfer)
        for object_ in word.withheld:
            transfer = supplier.take(object_)
            if transfer is not None:
                withheld.append(transfer)
        self._go_on(peer, supplier)
        if withheld:
            self._withheld(peer, withheld)
        return came

    def on_lost(self, peer: NodeId) -> None:
        """Nothing more will come from there."""
        supplier = self._suppliers.pop(peer, None)
        if supplier is not None:
            self._failed([*supplier.asked.values(), *supplier.waiting])

    def close(self) -> None:
        self._suppliers.clear()
        if self._watch is not None:
            self._watch.cancel()

    def _go_on(self, source: NodeId, supplier: "_Supplier") -> None:
        objects = supplier.next()
        if objects:
            self._say(source, AskObjects(objects))
        elif not supplier.asked:
            del self._suppliers[source]

    def _content(self, object_: int) -> bytes | None:
        """None if it is to be had by stream at best."""
        try:
            return self._files.content(object_) if self._files.size_bytes(object_) <= SMALL_BYTES else None
        except UnavailableError:
            return None

    def _on_watch(self) -> None:
        self._watch = None
        limit_s = self._loop.time() - SILENT_S
        for peer in [peer for peer, supplier in self._suppliers.items() if supplier.heard_s <= limit_s]:
            self.on_lost(peer)
        if self._suppliers and self._watch is None:
            first_s = min([supplier.heard_s for supplier in self._suppliers.values()])
            self._watch = self._loop.call_at(first_s + SILENT_S, self._on_watch)


class _Supplier:
    """A node that was asked for objects: those on their way, and those that it has not been asked for yet."""

    __slots__ = ("asked", "asked_bytes", "heard_s", "waiting")

    def __init__(self, now_s: float) -> None:
        self.asked: dict[int, ObjectTransfer] = {}
        self.asked_bytes = 0
        self.waiting: deque[ObjectTransfer] = deque()
        self.heard_s = now_s

    def next(self) -> tuple[int, ...]:
        """Move on to the next objects, as many as may be requested now, and return them."""
        objects: list[int] = []
        while self.waiting and self.asked_bytes < WINDOW_BYTES:
            transfer = self.waiting.popleft()
            if transfer.object not in self.asked:
                self.asked[transfer.object] = transfer
                self.asked_bytes += transfer.size_bytes
                objects.append(transfer.object)
        return tuple(objects)

    def take(self, object_: int) -> ObjectTransfer | None:
        """Forget a request: its object has come, or will not come this way. None if it was not requested, or has come
        before."""
        transfer = self.asked.pop(object_, None)
        if transfer is not None:
            self.asked_bytes -= transfer.size_bytes
        return transfer
