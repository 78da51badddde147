"""Two ends of a link, and what each has heard; for the tests of this folder."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import uvloop
from msgspec import msgpack

from daws.net.door import Door, dial
from daws.net.handshake import Hello
from daws.net.keys import Keys
from daws.net.link import Link
from daws.net.listening import ListeningSocket

DECODER: "msgpack.Decoder[list[bytes]]" = msgpack.Decoder(list[bytes])
NODE = Hello("lab", "node", 1)
CLIENT = Hello("lab", "client", 9)
WAIT_S = 30


class End:
    """One end: what it has heard, and how often it was told that the other is gone."""

    def __init__(self) -> None:
        self.heard: list[list[bytes]] = []
        self.lost = 0
        self.link: Link[bytes] | None = None
        self._changed = asyncio.Event()

    def accept(self, link: Link[Any]) -> None:
        self.link = link
        link.begin(DECODER, self.on_received, self.on_lost)
        self._changed.set()

    def on_received(self, messages: list[bytes]) -> None:
        self.heard.append(messages)
        self._changed.set()

    def on_lost(self) -> None:
        self.lost += 1
        self._changed.set()

    @property
    def all(self) -> list[bytes]:
        return [one for batch in self.heard for one in batch]

    async def until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not true():
                await self._changed.wait()
                self._changed.clear()


class World:
    """A door with one end behind it, and everybody who knocks."""

    def __init__(self, cluster: Path, socket: Path | None = None) -> None:
        self.inside = End()
        self.node_keys = None if socket else Keys(cluster, "node")
        self.client_keys = None if socket else Keys(cluster, "client")
        self.bind = str(socket) if socket else "127.0.0.1:0"
        self.door: Door

    async def __aenter__(self) -> "World":
        self.door = Door(ListeningSocket(self.bind, self.node_keys), NODE, self.inside.accept)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.door.close()
        if self.inside.link is not None:
            self.inside.link.abort()
        await asyncio.sleep(0)

    async def dial(self, end: End, hello: Hello = CLIENT, keys: Keys | None = None, **more: Any) -> Link[bytes]:
        keys = self.client_keys if keys is None else keys
        link = await dial(self.door.address, keys, hello, end.accept, **more)
        await self.inside.until(lambda: self.inside.link)
        return link


def run(main: Coroutine[Any, Any, None]) -> None:
    """On the loop that nodes use."""
    uvloop.run(main)
