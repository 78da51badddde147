"""Files over connections of their own: all bytes or none, and only between those who know each other."""

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket, socketpair
from threading import Event

import pytest

from daws.model.errors import PeerError, UnavailableError, UsageError
from daws.net import stream
from daws.net.handshake import OBJECTS, Hello
from daws.net.keys import Keys
from daws.net.listening import ListeningSocket
from daws.net.stream import StreamDoor, connect, receive_exactly, receive_into, send_file

NODE = Hello("lab", "node", 1, OBJECTS)
CLIENT = Hello("lab", "client", 9, OBJECTS)
BIG = 3 * stream.CHUNK_BYTES + 17

Opened = Callable[[Callable[[socket, Hello], None]], Callable[..., socket]]


@pytest.fixture(params=["tls", "unix"])
def opened(request: pytest.FixtureRequest, cluster: Path, tmp_path: Path) -> Iterator[Opened]:
    """A door behind which somebody serves; what it returns connects to it."""
    tmp_path.chmod(0o700)
    is_tls = request.param == "tls"
    doors = []

    def open_(serve: Callable[[socket, Hello], None]) -> Callable[..., socket]:
        bind = "127.0.0.1:0" if is_tls else f"{tmp_path}/socket"
        door = StreamDoor(ListeningSocket(bind, Keys(cluster, "node") if is_tls else None), NODE, serve)
        doors.append(door)
        keys = Keys(cluster, "client") if is_tls else None
        return lambda hello=CLIENT, **more: connect(door.address, keys, hello, **more)

    yield open_
    for door in doors:
        door.close()


def give(path: Path) -> Callable[[socket, Hello], None]:
    """Sends the file, preceded by its size, whenever a byte comes."""

    def serve(sock: socket, peer: Hello) -> None:
        assert peer == CLIENT
        while receive_exactly(sock, 1) is not None:
            size = path.stat().st_size
            sock.sendall(size.to_bytes(8, "little"))
            with open(path, "rb") as file:
                send_file(sock, file.fileno(), size)

    return serve


@pytest.mark.parametrize("size", [0, 1, 70_000, BIG])
def test_files_arrive_whole(opened: Opened, tmp_path: Path, size: int):
    there, here = tmp_path / "there", tmp_path / "here"
    there.write_bytes(os.urandom(size))
    with opened(give(there))(node=1) as sock:
        for _ in range(2):
            sock.sendall(b"!")
            head = receive_exactly(sock, 8)
            assert head is not None
            with open(here, "wb") as file:
                receive_into(sock, file.fileno(), int.from_bytes(head, "little"))
            assert here.read_bytes() == there.read_bytes()


def test_a_file_that_ends_too_early_is_noticed_by_its_receiver(opened: Opened, tmp_path: Path):
    def serve(sock: socket, peer: Hello) -> None:
        sock.sendall(b"x" * 1000)

    with (
        opened(serve)() as sock,
        open(tmp_path / "here", "wb") as file,
        pytest.raises(PeerError, match="in the middle of 1,001 bytes"),
    ):
        receive_into(sock, file.fileno(), 1001)


def test_a_file_that_is_too_short_is_noticed_by_who_sends_it(tmp_path: Path):
    (tmp_path / "short").write_bytes(b"abc")
    ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
    with ours, theirs, open(tmp_path / "short", "rb") as file, pytest.raises(PeerError, match="ended after 3"):
        send_file(ours, file.fileno(), 5)


def test_who_cannot_talk_is_told_why(opened: Opened, tmp_path: Path):
    to = opened(give(tmp_path))
    for hello, why in (
        (Hello("lab", "client"), "here for 'objects', a client for 'messages'"),
        (Hello("lab", "client", purpose=OBJECTS, python=(3, 9)), "Python 3.9"),
        (Hello("lab", "client", purpose=OBJECTS, protocol=99), "protocol 99: install the same version of daws"),
    ):
        with pytest.raises(UnavailableError, match=why) as refused:
            to(hello)
        assert not refused.value.retry
    with pytest.raises(UnavailableError, match="node 3 is not here any more, but node 1"):
        to(node=3)


def test_nobody_there_may_be_tried_again(cluster: Path, tmp_path: Path):
    tmp_path.chmod(0o700)
    for address in ("127.0.0.1:1", f"{tmp_path}/nobody"):
        with pytest.raises(UnavailableError) as nobody:
            connect(address, Keys(cluster, "client"), CLIENT)
        assert nobody.value.retry
    with pytest.raises(UsageError, match="needs keys"):
        connect("127.0.0.1:1", None, CLIENT)


def test_who_is_inside_when_the_door_is_closed_is_sent_away(cluster: Path):
    entered, left = Event(), Event()

    def serve(sock: socket, peer: Hello) -> None:
        entered.set()
        with suppress(OSError):
            assert receive_exactly(sock, 1) is None
        left.set()

    door = StreamDoor(ListeningSocket("127.0.0.1:0", Keys(cluster, "node")), NODE, serve)
    with connect(door.address, Keys(cluster, "client"), CLIENT) as sock:
        assert isinstance(sock, ssl.SSLSocket) and sock.version() == "TLSv1.3"
        assert entered.wait(30)
        for _ in range(2):
            door.close()
        assert left.wait(30)
        with pytest.raises(UnavailableError):
            connect(door.address, Keys(cluster, "client"), CLIENT)
