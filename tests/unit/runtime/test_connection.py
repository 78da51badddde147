"""Frames over a socket: all that is said in one turn is one of them, and nonsense ends the connection in one line."""

import asyncio
import logging
from collections.abc import Callable
from socket import AF_UNIX, SOCK_STREAM, socket, socketpair
from typing import Any

import pytest
from msgspec import msgpack

from daws.runtime import connection
from daws.runtime.connection import Connection

DECODER: "msgpack.Decoder[list[bytes]]" = msgpack.Decoder(list[bytes])


class End:
    """One end of a connection, and what it has heard."""

    def __init__(self, sock: socket) -> None:
        self.heard: list[list[bytes]] = []
        self.lost = 0
        self.changed = asyncio.Event()
        loop = asyncio.get_running_loop()
        self.connection = Connection(loop, sock, DECODER, self._received, self._lost, "the other end")

    def _received(self, messages: list[bytes]) -> None:
        self.heard.append(messages)
        self.changed.set()

    def _lost(self) -> None:
        self.lost += 1
        self.changed.set()

    async def until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(30):
            while not true():
                await self.changed.wait()
                self.changed.clear()


async def pair() -> tuple[End, End]:
    ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
    return End(ours), End(theirs)


def test_what_is_said_in_one_turn_is_one_frame():
    async def main() -> None:
        one, other = await pair()
        for number in range(3):
            one.connection.say(bytes([number]))
        await other.until(lambda: other.heard)
        assert other.heard == [[b"\0", b"\1", b"\2"]]
        other.connection.say(b"yes")
        await one.until(lambda: one.heard)
        one.connection.close()
        await other.until(lambda: other.lost)
        other.connection.say(b"to nobody")
        await asyncio.sleep(0)
        assert (one.lost, other.lost) == (0, 1), "who closes it knows"

    asyncio.run(main())


def test_what_the_socket_does_not_take_waits_in_order():
    async def main() -> None:
        one, other = await pair()
        said = [bytes([number]) * 1_000_000 for number in range(8)]
        for part in said:
            one.connection.say(part)
            one.connection.flush()
        await other.until(lambda: sum(map(len, other.heard)) == 8)
        assert [part for parts in other.heard for part in parts] == said
        one.connection.close()
        other.connection.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "nonsense", [b"\x02\0\0\0\xc1\xc1", b"\x01\0\0\0\x05", b"\x03\0\0\0\x91\xa1x", b"\xff\xff\0\0", b"\x01\0\0\0"]
)
def test_nonsense_ends_the_connection_in_one_line(
    nonsense: bytes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connection, "FRAME_BYTES_MAX", 1000)

    async def main() -> End:
        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        end = End(ours)
        theirs.sendall(nonsense)
        theirs.close()
        await end.until(lambda: end.lost)
        return end

    with caplog.at_level(logging.WARNING, "daws"):
        end = asyncio.run(main())
    assert end.heard == [] and end.lost == 1
    assert len(caplog.records) <= 1 and all("the other end" in record.message for record in caplog.records)
