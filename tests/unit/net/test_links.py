"""One link per peer: dialled on demand, given up when idle, and what cannot be delivered is told."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daws.net import links as links_module
from daws.net.door import Door, dial
from daws.net.handshake import Hello
from daws.net.keys import Keys
from daws.net.links import Links
from daws.net.listening import ListeningSocket
from tests.unit.net.ends import DECODER, WAIT_S, End, run


class Peer:
    """A node that talks to others; `book` has everybody's address."""

    door: Door

    def __init__(self, number: int, book: dict[int, str], keys: Keys | None = None, idle_s: float = 600) -> None:
        self.number = number
        self.heard: list[tuple[int, bytes]] = []
        self.undelivered: list[tuple[int, Any, str]] = []
        self.lost: list[int] = []
        self.book = book
        self.keys = keys
        self._changed = asyncio.Event()
        self.links: Links[bytes] = Links(
            keys, self.hello, DECODER, book.get, self._on_received, self._on_undelivered, self._on_lost, idle_s
        )

    @property
    def hello(self) -> Hello:
        return Hello("lab", "node", self.number)

    async def open(self, bind: str) -> "Peer":
        self.door = Door(ListeningSocket(bind, self.keys), self.hello, self.links.adopt)
        self.book[self.number] = self.door.address
        return self

    def close(self) -> None:
        self.links.close()
        self.door.close()

    def _on_received(self, peer: int, messages: list[bytes]) -> None:
        self.heard += [(peer, message) for message in messages]
        self._changed.set()

    def _on_undelivered(self, peer: int, messages: list[Any], why: str) -> None:
        self.undelivered += [(peer, message, why) for message in messages]
        self._changed.set()

    def _on_lost(self, peer: int) -> None:
        self.lost.append(peer)
        self._changed.set()

    @property
    def open_count(self) -> int:
        return len(self.links._all)

    async def until(self, true: Any) -> None:
        async with asyncio.timeout(WAIT_S):
            while not true():
                await self._changed.wait()
                self._changed.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def test_answers_come_back_on_the_same_link(cluster: Path):
    async def main() -> None:
        book: dict[int, str] = {}
        keys = Keys(cluster, "node")
        one = await Peer(1, book, keys).open("127.0.0.1:0")
        two = await Peer(2, book, keys).open("127.0.0.1:0")
        one.links.send(2, b"a")
        one.links.send(2, b"b")
        await two.until(lambda: len(two.heard) == 2)
        two.links.send(1, b"c")
        await one.until(lambda: one.heard)
        assert (one.heard, two.heard) == ([(2, b"c")], [(1, b"a"), (1, b"b")])
        assert (one.open_count, two.open_count) == (1, 1)
        one.close()
        await two.until(lambda: two.lost)
        assert two.lost == [1]
        two.close()

    run(main())


def test_who_dial_each_other_at_once_hear_everything(folder: Path):
    async def main() -> None:
        book: dict[int, str] = {}
        one = await Peer(1, book).open(f"{folder}/1")
        two = await Peer(2, book).open(f"{folder}/2")
        for number in range(20):
            one.links.send(2, b"%d" % number)
            two.links.send(1, b"%d" % number)
            await asyncio.sleep(0)
        await one.until(lambda: len(one.heard) == 20)
        await two.until(lambda: len(two.heard) == 20)
        assert {message for _, message in one.heard} == {message for _, message in two.heard}
        one.close()
        two.close()

    run(main())


def test_what_cannot_be_delivered_is_told_and_the_peer_is_left_alone_for_a_while(folder: Path, monkeypatch):
    dialled = []

    async def counted(address: str, *args: Any, **more: Any) -> Any:
        dialled.append(address)
        return await dial(address, *args, **more)

    monkeypatch.setattr(links_module, "dial", counted)
    monkeypatch.setattr(links_module, "BACKOFF_S", 600.0)
    monkeypatch.setattr(links_module, "BACKOFF_S_MAX", 600.0)

    async def main() -> None:
        one = await Peer(1, {2: f"{folder}/nobody"}).open(f"{folder}/1")
        one.links.send(2, b"a")
        assert one.undelivered == [], "not while it is being said"
        await one.until(lambda: one.undelivered)
        one.links.send(2, b"b")
        one.links.send(3, b"c")
        await one.until(lambda: len(one.undelivered) == 3)
        assert [told[:2] for told in one.undelivered] == [(2, b"a"), (2, b"b"), (3, b"c")]
        assert "No such file" in one.undelivered[0][2] and "not tried again" in one.undelivered[1][2]
        assert "the address of node 3 is not known" in one.undelivered[2][2]
        assert len(dialled) == 1
        two = await Peer(2, one.book).open(f"{folder}/2")
        two.links.send(1, b"I am back")
        await one.until(lambda: one.heard)
        one.links.send(2, b"d")
        await two.until(lambda: two.heard)
        assert len(dialled) == 2, "only its own call"
        one.close()
        two.close()

    run(main())


def test_who_is_gone_for_good_is_forgotten(folder: Path):
    async def main() -> None:
        one = await Peer(1, {2: f"{folder}/nobody"}, idle_s=0.01).open(f"{folder}/1")
        one.links.send(2, b"a")
        await one.until(lambda: one.undelivered)
        async with asyncio.timeout(WAIT_S):
            while one.links._away:
                await asyncio.sleep(0.01)
        one.close()

    run(main())


def test_another_incarnation_at_the_same_address_is_not_told(folder: Path):
    async def main() -> None:
        one = await Peer(1, {}).open(f"{folder}/1")
        seven = await Peer(7, {}).open(f"{folder}/2")
        one.book[2] = seven.door.address
        one.links.send(2, b"for the one before")
        await one.until(lambda: one.undelivered)
        assert "node 2 is not here any more, but node 7" in one.undelivered[0][2]
        assert seven.heard == []
        one.close()
        seven.close()

    run(main())


def test_idle_links_are_closed_and_come_back(folder: Path):
    async def main() -> None:
        book: dict[int, str] = {}
        one = await Peer(1, book, idle_s=0.02).open(f"{folder}/1")
        two = await Peer(2, book).open(f"{folder}/2")
        for round_ in range(3):
            one.links.send(2, b"%d" % round_)
            await two.until(lambda wanted=round_ + 1: len(two.heard) == wanted)
            async with asyncio.timeout(WAIT_S):
                while one.open_count or two.open_count:
                    await asyncio.sleep(0.001)
        assert (one.lost, two.lost, one.undelivered) == ([], [], []), "that is no sign of anything"
        one.close()
        two.close()

    run(main())


def test_nothing_is_lost_when_idle_links_are_closed_all_the_time(folder: Path):
    async def main() -> None:
        book: dict[int, str] = {}
        peers = [await Peer(number, book, idle_s=0.004).open(f"{folder}/{number}") for number in (1, 2)]
        one, two = peers
        for number in range(120):
            one.links.send(2, b"%d" % number)
            if number % 3 == 0:
                two.links.send(1, b"%d" % number)
            await asyncio.sleep(0.0005 * (number % 17))  # now within the time for which links stay, now beyond
        await two.until(lambda: len(two.heard) >= 120)
        await one.until(lambda: len(one.heard) >= 40)
        assert sorted(int(message) for _, message in two.heard) == list(range(120))
        assert sorted(int(message) for _, message in one.heard) == list(range(0, 120, 3))
        for peer in peers:
            peer.close()

    run(main())


def test_a_peer_that_never_says_goodbye_is_cut_off(folder: Path, monkeypatch):
    monkeypatch.setattr(links_module, "FAREWELL_S", 0.01)

    async def main() -> None:
        end = End()
        mute = Door(ListeningSocket(f"{folder}/2", None), Hello("lab", "node", 2), end.accept)
        one = await Peer(1, {2: mute.address}, idle_s=0.01).open(f"{folder}/1")
        one.links.send(2, b"a")
        await end.until(lambda: end.heard)
        assert end.link is not None
        monkeypatch.setattr(end.link, "_end", lambda: None)  # it hears the goodbye and does nothing
        async with asyncio.timeout(WAIT_S):
            while one.open_count:
                await asyncio.sleep(0.001)
        one.close()
        mute.close()

    run(main())


def test_who_is_forgotten_is_cut_off(folder: Path):
    async def main() -> None:
        book: dict[int, str] = {}
        one = await Peer(1, book).open(f"{folder}/1")
        two = await Peer(2, book).open(f"{folder}/2")
        one.links.send(2, b"a")
        await two.until(lambda: two.heard)
        one.links.send(3, b"b")
        one.links.forget(3)
        one.links.forget(2)
        await two.until(lambda: two.lost)
        assert one.lost == [] and one.undelivered == []
        one.links.send(2, b"c")
        await two.until(lambda: len(two.heard) == 2)
        one.close()
        two.close()

    run(main())


def test_what_waits_for_a_peer_is_bounded(folder: Path, monkeypatch):
    monkeypatch.setattr(links_module, "WAITING_MAX", 3)

    async def main() -> None:
        book: dict[int, str] = {}
        one = await Peer(1, book).open(f"{folder}/1")
        two = await Peer(2, book).open(f"{folder}/2")
        for number in range(5):
            one.links.send(2, bytes([number]))
        await two.until(lambda: len(two.heard) == 3)
        assert [told[1] for told in one.undelivered] == [b"\3", b"\4"]
        one.close()
        two.close()

    run(main())
