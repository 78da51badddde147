"""Calls on their way to disk: what is safe when, disks without room, and logs that are shortened."""

import errno
import os
from pathlib import Path

import pytest

from daws.model.errors import StoreFullError
from daws.store.log import CallFiles, LoggedStore, StoreSettings, open_store
from daws.store.log.compact import compact, main
from daws.wire.store import Lease, ReadLog
from tests.unit.store.log.worlds import LEASE_NS, SHARDS, calls, image, info

SETTINGS = StoreSettings(SHARDS, LEASE_NS, direct=True, retired_max=20)


def opened(folder: Path, log_bytes_min: int = 1 << 60) -> tuple[LoggedStore, CallFiles]:
    return open_store(folder, SETTINGS, 0, durable=False, log_bytes_min=log_bytes_min)


def came_back(folder: Path) -> bytes:
    store, files = opened(folder)
    files.abandon()
    return image(store)


class Disk:
    """Has room for so many bytes more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = 1 << 60
        self.fails = 0
        self._pwrite = os.pwrite
        monkeypatch.setattr("daws.store.log.segment.os.pwrite", self.pwrite)
        monkeypatch.setattr("daws.store.log.segment.os.fdatasync", self.fdatasync)

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = self._pwrite(fd, data[: self.room], offset)
        self.room -= done
        return done

    def fdatasync(self, fd: int) -> None:
        if self.fails:
            raise OSError(self.fails, os.strerror(self.fails))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def join(store: LoggedStore, node: int) -> None:
    store.apply(0, [Lease(node, 0, info(node))], 0)


def test_safe_is_what_was_written(tmp_path):
    store, files = opened(tmp_path / "store")
    join(store, 1)
    files.take()
    join(store, 2)
    assert (files.position, files.safe) == (2, 0)
    files.write()
    assert files.safe == 1, "what came after it was taken is not in it"
    store.apply(0, [ReadLog(0)], 0)
    assert (files.position, files.sync()) == (2, 2)
    files.abandon()
    assert came_back(tmp_path / "store") == image(store)


@pytest.mark.parametrize("room", [0, 1, 19, 50])
def test_a_full_disk_stops_changes_and_loses_none(tmp_path, disk, room):
    store, files = opened(tmp_path / "store")
    join(store, 1)
    files.sync()
    safe = image(store)
    join(store, 2)
    disk.room = room
    for _ in range(2):
        with pytest.raises(
            StoreFullError, match=r"there is no room for the store's log in .*; make room there"
        ) as error:
            files.sync()
        assert error.value.retry
    assert files.safe == 1
    with pytest.raises(StoreFullError, match="nothing is changed until then"):
        join(store, 3)
    assert store.apply(0, [ReadLog(0)], 0), "it can still be read"
    killed = tmp_path / "killed"
    killed.mkdir()
    for name in ("lock", "log.000001"):
        (killed / name).write_bytes((tmp_path / "store" / name).read_bytes())
    disk.room = 1 << 60
    assert came_back(killed) == safe, "never torn, also if it is killed now"
    assert files.sync() == 2
    join(store, 3)
    files.close()
    assert came_back(tmp_path / "store") == image(store)


def test_a_disk_that_fails_is_tried_again_from_where_it_was_safe(tmp_path, disk):
    store, files = open_store(tmp_path / "store", SETTINGS, 0)
    join(store, 1)
    disk.fails = errno.EIO
    with pytest.raises(StoreFullError, match=r"Input/output error when writing the store.s log .*; see to that disk"):
        files.sync()
    assert files.safe == 0
    disk.fails = 0
    assert files.sync() == 1
    files.close()
    assert came_back(tmp_path / "store") == image(store)


def test_a_log_is_shortened_while_the_store_goes_on(tmp_path):
    some = list(calls(1, 400))
    store, files = opened(tmp_path / "store")
    for number, call in enumerate(some):
        store.apply(*call)
        if number in (100, 250):
            files.sync()
            files.shorten()
            files.shorten()  # once is enough
        if number == 200:
            files.wait_until_short()
    files.sync()
    files.wait_until_short()
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["lock", "log.000003", "state.000003"]
    files.abandon()
    assert came_back(tmp_path / "store") == image(store)


def test_a_long_log_is_shortened_by_itself(tmp_path):
    store, files = opened(tmp_path / "store", log_bytes_min=2000)
    for call in calls(2, 300):
        store.apply(*call)
        files.sync()
    files.wait_until_short()
    assert files.folder.numbers("state")
    files.close()
    assert came_back(tmp_path / "store") == image(store)


def test_a_state_is_small_however_much_has_happened(tmp_path):
    store, files = opened(tmp_path / "store")
    for number in range(500):
        store.apply(0, [Lease(1, 0, info(1)), Lease(number + 2, 0, info(number + 2), leaving=True)], 0)
    files.sync()
    files.shorten()
    files.wait_until_short()
    assert (tmp_path / "store" / "state.000002").stat().st_size < 20_000
    files.close()


def test_a_failed_shortening_leaves_what_there_was(tmp_path, caplog):
    store, files = opened(tmp_path / "store")
    for call in calls(3, 50):
        store.apply(*call)
    files.sync()
    log = tmp_path / "store" / "log.000001"
    whole = log.read_bytes()
    log.write_bytes(whole[:100] + b"?" + whole[101:])
    files.shorten()
    files.wait_until_short()
    assert "was not shortened" in caplog.text and not files.folder.numbers("state")
    log.write_bytes(whole + log.read_bytes()[len(whole) :])  # with the seal that shortening has added
    files.close()
    assert came_back(tmp_path / "store") == image(store)


def test_no_room_for_a_new_log_means_that_the_old_one_goes_on(tmp_path, disk, caplog):
    store, files = opened(tmp_path / "store")
    join(store, 1)
    files.sync()
    disk.room = 0
    files.shorten()
    assert "cannot be shortened" in caplog.text
    disk.room = 1 << 60
    join(store, 2)
    files.close()
    assert came_back(tmp_path / "store") == image(store)


def test_a_crash_between_any_two_steps_of_shortening_does_no_harm(tmp_path):
    store, files = opened(tmp_path / "store")
    some = list(calls(4, 100))
    for call in some[:-10]:
        store.apply(*call)
    files.close()
    store, files = opened(tmp_path / "store")
    (tmp_path / "store" / ".state.000002.4711").write_text("half of it")
    compact(files.folder, 2)  # and the old files are still there
    for call in some[-10:]:
        store.apply(*call)
    files.close()
    assert len(files.folder.numbers("log")) == 2
    assert came_back(tmp_path / "store") == image(store)
    assert files.folder.numbers("state") == [2] and files.folder.numbers("log")[0] == 2
    assert not (tmp_path / "store" / ".state.000002.4711").exists()


def test_what_cannot_be_shortened_is_said_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr("os.nice", lambda by: 0)
    opened(tmp_path / "store")[1].close()
    (tmp_path / "store" / "log.000001").write_text("Dear reader, this is a long story")
    with pytest.raises(SystemExit, match=r"daws: .*is no file of a daws store"):
        main(str(tmp_path / "store"), "2")


def test_closing_twice_is_closing_once(tmp_path):
    _, files = opened(tmp_path / "store")
    files.close()
    files.close()
