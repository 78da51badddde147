import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import msgpack

from daws.model.errors import PeerError
from daws.wire.frames import NONSENSE, ROOM_BYTES, SMALL_ROOM_BYTES, FrameReader


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "little") + body


sizes = st.sampled_from((0, 1, 7, ROOM_BYTES - 5, ROOM_BYTES - 4, ROOM_BYTES, 3 * ROOM_BYTES))
bodies = st.lists(st.one_of(st.binary(max_size=9), sizes.map(bytes)), max_size=6)


@settings(max_examples=50)
@given(bodies, st.sampled_from((5, SMALL_ROOM_BYTES, ROOM_BYTES)), st.data())
def test_frames_are_the_same_however_they_arrive(sent: list[bytes], room_bytes: int, data: st.DataObject):
    stream = b"".join(map(framed, sent))
    reader = FrameReader(room_bytes=room_bytes)
    found = []
    while stream:
        room = reader.room
        assert len(room) > 0
        most = min(len(room), len(stream))
        count = most if most > 100 and data.draw(st.booleans()) else data.draw(st.integers((most + 9) // 10, most))
        room[:count] = stream[:count]
        stream = stream[count:]
        found += [bytes(frame) for frame in reader.arrived(count)]
    assert found == sent


def test_frames_stay_good_until_the_next_arrival():
    reader = FrameReader()
    data = framed(b"first") + framed(b"second") + framed(b"third")[:6]
    reader.room[: len(data)] = data
    frames = reader.arrived(len(data))
    assert [bytes(frame) for frame in frames] == [b"first", b"second"]
    reader.room[:3] = b"ird"
    assert [bytes(frame) for frame in reader.arrived(3)] == [b"third"]


def test_room_for_a_large_frame_is_given_back():
    reader = FrameReader()
    data = framed(bytes(10 * ROOM_BYTES))
    while data:
        count = min(len(reader.room), len(data))
        reader.room[:count] = data[:count]
        reader.arrived(count)
        data = data[count:]
    assert len(reader.room) == ROOM_BYTES


def test_who_says_little_has_little_room_until_it_says_more():
    reader = FrameReader(room_bytes=SMALL_ROOM_BYTES)
    for size in (0, SMALL_ROOM_BYTES - 5):
        data = framed(bytes(size))
        reader.room[: len(data)] = data
        assert len(reader.arrived(len(data))) == 1
        assert len(reader.room) == SMALL_ROOM_BYTES
    data = framed(bytes(SMALL_ROOM_BYTES))
    reader.room[:] = data[:SMALL_ROOM_BYTES]
    assert not reader.arrived(SMALL_ROOM_BYTES)
    reader.room[:4] = data[-4:]
    assert len(reader.arrived(4)) == 1
    assert len(reader.room) == ROOM_BYTES


@pytest.mark.parametrize("nonsense", [b"", b"\xc1", b"\x91\xa1\xff", b"\x91\x05", b"\x91" * 100_000])
def test_whatever_bytes_may_raise_is_called_nonsense(nonsense: bytes):
    with pytest.raises(NONSENSE):
        msgpack.Decoder(list[str]).decode(nonsense)


def test_nobody_waits_for_a_frame_that_is_no_list():
    reader = FrameReader(lists=True)
    for first in (0x90, 0x9F, 0xDC, 0xDD):
        reader.room[:5] = bytes([200, 0, 0, 0, first])
        assert reader.arrived(5) == []
        reader.room[:199] = bytes(199)
        assert len(reader.arrived(199)) == 1
    reader.room[:5] = b"\xff\xff\xff\x7f\x20"
    with pytest.raises(PeerError, match="no list of messages"):
        reader.arrived(5)
