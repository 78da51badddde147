"""One link for each peer: opened when there is a message to send, closed when it was not used for a while.

A message may be lost, as in any network. Messages that surely were not delivered are reported, always in a later turn
of the loop.
"""

import asyncio
from asyncio import Task
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import msgpack

from daws.model.errors import DawsError, UnavailableError
from daws.net.door import dial
from daws.net.handshake import Hello
from daws.net.keys import Keys
from daws.net.link import Link

WAITING_MAX = 100_000
"""The most messages that wait for one peer while it is dialled."""
FAREWELL_S = 10.0
BACKOFF_S = 0.1
BACKOFF_S_MAX = 5.0
T = TypeVar("T")


class Links(Generic[T]):
    """The links of one process to its peers, by number of node.

    `address_of` returns the address of a peer (None: unknown). `received` gets the messages of a peer. `undelivered`
    gets messages that could not be delivered to a peer, and the reason. `lost` gets the peer whose link broke.
    """

    def __init__(
        self,
        keys: Keys | None,
        hello: Hello,
        decoder: "msgpack.Decoder[list[T]]",
        address_of: Callable[[int], str | None],
        received: Callable[[int, list[T]], None],
        undelivered: Callable[[int, list[Any], str], None],
        lost: Callable[[int], None],
        idle_s: float,
    ) -> None:
        self.received = received
        self._loop = asyncio.get_running_loop()
        self._keys = keys
        self._hello = hello
        self._decoder = decoder
        self._address_of = address_of
        self._undelivered = undelivered
        self._lost = lost
        self._links: dict[int, Link[T]] = {}  # by peer: the link on which it is told things
        self._all: dict[Link[T], int] = {}  # these, and those on which peers are only listened to; sweeps without use
        self._away: dict[int, _Away] = {}  # peers that are being dialled, or were not reached
        self._sweep_s = idle_s / 2
        self._sweep = self._loop.call_later(self._sweep_s, self._on_sweep)
        self._is_closed = False

    @property
    def count(self) -> int:
        """How many links are open."""
        return len(self._all)

    def send(self, peer: int, message: Any) -> None:
        """Send a message to a peer. It leaves at the end of this turn of the loop, or when the peer is connected."""
        link = self._links.get(peer)
        if link is not None:
            self._all[link] = 0
            link.send(message)
        elif not self._is_closed:
            away = self._away.get(peer)
            if away is None:
                away = self._away[peer] = _Away()
            if away.dialling is None:
                away.dialling = self._loop.create_task(self._reach(peer, away))
            if len(away.waiting) < WAITING_MAX:
                away.waiting.append(message)
            else:
                why = f"{WAITING_MAX:,} messages wait for it already"
                self._loop.call_soon(self._undelivered, peer, [message], why)

    def adopt(self, link: Link[T]) -> None:
        """Add a link that a peer has opened. Messages to this peer use it unless there is another link already."""
        self._begin(link)
        self._add(link)

    def forget(self, peer: int) -> None:
        """Drop a peer that is gone for good: nothing is reported about it any more, and none of its messages will be
        received."""
        away = self._away.pop(peer, None)
        if away is not None and away.dialling is not None:
            away.dialling.cancel()
        self._links.pop(peer, None)
        for link in [link for link in self._all if link.peer.node == peer]:
            del self._all[link]
            link.abort()

    def close(self) -> None:
        """Write the messages that wait in open links, and close all links. Nothing is reported any more."""
        self._is_closed = True
        self._sweep.cancel()
        for away in self._away.values():
            if away.dialling is not None:
                away.dialling.cancel()
        for link in [*self._all]:
            link.flush()
            link.close()
        self._away.clear()
        self._links.clear()
        self._all.clear()

    def abort(self) -> None:
        """Close all links at the end of an event loop, and drop the bytes that were not sent yet."""
        links = [*self._all]
        self.close()
        for link in links:
            link.abort()

    def _begin(self, link: Link[T]) -> None:
        """Hear what a peer says, and that it is gone."""

        def on_received(messages: list[T]) -> None:
            self._all[link] = 0
            self.received(link.peer.node, messages)

        link.begin(self._decoder, on_received, lambda: self._on_lost(link))

    def _add(self, link: Link[T]) -> None:
        if link.is_open:
            self._all[link] = 0
            self._links.setdefault(link.peer.node, link)

    def _on_lost(self, link: Link[T]) -> None:
        peer = link.peer.node
        self._all.pop(link, None)
        if self._links.get(peer) is link:
            del self._links[peer]
            if not link.is_left:
                self._lost(peer)

    # -- reaching a peer -----------------------------------------------------------------------------------------------

    async def _reach(self, peer: int, away: "_Away") -> None:
        try:
            link = await self._dial(peer, away)
        except DawsError as error:
            messages, away.waiting, away.dialling = away.waiting, [], None
            self._undelivered(peer, messages, str(error))
            return
        self._away.pop(peer, None)
        self._add(link)
        for message in away.waiting:
            link.send(message)

    async def _dial(self, peer: int, away: "_Away") -> Link[T]:
        if self._loop.time() < away.rest_until_s:
            raise UnavailableError(f"{away.reason} (not tried again yet)", retry=True)
        address = self._address_of(peer)
        if address is None:
            raise UnavailableError(f"the address of node {peer} is not known", retry=True)
        try:
            return await dial(address, self._keys, self._hello, self._begin, node=peer)
        except DawsError as error:
            away.fail(self._loop.time(), str(error))
            raise

    # -- idle links ----------------------------------------------------------------------------------------------------

    def _on_sweep(self) -> None:
        """Leave links that were not used for two sweeps, and forget old failures: a peer that was not reached may be
        gone for good."""
        self._sweep = self._loop.call_later(self._sweep_s, self._on_sweep)
        old_s = self._loop.time() - self._sweep_s
        for peer, away in [*self._away.items()]:
            if away.dialling is None and away.rest_until_s < old_s:
                del self._away[peer]
        for link, unused in [*self._all.items()]:
            self._all[link] = unused + 1
            if unused >= 2 and not link.is_left:
                if self._links.get(link.peer.node) is link:
                    del self._links[link.peer.node]
                link.leave()
                self._loop.call_later(FAREWELL_S, self._cut, link)

    def _cut(self, link: Link[T]) -> None:
        """Abort a link that was left. The peer had enough time to close it."""
        if self._all.pop(link, None) is not None:
            link.abort()


class _Away:
    """A peer to which there is no link, with the messages that wait while it is dialled.

    After failed attempts it is not dialled again before `rest_until_s`.
    """

    def __init__(self) -> None:
        self.dialling: Task[None] | None = None
        self.waiting: list[Any] = []
        self.reason = ""
        self.rest_until_s = 0.0
        self._failures = 0

    def fail(self, now_s: float, reason: str) -> None:
        self.reason = reason
        self.rest_until_s = now_s + min(BACKOFF_S * 2**self._failures, BACKOFF_S_MAX)
        self._failures = min(self._failures + 1, 10)
