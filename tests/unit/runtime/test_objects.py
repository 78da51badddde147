"""Objects from one folder to another over a socket."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket
from threading import Event, Thread

import pytest

from daws.core.events import ObjectsFetched
from daws.data.codec import Packed, WholeFile, encode
from daws.data.envelope import MAGIC
from daws.data.files import ObjectFiles
from daws.model.errors import NoSpaceError, UnavailableError
from daws.model.task import ObjectTransfer
from daws.net import stream
from daws.net.handshake import OBJECTS, Hello
from daws.net.listening import ListeningSocket
from daws.net.stream import StreamDoor
from daws.runtime import objects
from daws.runtime.objects import ObjectGiver, ObjectSource

BIG = 3 * stream.CHUNK_BYTES + 17
HELLO = Hello("lab", "node", 0, OBJECTS)


def connect(path: str) -> socket:
    """As `Reach.open_stream` does."""
    try:
        return stream.connect(path, None, HELLO)
    except UnavailableError as error:
        raise ConnectionError(str(error)) from error


def connect_rudely(path: str) -> socket:
    """Without a handshake."""
    sock = socket(AF_UNIX, SOCK_STREAM)
    sock.connect(path)
    return sock


def files_in(folder: Path) -> ObjectFiles:
    for name in ("memory", "scratch"):
        (folder / name).mkdir(parents=True)
    return ObjectFiles(folder / "memory", folder / "scratch", limit_bytes=1 << 30)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[ObjectGiver]:
    tmp_path.chmod(0o700)
    giver = ObjectGiver(files_in(tmp_path / "there"))
    door = StreamDoor(ListeningSocket(str(tmp_path / "socket"), None), HELLO, lambda sock, peer: giver.serve(sock))
    yield giver
    door.close()


def file_of(content: bytes, mode: int = 0o600) -> WholeFile:
    return WholeFile([content], len(content), is_raw=True, mode=mode)


def mode_of(files: ObjectFiles, object_: int) -> int:
    return os.stat(files.path(object_)).st_mode & 0o777


@pytest.fixture
def source(there: ObjectGiver, tmp_path: Path) -> Iterator[ObjectSource]:
    one = ObjectSource(lambda: connect(str(tmp_path / "socket")))
    yield one
    one.close()


def test_objects_arrive_whole_and_those_that_are_not_there_are_left_out(
    there: ObjectGiver, source: ObjectSource, tmp_path: Path
):
    here = files_in(tmp_path / "here")
    made = {1: b"small", 2: bytes(range(256)) * (BIG // 256), 4: b"\0"}
    for number, value in made.items():
        there.files.put_packed(number, file_of(value))
    assert source.fetch([1, 3, 2, 4], here) == [1, 2, 4]
    for number, value in made.items():
        assert Path(here.path(number)).read_bytes() == value
    assert source.fetch([3], here) == [], "the connection is good for more"
    there.files.drop(2)
    assert 2 not in there.files, "nothing stays pinned"


def test_objects_without_files_are_given_as_others_are(there: ObjectGiver, source: ObjectSource, tmp_path: Path):
    here = files_in(tmp_path / "here")
    there.files.hold(1, b"held" * 5_000)
    assert source.fetch([1], here) == [1] and here.content(1) == b"held" * 5_000
    assert source.fetch([2], here) == [], "when this is answered, the other side is done with what was before"
    assert there.files.held(1) is not None
    there.files.drop(1)
    assert 1 not in there.files, "nothing stays pinned"


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640, 0o444])
def test_files_that_commands_made_keep_their_modes(there: ObjectGiver, source: ObjectSource, tmp_path: Path, mode: int):
    here = files_in(tmp_path / "here")
    there.files.put_packed(1, file_of(b"#!/bin/sh\n", mode))
    there.files.put_packed(2, file_of(MAGIC + bytes(99), mode))
    there.files.put(3, bytes(BIG))
    assert source.fetch([1, 2, 3], here) == [1, 2, 3]
    assert mode_of(here, 1) == mode_of(here, 2) == mode and mode_of(here, 3) == 0o600
    assert here.mode(1, os.open(here.path(1), os.O_RDONLY)) == mode, "it is known for what it is, and can be given on"
    os.close(here.open(2))  # though it looks like a damaged value
    assert here.mode(3) == 0 and here.value(3) == bytes(BIG)
    is_on_disk = Path(os.path.realpath(here.path(1))).is_relative_to(tmp_path / "here" / "scratch")
    assert is_on_disk == bool(mode & 0o111), "programs lie where they can be started"


def test_a_mode_that_cannot_be_is_not_believed(tmp_path: Path):
    tmp_path.chmod(0o700)
    with ListeningSocket(str(tmp_path / "socket"), None).sock as door:
        source = ObjectSource(lambda: connect_rudely(str(tmp_path / "socket")))
        fetching = Thread(target=source.fetch, args=([1], here := files_in(tmp_path / "here")))
        fetching.start()
        sock, _ = door.accept()
        with sock:
            sock.recv(100)
            sock.sendall((5 | 0o1777 << 48).to_bytes(8, "little") + b"words")
            fetching.join(30)
        assert not fetching.is_alive() and 1 not in here
        source.close()


def test_a_source_that_is_gone_has_nothing(tmp_path: Path):
    tmp_path.chmod(0o700)
    here = files_in(tmp_path / "here")
    assert ObjectSource(lambda: connect(str(tmp_path / "nobody"))).fetch([1], here) == []
    sock = ListeningSocket(str(tmp_path / "rude"), None).sock

    def serve() -> None:
        for answer in (b"", b"\x05\0\0\0\0\0\0\0abc"):  # gone at once, and in the middle of an object
            peer, _ = sock.accept()
            peer.recv(100)
            peer.sendall(answer)
            peer.close()

    thread = Thread(target=serve)
    thread.start()
    rude = ObjectSource(lambda: connect_rudely(str(tmp_path / "rude")))
    for _ in range(2):
        assert rude.fetch([7], here) == []
    thread.join()
    sock.close()
    assert 7 not in here and not [*(tmp_path / "here").glob("*/new/*")], "no half of it is left"


def test_no_room_is_an_error_of_this_side(there: ObjectGiver, source: ObjectSource, tmp_path: Path):
    there.files.put_packed(1, file_of(b"x" * 10_000))
    here = files_in(tmp_path / "here")

    def refuse(packed: object, object_id: int, in_scratch: bool = False) -> str:
        raise NoSpaceError("no room", object_id, 10_000)

    here.segments.write = refuse  # type: ignore[method-assign]
    with pytest.raises(NoSpaceError):
        source.fetch([1], here)
    assert source.fetch([2], here) == [], "and the next request starts anew"


def test_requests_that_make_no_sense_are_not_answered(there: ObjectGiver, tmp_path: Path):
    sock = connect(str(tmp_path / "socket"))
    sock.sendall(b"\xfd\xff\xff\xff")
    assert sock.recv(10) == b""
    sock.close()


def test_who_has_no_room_tries_again_until_there_is_some(
    there: ObjectGiver,
    source: ObjectSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    """A disk that is full for a while ended the node that was about to read something."""
    monkeypatch.setattr(objects, "ROOM_AGAIN_S", 0.0)
    here = files_in(tmp_path / "here")
    for number in (1, 2):
        there.files.put_packed(number, file_of(bytes([number]) * 5000))
    put, has_room, came = here.put_packed, [False], []

    def put_if_there_is_room(object_id: int, packed: Packed) -> int:
        if object_id == 2 and not has_room[0]:
            raise NoSpaceError("no room", object_id, 5000)
        came.append(object_id)
        return put(object_id, packed)

    monkeypatch.setattr(here, "put_packed", put_if_there_is_room)
    transfers = {number: ObjectTransfer(number, 5000, 7) for number in range(5)}
    there.files.put_packed(4, file_of(b"4" * 5000))
    fetching = source.fetch_patiently([transfers[number] for number in (1, 3, 2, 4)], here, lambda: False)
    assert next(fetching) == ObjectsFetched((transfers[1],), (transfers[3],)), "known while another has no room"
    assert next(fetching) == ObjectsFetched((transfers[4],)), "one behind it may be smaller"
    has_room[0] = True
    assert [*fetching] == [ObjectsFetched((transfers[2],))]
    assert Path(here.path(2)).read_bytes() == b"\2" * 5000
    assert came == [1, 4, 2], "nothing needs its room twice"
    assert len([one for one in caplog.records if "no room" in one.message]) == 1, "it is said once"
    monkeypatch.setattr(objects, "ROOM_S", 0.0)
    has_room[0] = False
    with pytest.raises(NoSpaceError):
        [*source.fetch_patiently([transfers[2]], here, lambda: False)]


def test_what_is_not_answered_has_failed(tmp_path: Path):
    nobody = ObjectSource(lambda: connect(str(tmp_path / "nobody")))
    wanted = [ObjectTransfer(1, 10, 7), ObjectTransfer(2, 10, 7)]
    assert [*nobody.fetch_patiently(wanted, files_in(tmp_path / "here"), lambda: False)] == [
        ObjectsFetched((), tuple(wanted))
    ]


def test_two_threads_share_a_source(there: ObjectGiver, source: ObjectSource, tmp_path: Path):
    here = files_in(tmp_path / "here")
    for number in range(20):
        there.files.put_packed(number, file_of(bytes([number]) * 5000))
    begin = Event()
    came: list[list[int]] = []

    def fetch(numbers: range) -> None:
        begin.wait(30)
        came.append(source.fetch(numbers, here))

    threads = [Thread(target=fetch, args=(range(low, 20, 2),)) for low in (0, 1)]
    for thread in threads:
        thread.start()
    begin.set()
    for thread in threads:
        thread.join()
    assert sorted([*came[0], *came[1]]) == list(range(20))
    assert all(Path(here.path(number)).read_bytes() == bytes([number]) * 5000 for number in range(20))


def test_a_stream_that_nobody_uses_is_closed_and_opened_again(there: ObjectGiver, source: ObjectSource, tmp_path: Path):
    here = files_in(tmp_path / "here")
    there.files.put_packed(1, file_of(b"x" * 10_000))
    there.files.put_packed(2, file_of(b"y" * 10_000))
    assert source.fetch([1], here) == [1]
    sock = source._sock
    assert sock is not None
    source.close_if_idle(time.monotonic() - 3600)
    assert sock.fileno() >= 0, "somebody has used it since"
    source.close_if_idle(time.monotonic() + 1)
    assert sock.fileno() < 0
    assert source.fetch([2], here) == [2]


def test_a_file_in_a_folder_of_the_node_is_taken_as_it_is(there: ObjectGiver, source: ObjectSource, tmp_path: Path):
    value = bytes(range(256)) * 1000
    packed = encode(value, 100, "the value")
    assert isinstance(packed, Packed)
    packed = packed.as_file(5)
    path = there.files.segments.write(packed, 5)
    assert source.adopt(5, path, packed.size_bytes)
    assert 5 in there.files and not os.path.exists(path), "it has the name of its object now"
    outside = tmp_path / "outside"
    outside.write_bytes(b"x")
    assert not source.adopt(6, str(outside), 1) and 6 not in there.files
    assert source.fetch([5], here := files_in(tmp_path / "here")) == [5], "the stream is good for more"
    assert here.value(5) == value
