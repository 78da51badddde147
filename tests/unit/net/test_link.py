"""Links over TLS and over unix sockets are the same to those who use them."""

import asyncio
from pathlib import Path

import pytest

from daws.model.errors import UnavailableError
from daws.net import link as link_module
from daws.net.door import dial
from daws.net.keys import Keys
from daws.net.stream import connect
from tests.unit.net.ends import CLIENT, End, World, run


@pytest.fixture(params=["tls", "unix"])
def world(request: pytest.FixtureRequest, cluster: Path, tmp_path: Path) -> "type[World]":
    socket = None
    if request.param == "unix":
        tmp_path.chmod(0o700)
        socket = tmp_path / "socket"

    class Chosen(World):
        def __init__(self) -> None:
            super().__init__(cluster, socket)

    return Chosen


def test_what_is_said_in_one_turn_is_one_batch(world):
    async def main() -> None:
        async with world() as here:
            end = End()
            link = await here.dial(end)
            assert (str(link.peer), str(here.inside.link.peer)) == ("node 1", "a client")
            for number in range(3):
                link.send(bytes([number]))
            await here.inside.until(lambda: here.inside.heard)
            assert here.inside.heard == [[b"\0", b"\1", b"\2"]]
            here.inside.link.send(b"yes")
            await end.until(lambda: end.heard)
            link.close()
            await here.inside.until(lambda: here.inside.lost)
            here.inside.link.send(b"to nobody")
            await asyncio.sleep(0)
            assert (end.lost, here.inside.lost) == (0, 1), "who closes it knows"

    run(main())


def test_much_that_is_said_arrives_in_order(world):
    async def main() -> None:
        async with world() as here:
            end = End()
            link = await here.dial(end)
            said = [bytes([number]) * 1_000_000 for number in range(8)]
            for part in said:
                link.send(part)
                link.flush()
            await here.inside.until(lambda: len(here.inside.all) == 8)
            assert here.inside.all == said
            link.close()

    run(main())


def test_batches_that_are_too_large_for_a_frame_are_cut(world, monkeypatch):
    monkeypatch.setattr(link_module, "FRAME_BYTES_MAX", 200_000)

    async def main() -> None:
        async with world() as here:
            end = End()
            link = await here.dial(end)
            said = [bytes([number]) * 60_000 for number in range(20)]
            for part in said:
                link.send(part)
            await here.inside.until(lambda: len(here.inside.all) == 20)
            assert here.inside.all == said
            link.send(bytes(200_000))
            link.flush()
            assert (link.is_open, end.lost) == (False, 1), "one message alone cannot be cut"

    run(main())


def test_who_leaves_still_hears_what_was_on_its_way(world):
    async def main() -> None:
        async with world() as here:
            end = End()
            link = await here.dial(end)
            link.send(b"last")
            link.leave()
            here.inside.link.send(b"met it on the way")
            await end.until(lambda: end.lost)
            assert (end.all, here.inside.all) == ([b"met it on the way"], [b"last"])
            assert here.inside.lost == 1 and not link.is_open and not here.inside.link.is_open

    run(main())


def test_a_peer_that_does_not_read_is_given_up(world, monkeypatch, caplog):
    monkeypatch.setattr(link_module, "BACKLOG_BYTES_MAX", 1 << 20)

    async def main() -> None:
        async with world() as here:
            end = End()
            link = await here.dial(end)
            here.inside.link._transport.pause_reading()
            said = 0
            while link.is_open:
                assert said < 100, "it would go on for ever"
                link.send(bytes(1_000_000))
                said += 1
                await asyncio.sleep(0)
            assert end.lost == 1

    run(main())
    assert [record.message.partition(" is closed: ")[2][:31] for record in caplog.records] == [
        "it does not read its messages, "
    ]


def test_a_peer_that_stopped_reading_is_given_up_after_a_while(world, monkeypatch, caplog):
    monkeypatch.setattr(link_module, "SLOW_BYTES", 100_000)
    monkeypatch.setattr(link_module, "STALL_S", 0.05)

    async def main() -> None:
        async with world() as here:
            end = End()
            link = await here.dial(end)
            here.inside.link._transport.pause_reading()
            while link._watch is None:
                link.send(bytes(1_000_000))
                await asyncio.sleep(0)
            await end.until(lambda: end.lost)

    run(main())
    assert len(caplog.records) == 1 and "it has read nothing for" in caplog.records[0].message


def test_a_peer_that_reads_slowly_is_not_given_up(world, monkeypatch):
    async def main() -> None:
        async with world() as here:
            end = End()
            link = await here.dial(end)
            waiting = iter([5000, 4000, 3000, 3000])
            monkeypatch.setattr(link, "_waiting_bytes", lambda: next(waiting))
            link.pause_writing()
            for _ in range(2):
                link._on_watch()
                assert link.is_open
            monkeypatch.setattr(link, "_waiting_bytes", lambda: 3000)
            link._on_watch()
            assert not link.is_open and end.lost == 1

    run(main())


def test_a_link_that_nobody_wants_is_closed(world):
    async def main() -> None:
        async with world() as here:
            here.door._accepted = lambda link: None
            end = End()
            here.inside.link = object()
            await here.dial(end)
            await end.until(lambda: end.lost)
            here.inside.link = None

    run(main())


def test_asyncio_alone_will_do(world):
    async def main() -> None:
        async with world() as here:
            end = End()
            link = await here.dial(end)
            link.send(bytes(300_000))
            await here.inside.until(lambda: here.inside.heard)
            here.inside.link.send(b"yes")
            await end.until(lambda: end.heard)
            link.leave()
            await end.until(lambda: end.lost)

    asyncio.run(main())


def test_keys_make_no_difference_inside_one_host(cluster: Path, tmp_path: Path):
    tmp_path.chmod(0o700)

    async def main() -> None:
        here = World(cluster)
        here.bind = f"{tmp_path}/socket"
        async with here:
            end = End()
            link = await here.dial(end)
            assert link._transport is not None and link._transport.get_extra_info("ssl_object") is None
            link.close()
        assert list(tmp_path.iterdir()) == []

    run(main())


def test_who_hangs_up_before_it_has_said_anything_may_be_tried_again(cluster: Path):
    """It was killed, perhaps, in the middle of a start."""

    async def main() -> None:
        server = await asyncio.start_server(
            lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=Keys(cluster, "node").server
        )
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(UnavailableError, match="it closed the connection") as gone:
                await dial(f"127.0.0.1:{port}", Keys(cluster, "client"), CLIENT, print)
            assert gone.value.retry
            with pytest.raises(UnavailableError, match="it closed the connection") as gone:
                await asyncio.to_thread(connect, f"127.0.0.1:{port}", Keys(cluster, "client"), CLIENT)
            assert gone.value.retry

    run(main())
