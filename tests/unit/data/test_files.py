import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.data.codec import Buffer, WholeFile, load_file, pack
from daws.data.envelope import sealed
from daws.data.files import HIGH_WATER, LOW_WATER, ObjectFiles, read_and_drop
from daws.data.segments import Segments
from daws.data.session import SessionFolders
from daws.model.errors import NoSpaceError, UnavailableError, UnpicklableError

KB = 1024
BIG = np.arange(64 * KB, dtype=np.uint8)  # 64 kB and a little
ROOM = 100 * 65 * KB


def files_of(session: SessionFolders, limit_bytes: int = ROOM, node: int = 0) -> ObjectFiles:
    return ObjectFiles(*session.node_folders(node), limit_bytes=limit_bytes)


def names(session: SessionFolders) -> list[str]:
    assert session.memory is not None
    return sorted(
        str(path.relative_to(base))
        for base in (session.memory, session.scratch)
        for path in base.rglob("*")
        if not path.is_dir()
    )


def test_what_another_thread_has_read_and_dropped_is_brought_once_more(session: SessionFolders):
    files = files_of(session)
    brought: list[None] = []

    def bring() -> None:
        brought.append(None)
        files.put_packed(7, pack(BIG))
        if len(brought) == 1:
            files.drop(7)  # the other one was faster

    def read(path: str, object_id: int) -> int:
        files.drop(7)  # the other one is done
        return int(load_file(path, object_id).sum())

    assert read_and_drop(bring, files, 7, read) == BIG.sum()
    assert len(brought) == 2
    assert 7 not in files and names(session) == []


def test_put_and_get(session: SessionFolders):
    files = files_of(session)
    size = files.put(7, {"x": BIG})
    assert (files.value(7)["x"] == BIG).all()
    assert files.size_bytes(7) == size == os.path.getsize(files.path(7)) == files.used_bytes
    assert 7 in files and 8 not in files and len(files) == 1
    assert os.stat(files.path(7)).st_mode & 0o777 == 0o600


def test_what_came_as_bytes_is_kept_as_it_is(session: SessionFolders):
    files = files_of(session)
    for number in range(3):
        data = pack([1, 2]).as_file(number).to_bytes()
        came: list[Buffer] = [data, bytearray(data), memoryview(data)]
        files.put_packed(number, WholeFile([came[number]], len(data)))
        assert files.value(number) == [1, 2]


def test_the_first_to_come_stays(session: SessionFolders):
    files = files_of(session)
    files.put(1, "first")
    files.put(1, "second")
    assert files.value(1) == "first" and len(names(session)) == 1


def test_dropping_removes_the_file_but_not_the_arrays(session: SessionFolders):
    files = files_of(session)
    files.put(1, BIG)
    value = files.value(1)
    files.drop(1)
    files.drop(1)
    assert names(session) == [] and files.used_bytes == 0 and (value == BIG).all()
    with pytest.raises(UnavailableError, match="object 1 is not on this node"):
        files.value(1)


def test_dropping_waits_for_the_last_pin(session: SessionFolders):
    files = files_of(session)
    files.put(1, BIG)
    files.pin(1)
    files.pin(1)
    files.drop(1)
    files.unpin(1)
    assert (load_file(files.path(1)) == BIG).all()
    files.unpin(1)
    assert 1 not in files and names(session) == []


def test_an_object_made_again_while_it_is_read_stays(session: SessionFolders):
    files = files_of(session)
    files.put(1, BIG)
    files.pin(1)
    files.drop(1)
    files.put(1, BIG)
    files.unpin(1)
    assert 1 in files and len(names(session)) == 1


def test_what_cannot_be_pickled_names_the_object(session: SessionFolders):
    files = files_of(session)
    with pytest.raises(UnpicklableError, match="object 3 cannot be pickled"):
        files.put(3, threading.Lock())
    assert names(session) == []


def test_a_worker_writes_and_the_node_adopts(session: SessionFolders):
    files = files_of(session)
    script = (
        "import sys, numpy; from daws.data.codec import pack; from daws.data.segments import Segments;"
        "p = pack(numpy.arange(100000)).as_file(5); print(Segments(*sys.argv[1:]).write(p, 5), p.size_bytes)"
    )
    arguments = [sys.executable, "-c", script, *map(str, session.node_folders(0))]
    path, size = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.split()
    files.adopt(5, path, int(size))
    assert files.value(5).sum() == 99_999 * 100_000 // 2 and files.used_bytes == int(size)
    assert names(session) == ["node-0/objects/5"]


def test_only_files_of_this_node_are_adopted(session: SessionFolders, tmp_path: Path):
    files = files_of(session)
    (tmp_path / "x").write_bytes(b"x")
    for path in (tmp_path / "x", f"{files.segments.folders_new[0]}/../../x"):
        with pytest.raises(UnavailableError, match="not written in a folder of this node"):
            files.adopt(1, str(path), 1)


# Objects without files.


def test_a_small_object_may_do_without_a_file_until_somebody_asks_for_its_path(session: SessionFolders):
    files = files_of(session)
    data = sealed(7, pack([1, BIG]).to_bytes())
    files.hold(7, data)
    files.hold(7, b"the first to come stays")
    assert names(session) == [] and files.held(7) is data and files.content(7) is data
    assert files.value(7)[0] == 1 and files.size_bytes(7) == files.used_bytes == len(data)
    assert Path(files.path(7)).read_bytes() == data == files.content(7) and files.held(7) is None
    assert files.value(7)[0] == 1 and files.used_bytes == len(data)
    files.drop(7)
    assert names(session) == [] and files.used_bytes == 0


def test_an_object_without_a_file_is_dropped_when_nobody_reads_it_any_more(session: SessionFolders):
    files = files_of(session)
    files.hold(1, b"x" * KB)
    files.pin(1)
    files.drop(1)
    assert 1 in files
    files.unpin(1)
    assert 1 not in files and files.used_bytes == 0
    with pytest.raises(UnavailableError):
        files.held(1)


def test_objects_without_files_are_spilled_as_others_are(session: SessionFolders):
    files = files_of(session, 100 * KB)
    for number in range(9):
        files.hold(number, bytes([number]) * 10 * KB)
    assert files.is_high
    files.make_room()
    assert files.used_bytes == 60 * KB and files.spilled_bytes == 30 * KB
    assert files.held(0) is None and files.content(0) is None, "nobody waits for a disk"
    for number in range(9):
        assert Path(files.path(number)).read_bytes() == bytes([number]) * 10 * KB
        files.drop(number)
    assert names(session) == [] and files.used_bytes == files.spilled_bytes == 0


def test_a_file_that_is_written_while_its_object_is_dropped_goes_too(session: SessionFolders):
    files = files_of(session)
    files.hold(1, b"x" * KB)
    write = files.segments.write

    def drop_meanwhile(*what: Any) -> str:
        files.drop(1)
        return write(*what)

    files.segments.write = drop_meanwhile  # type: ignore[method-assign, assignment]
    files.path(1)
    assert names(session) == [] and files.used_bytes == 0 and 1 not in files


def test_where_memory_is_full_the_file_of_an_object_is_on_disk(session: SessionFolders):
    files = files_of(session)
    files.hold(1, b"x" * KB)
    write = files.segments.write
    files.segments.write = lambda packed, number: write(packed, number, in_scratch=True)  # type: ignore[method-assign, misc, assignment]
    assert Path(files.path(1)).read_bytes() == b"x" * KB
    assert (files.used_bytes, files.spilled_bytes) == (0, KB)
    files.drop(1)
    assert names(session) == [] and files.spilled_bytes == 0


# Spilling.


def test_the_least_recently_used_are_spilled_first(session: SessionFolders):
    files = files_of(session, 10 * 65 * KB)
    for number in range(8):
        files.put(number, BIG + np.uint8(number))
    files.path(0)
    files.pin(1)
    freed = files.make_room()
    on_disk = {number for number in range(8) if os.path.islink(files.path(number))}
    assert on_disk == {2, 3} and freed == files.spilled_bytes == files.size_bytes(2) + files.size_bytes(3)
    assert files.used_bytes <= LOW_WATER * files.limit_bytes
    for number in range(8):
        assert (files.value(number) == BIG + np.uint8(number)).all()
    for number in range(8):
        files.drop(number)
    assert len(files) == 1  # the pinned one
    files.unpin(1)
    assert names(session) == [] and files.used_bytes == files.spilled_bytes == 0


def test_putting_makes_room(session: SessionFolders):
    files = files_of(session, 4 * 65 * KB)
    for number in range(20):
        files.put(number, BIG)
        assert files.used_bytes <= files.limit_bytes
    assert all((files.value(number) == BIG).all() for number in range(20))


def test_what_is_larger_than_memory_goes_to_disk_at_once(session: SessionFolders):
    files = files_of(session, 10 * KB)
    files.put(1, BIG)
    assert files.used_bytes == 0 and files.spilled_bytes == files.size_bytes(1) and (files.value(1) == BIG).all()


def test_a_reader_with_the_path_finds_the_object_however_often_it_is_spilled(session: SessionFolders):
    files = files_of(session, 200 * 65 * KB)
    for number in range(100):
        files.put(number, BIG + np.uint8(number))
    paths = [files.path(number) for number in range(100)]
    wrong: list[int] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            for number, path in enumerate(paths):
                if load_file(path)[0] != number:
                    wrong.append(number)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        files.limit_bytes = 10 * 65 * KB
        files.make_room()
    finally:
        stop.set()
        reader.join()
    assert not wrong and files.used_bytes <= 10 * 65 * KB


def test_a_full_disk_ends_the_spilling_quietly(session: SessionFolders, monkeypatch: pytest.MonkeyPatch):
    files = files_of(session, 10 * 65 * KB)
    for number in range(9):
        files.put(number, BIG)

    def no_room(source: str, target: str) -> None:
        Path(target).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", no_room)
    assert files.make_room() == 0 and files.spilled_bytes == 0
    assert (files.value(0) == BIG).all() and len(names(session)) == 9
    files.drop(0)  # not pinned by what failed
    assert len(files) == 8


def test_pressure_is_told_at_the_water_marks(session: SessionFolders):
    told: list[bool] = []
    files = ObjectFiles(*session.node_folders(0), limit_bytes=10 * 65 * KB)
    files.on_pressure = lambda: told.append(files.is_high)
    pressures = []
    for number in range(9):
        files.put(number, BIG)
        pressures.append(files.pressure())
    assert pressures == sorted(pressures) and HIGH_WATER < files.pressure() <= 1 and told == [True]
    for number in range(9):
        files.drop(number)
    assert files.pressure() == 0 and told == [True, False]


def test_a_node_without_memory_keeps_all_on_disk(tmp_path: Path):
    files = ObjectFiles(None, tmp_path, limit_bytes=100 * KB)
    for number in range(4):
        files.put(number, BIG)
    assert files.make_room() == 0 and files.pressure() == 1.0
    assert all((files.value(number) == BIG).all() for number in range(4))
    for number in range(4):
        files.drop(number)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


# Other nodes of the machine.


def test_between_nodes_of_one_machine_nothing_is_copied(session: SessionFolders):
    here, there = files_of(session, node=0), files_of(session, node=1)
    size = here.put(1, BIG)
    there.link(1, here.path(1), size)
    assert os.stat(here.path(1)).st_ino == os.stat(there.path(1)).st_ino
    here.drop(1)
    assert (there.value(1) == BIG).all()


def made_by_a_command(files: ObjectFiles, object_: int, content: bytes, mode: int, where: int = 0) -> None:
    path = Path(files.segments.folders_new[where]) / f"file-{object_}"
    path.write_bytes(content)
    path.chmod(mode)
    files.adopt(object_, str(path), len(content), is_raw=True)


def mode_of(files: ObjectFiles, object_: int) -> int:
    return os.stat(files.path(object_)).st_mode & 0o777


def test_programs_stay_programs_when_they_are_spilled_or_copied(
    session: SessionFolders, monkeypatch: pytest.MonkeyPatch
):
    here, there = files_of(session, 50 * KB, node=0), files_of(session, node=1)
    made_by_a_command(here, 1, bytes(40 * KB), 0o755)
    assert here.make_room() and here.spilled_bytes == 40 * KB and mode_of(here, 1) == 0o755

    def refuse(source: str, target: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    there.link(1, here.path(1), 40 * KB, is_raw=True)
    assert mode_of(there, 1) == 0o755 and there.spilled_bytes, "programs lie where they can be started"


def test_only_files_of_the_usual_mode_are_as_good_as_their_content(session: SessionFolders):
    here, there = files_of(session, node=0), files_of(session, node=1)
    for object_, mode in enumerate((0o666 & ~umask(), 0o755, 0o600)):
        made_by_a_command(here, object_, b"words", mode)
    assert [here.content(object_) for object_ in range(3)] == [b"words", None, None]
    there.hold(0, b"words")
    assert mode_of(there, 0) == mode_of(here, 0)


def test_memory_of_files_that_nobody_could_write_is_used_again(session: SessionFolders):
    files = files_of(session)
    made_by_a_command(files, 1, bytes(300 * KB), 0o555)
    files.drop(1)
    (free,) = Path(files.segments.free).iterdir()
    assert free.stat().st_mode & 0o777 == 0o600
    files.put(2, bytes(300 * KB))
    assert mode_of(files, 2) == 0o600


def umask() -> int:
    mask = os.umask(0o22)
    os.umask(mask)
    return mask


def test_a_spilled_object_is_linked_on_disk(session: SessionFolders):
    here, there = files_of(session, 10, node=0), files_of(session, node=1)
    size = here.put(1, BIG)
    there.link(1, here.path(1), size)
    assert os.stat(here.path(1)).st_ino == os.stat(there.path(1)).st_ino
    assert (there.used_bytes, there.spilled_bytes) == (0, size)
    there.drop(1)
    assert (here.value(1) == BIG).all()


def test_where_links_do_not_work_a_copy_is_made(session: SessionFolders, monkeypatch: pytest.MonkeyPatch):
    here, there = files_of(session, node=0), files_of(session, node=1)
    size = here.put(1, BIG)

    def refuse(source: str, target: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    there.link(1, here.path(1), size)
    assert (there.value(1) == BIG).all() and there.used_bytes == size


def test_an_object_that_went_away_is_said_to_be_gone(session: SessionFolders):
    with pytest.raises(UnavailableError, match="object 1 is not at /nowhere/1 any more") as caught:
        files_of(session).link(1, "/nowhere/1", 10)
    assert caught.value.retry


# Failures.


def test_running_out_of_room_names_the_object_and_its_bytes(session: SessionFolders):
    """A limit on the size of files stands for a full disk: the system call fails half-way in both cases."""
    script = """
import resource, sys, numpy as np
from daws.data.files import ObjectFiles
from daws.model.errors import NoSpaceError
files = ObjectFiles(*sys.argv[1:], limit_bytes=10**9)
files.put(1, np.zeros(1000))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    files.put(77, np.zeros(10**6))
except NoSpaceError as error:
    print(error)
    assert (error.object_id, error.retry) == (77, True) and error.size_bytes > 8 * 10**6
assert files.value(1).sum() == 0 and len(files) == 1
"""
    arguments = [sys.executable, "-c", script, *map(str, session.node_folders(0))]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "no room for object 77 of 8,000," in done.stdout and len(done.stdout.splitlines()) == 1
    assert names(session) == ["node-0/objects/1"]


def test_a_full_memory_file_system_falls_back_to_disk(tmp_path: Path):
    """In a name space of its own, where anybody may mount a tiny one."""
    inner = """
import sys, numpy as np
from pathlib import Path
from daws.data.files import ObjectFiles
files = ObjectFiles(sys.argv[1], sys.argv[2], limit_bytes=10**9)
for number in range(8):
    files.put(number, np.full(300_000, number, dtype=np.uint8))
assert all((files.value(number) == number).all() for number in range(8))
assert files.spilled_bytes >= 5 * 300_000 and files.used_bytes >= 300_000, files
for number in range(8):
    files.drop(number)
print("fine")
"""
    memory, scratch = tmp_path / "memory", tmp_path / "scratch"
    memory.mkdir()
    scratch.mkdir()
    mount = f'mount -t tmpfs -o size=1m none {memory} || exit 77; exec "$@"'
    command = ["unshare", "-Urm", "sh", "-c", mount, "sh", sys.executable, "-c", inner, str(memory), str(scratch)]
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or done.returncode == 77:
        pytest.skip("no name spaces for ordinary users here")
    assert done.stdout == "fine\n", done.stderr


def test_a_writer_killed_half_way_leaves_nothing_to_see(session: SessionFolders):
    script = """
import os, signal, sys, numpy as np
from daws.data.files import ObjectFiles
files = ObjectFiles(*sys.argv[1:], limit_bytes=10**9)
real = os.writev
def writev(fd, parts):
    real(fd, [b"".join(parts)[:100_000]])
    os.kill(os.getpid(), signal.SIGKILL)
os.writev = writev
files.put(1, np.zeros(10**6))
"""
    with subprocess.Popen([sys.executable, "-c", script, *map(str, session.node_folders(0))]) as writer:
        assert writer.wait() == -signal.SIGKILL
    [left] = names(session)
    assert left.startswith("node-0/new/")
    files = files_of(session)
    assert 1 not in files and files.discard_of(writer.pid) == 1 and names(session) == []
    session.close()
    assert files.discard_of(writer.pid) == 0


STEPS = st.sampled_from(["put", "drop", "pin", "unpin", "room", "read"])


@given(st.lists(st.tuples(STEPS, st.integers(0, 5)), max_size=40))
def test_whatever_is_done_the_books_agree_with_the_disk(steps: list[tuple[str, int]]):
    with SessionFolders() as session:
        files = files_of(session, 250 * KB)
        pins = dict.fromkeys(range(6), 0)
        known: set[int] = set()
        for step, number in steps:
            if step == "put":
                files.put(number, np.full(50_000, number, dtype=np.uint8))
                known.add(number)
            elif step == "drop":
                files.drop(number)
            elif step == "pin" and number in files:
                files.pin(number)
                pins[number] += 1
            elif step == "unpin" and pins[number]:
                pins[number] -= 1
                files.unpin(number)
            elif step == "room":
                files.make_room()
            elif number in files:
                assert (files.value(number) == number).all()
            sizes = {number: os.path.getsize(files.path(number)) for number in range(6) if number in files}
            links = {number for number in sizes if os.path.islink(files.path(number))}
            assert files.spilled_bytes == sum(sizes[number] for number in links)
            assert files.used_bytes == sum(sizes.values()) - files.spilled_bytes
            assert all(number in files for number, count in pins.items() if count)


def test_no_space_error_survives_pickling():
    import pickle

    error = pickle.loads(pickle.dumps(NoSpaceError("full", 3, 10)))
    assert (str(error), error.object_id, error.size_bytes, error.retry) == ("full", 3, 10, True)


def test_repr_says_how_full_it_is(session: SessionFolders):
    files = files_of(session, 1000)
    assert repr(files) == "ObjectFiles(0 objects, 0 of 1,000 bytes)"
    assert isinstance(files.segments, Segments)


def test_what_is_given_up_is_gone_for_all_but_who_has_it_open(session: SessionFolders):
    files = files_of(session)
    files.put(1, BIG)
    value = files.value(1)
    files.pin(1)
    path = files.give_up(1)
    assert path and not os.path.exists(path) and 1 not in files and files.used_bytes == 0
    assert files.give_up(1) == "" and files.give_up(2) == "", "said once, of what was there"
    with pytest.raises(UnavailableError):
        files.path(1)
    files.put(1, "made again")  # while somebody still reads the old one
    assert files.value(1) == "made again"
    files.drop(1)
    assert 1 in files, "it is pinned still"
    files.unpin(1)
    assert 1 not in files and files.used_bytes == 0 and (value == BIG).all()


def test_a_damaged_file_is_found_out_by_who_would_give_it_away(session: SessionFolders):
    files = files_of(session)
    said: list[tuple[int, str]] = []
    files.on_damage = lambda object_id, why: said.append((object_id, why))
    for number in (1, 2, 3):
        files.put(number, [*range(5000)])
    os.close(files.open(1))
    os.truncate(files.path(1), 100)
    os.unlink(files.path(2))
    with open(files.path(3), "r+b") as file:
        file.seek(200)
        file.write(b"\xff")
    for number in (1, 2, 3):
        with pytest.raises(UnavailableError, match="is damaged here"):
            files.open(number)
    assert [number for number, _ in said] == [1, 2, 3]
    assert "100 bytes" in said[0][1] and said[1][1] == "its file is gone" and "checksum" in said[2][1]


def test_a_file_that_is_gone_is_not_spilled_and_can_be_dropped(session: SessionFolders):
    files = files_of(session)
    files.put(1, BIG)
    os.unlink(files.path(1))
    files.limit_bytes = 1
    assert files.make_room() == 0
    files.drop(1)
    assert 1 not in files and files.used_bytes == 0
