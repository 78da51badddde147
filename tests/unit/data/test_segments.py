import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from daws.data import segments
from daws.data.codec import load_file, pack
from daws.data.segments import REUSE_BYTES_MIN, Segments, can_tell_unused, is_unused, size_of
from daws.data.session import SessionFolders

SIZE = 4 * REUSE_BYTES_MIN
ROOM = 100 * SIZE


@pytest.fixture
def place(session: SessionFolders) -> Segments:
    return Segments(*session.node_folders(0))


def array_of(number: int, size: int = SIZE) -> np.ndarray:
    return np.full(size, number, dtype=np.uint8)


def inode(path: str) -> int:
    return os.stat(path).st_ino


def test_a_free_segment_is_written_again(place: Segments):
    path = place.write(pack(array_of(1)), 1)
    first = inode(path)
    place.recycle(path, ROOM)
    again = place.write(pack(array_of(2, SIZE - 70_000)), 2)
    assert inode(again) == first and os.listdir(place.free) == []
    size = pack(array_of(2, SIZE - 70_000)).as_file(2).size_bytes
    assert os.path.getsize(again) == size  # nothing of the old one behind it
    assert load_file(again).tolist() == array_of(2, SIZE - 70_000).tolist()


def test_a_segment_grows_when_it_has_to(place: Segments):
    path = place.write(pack(array_of(1)), 1)
    first = inode(path)
    place.recycle(path, ROOM)
    again = place.write(pack(array_of(2, SIZE + 70_000)), 2)
    assert inode(again) == first and (load_file(again) == 2).all()


def test_a_segment_that_somebody_maps_is_left_alone(place: Segments):
    path = place.write(pack(array_of(1)), 1)
    first = inode(path)
    held = load_file(path)
    place.recycle(path, ROOM)
    again = place.write(pack(array_of(2)), 2)
    assert inode(again) != first and (held == 1).all()
    del held
    assert inode(place.write(pack(array_of(3)), 3)) == first


def test_a_segment_that_another_process_maps_is_left_alone(place: Segments):
    path = place.write(pack(array_of(1)), 1)
    first = inode(path)
    script = (
        "import sys; from daws.data.codec import load_file; v = load_file(sys.argv[1]); print('ok', flush=True);"
        "sys.stdin.readline(); print((v == 1).all())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdin is not None and reader.stdout is not None
        assert reader.stdout.readline() == "ok\n"
        place.recycle(path, ROOM)
        assert inode(place.write(pack(array_of(2)), 2)) != first
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.read() == "True\n"
    assert inode(place.write(pack(array_of(3)), 3)) == first


def test_an_object_with_a_second_name_is_never_reused(place: Segments, tmp_path: Path):
    path = place.write(pack(array_of(1)), 1)
    os.link(path, f"{place.home}/second")
    place.recycle(path, ROOM)
    assert os.listdir(place.free) == [] and not os.path.exists(path)


def test_nothing_is_reused_where_the_kernel_does_not_tell(place: Segments, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(segments, "can_tell_unused", lambda folder: False)
    path = place.write(pack(array_of(1)), 1)
    first = inode(path)
    place.recycle(path, ROOM)
    assert inode(place.write(pack(array_of(2)), 2)) != first


def test_the_trial_notices_a_kernel_that_says_yes_to_everything(place: Segments, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(segments, "is_unused", lambda fd: True)
    assert not can_tell_unused.__wrapped__(place.home)


def test_sizes_must_be_similar(place: Segments):
    place.recycle(place.write(pack(array_of(1)), 1), ROOM)
    place.write(pack(array_of(2, 3 * SIZE)), 2)
    place.write(pack(array_of(2, SIZE // 3)), 3)
    assert len(os.listdir(place.free)) == 1


def test_free_segments_are_bounded(place: Segments):
    paths = [place.write(pack(array_of(n)), n) for n in range(5)]
    for path in paths:
        place.recycle(path, int(2.5 * SIZE))
    names = os.listdir(place.free)
    assert len(names) == 2
    assert place.empty() == sum(map(size_of, names)) and os.listdir(place.free) == []


def test_small_objects_are_not_kept(place: Segments):
    place.recycle(place.write(pack(1), 1), ROOM)
    assert os.listdir(place.free) == []


def test_two_who_want_the_same_segment_get_two_files(place: Segments):
    place.recycle(place.write(pack(array_of(0)), 0), ROOM)
    other = Segments(place.home, place.scratch)
    assert inode(place.write(pack(array_of(1)), 1)) != inode(other.write(pack(array_of(2)), 2))


def test_unused_means_neither_open_nor_mapped(tmp_path: Path):
    path = tmp_path / "x"
    path.write_bytes(b"x" * 100_000)
    fd = os.open(path, os.O_RDWR)
    if not can_tell_unused(str(tmp_path)):
        pytest.skip("this file system has no leases")
    assert is_unused(fd)
    with open(path):
        assert not is_unused(fd)
    assert is_unused(fd)
    os.close(fd)


def test_a_node_without_memory_writes_to_scratch(tmp_path: Path):
    place = Segments(None, tmp_path)
    path = place.write(pack(array_of(1)), 1, in_scratch=True)
    assert path.startswith(str(tmp_path)) and (load_file(path) == 1).all()
