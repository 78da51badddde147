"""Frames that were broken on purpose, fed to a link without a socket: it takes them or ends, and that is all."""

import asyncio
from random import Random
from socket import AF_UNIX
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct, msgpack

from daws.net import link as link_module
from daws.net.complaints import COMPLAINTS
from daws.net.handshake import Handshake, Hello
from daws.net.link import Link

SEEDS = 300
NODE = Hello("lab", "node", 1)
CLIENT = Hello("lab", "client")


class Word(Struct, frozen=True, array_like=True, tag=True):
    number: int
    text: str
    more: tuple[bytes, ...] = ()


class Note(Word, frozen=True):
    pass


class Other(Word, frozen=True):
    pass


DECODER: "msgpack.Decoder[list[Note | Other]]" = msgpack.Decoder(list[Note | Other])
GOOD: list[list[Note | Other]] = [
    [Note(1, "a", (b"x" * 300,)), Other(2, "b")],
    [Other(3, "c")] * 20,
    [Note(2**60, "d" * 2000)],
]


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return SimpleNamespace(family=AF_UNIX) if name == "socket" else None

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True


class Fed:
    """A link, and whatever came of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.heard: list[Any] = []
        self.lost = 0
        self.transport = Transport()
        self.link: Link[Any] = Link(loop, NODE, "nowhere", self._greeted)
        self.link.connection_made(self.transport)

    def _greeted(self, link: Link[Any]) -> None:
        link.begin(DECODER, self.heard.extend, self._on_lost)

    def _on_lost(self) -> None:
        self.lost += 1

    def feed(self, data: bytes, rng: Random) -> None:
        """In pieces, as a network would."""
        view = memoryview(data)
        while view and not self.transport.is_closed:
            room = self.link.get_buffer(-1)
            count = min(len(view), len(room), rng.choice((1, 3, 50, 5000)))
            room[:count] = view[:count]
            self.link.buffer_updated(count)
            view = view[count:]

    def introduce(self, rng: Random) -> None:
        client = Handshake(CLIENT)
        said = client.greeting()
        client.room[:] = self.transport.written
        self.feed(said + client.arrived(len(self.transport.written)), rng)


def frame(batch: Any) -> bytes:
    body = msgpack.encode(batch)
    return len(body).to_bytes(4, "little") + body


def broken(rng: Random) -> bytes:
    data = bytearray(b"".join(map(frame, GOOD)))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        match rng.randrange(5):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at : at + rng.randint(1, 9)]
            case 2:
                data[at:at] = rng.randbytes(rng.randint(1, 9))
            case 3:
                data[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\xdd\xff\xff\xff", b"\xc6\x7f\xff\xff"))
            case _:
                data[at : at + 200] = b"\x91" * 200  # lists in lists
    return bytes(data)


def test_good_frames_arrive_whatever_the_pieces():
    async def main() -> None:
        for seed in range(20):
            fed = Fed(asyncio.get_running_loop())
            fed.introduce(Random(seed))
            fed.feed(b"".join(map(frame, GOOD)), Random(seed))
            assert fed.heard == [word for batch in GOOD for word in batch] and fed.lost == 0

    asyncio.run(main())


@pytest.mark.parametrize("part", range(3))
def test_broken_frames(part: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link_module, "FRAME_BYTES_MAX", 1 << 20)
    complained: list[str] = []
    monkeypatch.setattr(COMPLAINTS, "warn", complained.append)

    async def main() -> int:
        ended = 0
        for seed in range(part * SEEDS, (part + 1) * SEEDS):
            rng = Random(seed)
            complained.clear()
            fed = Fed(asyncio.get_running_loop())
            fed.introduce(rng)
            assert fed.link.is_open
            fed.feed(broken(rng), rng)
            assert all(type(word) in (Note, Other) for word in fed.heard), f"seed {seed}"
            assert fed.lost == (not fed.link.is_open) == fed.transport.is_closed, f"seed {seed}"
            assert len(complained) <= fed.lost, f"seed {seed}"
            ended += fed.lost
        return ended

    assert asyncio.run(main()) > SEEDS / 2, "most of them make no sense"


def test_broken_handshakes():
    async def main() -> None:
        for seed in range(SEEDS):
            rng = Random(seed)
            fed = Fed(asyncio.get_running_loop())
            client = Handshake(CLIENT)
            said = bytearray(client.greeting())
            client.room[:] = fed.transport.written
            said += client.arrived(len(fed.transport.written))
            said[rng.randrange(len(said))] ^= 1 << rng.randrange(8)
            fed.feed(bytes(said) + b"".join(map(frame, GOOD)), rng)
            if fed.link.is_open:
                assert fed.heard == [word for batch in GOOD for word in batch]
            else:
                assert fed.heard == [] and fed.link.ready.exception() is not None, f"seed {seed}"
                fed.link.buffer_updated(len(fed.link.get_buffer(-1)))  # more may come before the socket is closed
                assert fed.heard == []

    asyncio.run(main())


def test_lengths_that_are_too_large_are_not_believed(monkeypatch: pytest.MonkeyPatch):
    complained: list[str] = []
    monkeypatch.setattr(COMPLAINTS, "warn", complained.append)

    async def main() -> None:
        fed = Fed(asyncio.get_running_loop())
        fed.introduce(Random(0))
        fed.feed(b"\xff\xff\xff\xff" + bytes(100), Random(0))
        assert (fed.heard, fed.lost) == ([], 1)

    asyncio.run(main())
    assert len(complained) == 1 and "a frame of 4,294,967,299 bytes" in complained[0]
