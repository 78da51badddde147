"""A store's server without sockets: what it says to somebody is kept."""

import asyncio
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest
from msgspec import msgpack, structs

from daws.core.effects import CallStore
from daws.core.events import StoreAnswered
from daws.model.cluster import ExecutorClass, NodeInfo
from daws.net.handshake import Hello
from daws.runtime.cluster import sweeping
from daws.runtime.cluster.serving import StoreServer, settings_of
from daws.runtime.crew import TICK_NS
from daws.store.memory import MemoryStore
from daws.wire.cluster import AskCluster, Enrol, Enrolled
from daws.wire.store import TO_END, AttachSession, DetachSession, Lease, SessionAttached

W = TypeVar("W")


class Party:
    """A link and who is at its other end."""

    def __init__(self, server: StoreServer, role: str = "node") -> None:
        self.name = ""
        self.peer = Hello("tests", role)
        self.said: list[Any] = []
        self.is_open = True
        self.nonce = b""  # of a client
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


class SweepClock:
    """The clock of sweepers, which passes when a test says so."""

    def __init__(self) -> None:
        self.now_ns = 1 << 40

    def __call__(self) -> int:
        return self.now_ns

    def tick(self) -> None:
        self.now_ns += TICK_NS


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SweepClock:
    made = SweepClock()
    monkeypatch.setattr(sweeping, "monotonic_ns", made)
    return made


class Site:
    """A server, and short ways to nodes and clients."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: SweepClock,
        lease_ns: int = 1 << 62,
        store: MemoryStore | None = None,
    ) -> None:
        store = store or MemoryStore(**structs.asdict(settings_of(lease_ns)))
        self.server = StoreServer(loop, store, "daws")
        self.clock = clock

    def look(self, times: int = 1) -> None:
        """Let the server look after all things, with a tick of its sweeper before each time."""
        for _ in range(times):
            self.clock.tick()
            self.server._look()

    def end(self, client: Party, session: int) -> None:
        """A client leaves, and its session is to end."""
        client.tells(
            CallStore(90, 0, [AttachSession(client.nonce, session=session, why=TO_END)]),
            CallStore(91, 0, [DetachSession(client.nonce, session, True)]),
        )

    def abandon(self, session: int) -> None:
        """Let the lease of a session's client run out."""
        self.server.store.session_leases[session] = 0

    def node(self) -> tuple[Party, int]:
        party = Party(self.server)
        party.tells(Enrol())
        (enrolled,) = party.hears(Enrolled)
        info = NodeInfo(enrolled.node, (ExecutorClass(1),), addresses=("a:1", "a:2"))
        self.server.store.apply(0, [Lease(enrolled.node, 0, info)], 0)
        return party, enrolled.node

    def client(self, name: str = "", kept: bool = False, nonce: bytes = b"") -> tuple[Party, SessionAttached]:
        party = Party(self.server, "client")
        nonce = party.nonce = nonce or bytes([len(self.server.store.sessions)] * 16)
        party.tells(AskCluster(), CallStore(1, 0, [AttachSession(nonce, name, kept)]))
        (answered,) = party.hears(StoreAnswered)
        (attached,) = answered.answers
        assert isinstance(attached, SessionAttached)
        return party, attached


@pytest.fixture
def site(clock: SweepClock) -> Iterator[Site]:
    loop = asyncio.new_event_loop()
    made = Site(loop, clock)
    yield made
    made.server.close()
    loop.close()
