"""A store's server without sockets: what it says to somebody is kept."""

import asyncio
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest
from msgspec import msgpack, structs

from daws.model.cluster import ExecutorClass, NodeInfo
from daws.net.handshake import Hello
from daws.runtime.cluster import words
from daws.runtime.cluster.book import Book
from daws.runtime.cluster.serving import StoreServer, settings_of
from daws.store.memory import MemoryStore
from daws.wire.store import Lease

W = TypeVar("W")


class Party:
    """A link and who is at its other end."""

    def __init__(self, server: StoreServer, role: str = "node") -> None:
        self.name = ""
        self.peer = Hello("tests", role)
        self.said: list[Any] = []
        self.is_open = True
        server.welcome(self)  # type: ignore[arg-type]

    def begin(self, decoder: Any, received: Any, lost: Any) -> None:
        self.decoder, self.tell, self.lose = decoder, received, lost

    def send(self, word: Any) -> None:
        self.said.append(word)

    def close(self) -> None:
        self.is_open = False

    def tells(self, *said: Any) -> None:
        """It says this, as it would arrive."""
        self.tell(self.decoder.decode(msgpack.encode(said)))

    def hears(self, kind: type[W]) -> list[W]:
        """What of this kind it was told since the last time."""
        found = [one for one in self.said if isinstance(one, kind)]
        self.said = [one for one in self.said if not isinstance(one, kind)]
        return found


class Site:
    """A server, and short ways to nodes and clients."""

    def __init__(self, loop: asyncio.AbstractEventLoop, book: Book, lease_ns: int = 1 << 50) -> None:
        store = MemoryStore(**structs.asdict(settings_of(lease_ns)))
        self.server = StoreServer(loop, store, book, "daws")

    def node(self) -> tuple[Party, int]:
        party = Party(self.server)
        party.tells(words.Enrol())
        (enrolled,) = party.hears(words.Enrolled)
        info = NodeInfo(enrolled.node, (ExecutorClass(1),), addresses=("a:1", "a:2"))
        self.server.store.apply(0, [Lease(enrolled.node, 0, info)], 0)
        return party, enrolled.node

    def client(self, name: str = "", kept: bool = False, nonce: bytes = b"") -> tuple[Party, words.Attached]:
        party = Party(self.server)
        party.tells(words.Attach(nonce or bytes([len(self.server.sessions)] * 16), name, kept))
        (attached,) = party.hears(words.Attached)
        return party, attached


@pytest.fixture
def site() -> Iterator[Site]:
    loop = asyncio.new_event_loop()
    made = Site(loop, Book(None))
    yield made
    made.server.close()
    loop.close()
