"""Whatever happened to the files: all that was safe comes back, or a clear error says what to do."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from daws.model.errors import LogError
from daws.store.log import CallFiles, LoggedStore, StoreSettings, open_store
from daws.store.log.folder import TITLE, Folder, opening
from daws.store.log.frames import HEAD_BYTES
from daws.store.log.opening import read
from daws.store.memory import MemoryStore
from daws.wire.store import Lease
from tests.unit.store.log.worlds import LEASE_NS, SHARDS, Call, calls, image, info

SETTINGS = StoreSettings(SHARDS, LEASE_NS, direct=True, history=True, retired_max=50)


def opened(folder: Path, now_ns: int = 0, settings: StoreSettings = SETTINGS) -> tuple[LoggedStore, CallFiles]:
    return open_store(folder, settings, now_ns, durable=False)


def came_back(folder: Path) -> bytes:
    store, files = opened(folder)
    files.abandon()
    return image(store)


def read_back(folder: Path) -> bytes:
    """The same without a new log behind the old one."""
    store = LoggedStore(SETTINGS, Ignored())
    read(Folder(folder), store, durable=False)
    return image(store)


def images(some: list[Call]) -> list[bytes]:
    """What a store looks like after none of the calls, after the first, and so on."""
    store = LoggedStore(SETTINGS, Ignored())
    found = [image(store)]
    for call in some:
        store.apply(*call)
        found.append(image(store))
    return found


class Ignored:
    def check(self) -> None: ...

    def append(self, call: object) -> None: ...


def written(folder: Path, some: list[Call], group: int = 1) -> CallFiles:
    """Apply calls, and save them in groups."""
    store, files = opened(folder)
    for number, call in enumerate(some, 1):
        store.apply(*call)
        if not number % group:
            files.sync()
    files.sync()
    return files


def test_a_new_folder_is_private_and_a_closed_store_comes_back(tmp_path):
    folder = tmp_path / "deep" / "store"
    some = list(calls(1, 200))
    written(folder, some, 10).close()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert came_back(folder) == images(some)[-1]


def test_a_store_goes_on_after_each_of_many_restarts(tmp_path):
    some = list(calls(2, 200))
    plain = images(some)[-1]
    rest = iter(some)
    while part := list(itertools.islice(rest, 37)):
        store, files = opened(tmp_path / "store")
        for call in part:
            store.apply(*call)
            store.leases = dict.fromkeys(store.leases, LEASE_NS)  # as if nobody had been away
        files.close()
    assert image(store) == came_back(tmp_path / "store")
    assert len(image(store)) == pytest.approx(len(plain), rel=0.2)


def test_a_log_that_is_cut_off_anywhere_gives_what_was_whole_before(tmp_path, caplog):
    some = list(calls(3, 8, tasks=2))
    files = written(tmp_path / "whole", some, 4)
    files.abandon()
    whole = (tmp_path / "whole" / "log.000001").read_bytes()
    states = images(some)
    known = {state: number for number, state in enumerate(states)}
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    log = tmp_path / "cut" / "log.000001"
    last = 0
    begun = len(opening(SETTINGS))
    for length in range(begun):
        log.write_bytes(whole[:length])
        with pytest.raises(LogError, match=r"log\.000001 (has lost all but|does not say)"):
            read_back(tmp_path / "cut")
    for length in range(begun, len(whole) + 1):
        log.write_bytes(whole[:length])
        after = known[read_back(tmp_path / "cut")]
        assert after >= last and (after % 4 == 0 or after == len(some)), "whole groups only"
        last = after
    assert last == len(some)
    assert "never finished and are cut off" in caplog.text


def test_any_flipped_bit_of_a_closed_log_is_found(tmp_path):
    some = list(calls(4, 8, tasks=2))
    written(tmp_path / "store", some, 5).close()
    log = tmp_path / "store" / "log.000001"
    whole = log.read_bytes()
    for offset in range(len(whole)):
        log.write_bytes(flipped(whole, offset))
        with pytest.raises(LogError, match=r"log\.000001 (is damaged at byte [\d,]+ of|has format|is no file)"):
            read_back(tmp_path / "store")


def test_a_closed_log_that_was_cut_or_is_gone_is_found(tmp_path):
    some = list(calls(4, 8, tasks=2))
    written(tmp_path / "store", some, 5).close()
    log = tmp_path / "store" / "log.000001"
    whole = log.read_bytes()
    for length in range(len(whole)):
        log.write_bytes(whole[:length])
        with pytest.raises(LogError, match=r"log\.000001 has [\d,]+ bytes, and had [\d,]+ when its store was closed"):
            came_back(tmp_path / "store")
    log.unlink()
    with pytest.raises(LogError, match=r"log\.000001 was the last log, and is missing"):
        came_back(tmp_path / "store")
    log.write_bytes(whole)
    assert came_back(tmp_path / "store") == images(some)[-1]


def test_a_log_that_another_one_continues_must_have_its_seal(tmp_path):
    """Also one whose store was killed: the next process seals what it has read."""
    some = list(calls(8, 20, tasks=2))
    written(tmp_path / "store", some, 5).abandon()
    store, files = opened(tmp_path / "store")
    store.apply(*some[0])
    files.sync()
    files.abandon()
    log = tmp_path / "store" / "log.000001"
    os.truncate(log, log.stat().st_size - HEAD_BYTES)
    with pytest.raises(LogError, match=r"log\.000001 has lost its end"):
        came_back(tmp_path / "store")


def flipped(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 1 << offset % 8]) + data[offset + 1 :]


def test_a_flipped_bit_of_a_killed_store_takes_at_most_what_was_never_said_to_be_safe(tmp_path):
    some = list(calls(5, 8, tasks=2))
    written(tmp_path / "store", some, 5).abandon()
    log = tmp_path / "store" / "log.000001"
    whole = log.read_bytes()
    states = images(some)
    groups = [*range(0, len(some), 5), len(some)]
    for offset in range(len(TITLE), len(whole)):
        log.write_bytes(flipped(whole, offset))
        try:
            state = read_back(tmp_path / "store")
        except LogError:
            continue
        assert state == states[groups[-2]], "all but the last group"


def test_damage_before_something_safe_is_an_error_that_names_the_cure(tmp_path):
    written(tmp_path / "store", list(calls(6, 20)), 5).abandon()
    log = tmp_path / "store" / "log.000001"
    log.write_bytes(flipped(log.read_bytes(), 100))
    with pytest.raises(LogError, match=r"log.000001 is damaged at byte .* bring it back from a copy, or lose") as error:
        opened(tmp_path / "store")
    cut = int(str(error.value).split("truncate -s ")[1].split()[0])
    os.truncate(log, cut)
    opened(tmp_path / "store")[1].close()


def test_zeros_that_a_crash_left_are_cut_off(tmp_path):
    some = list(calls(7, 20))
    written(tmp_path / "store", some, 5).abandon()
    with open(tmp_path / "store" / "log.000001", "ab") as file:
        file.write(bytes(5000))
    assert came_back(tmp_path / "store") == images(some)[-1]


def test_another_format_is_refused(tmp_path):
    written(tmp_path / "store", list(calls(8, 2))).close()
    log = tmp_path / "store" / "log.000001"
    log.write_bytes(log.read_bytes().replace(b"format 3", b"format 9"))
    with pytest.raises(LogError, match="has format 9, and this daws reads format 3; use the daws that wrote it"):
        opened(tmp_path / "store")


def test_foreign_files_and_folders_are_refused(tmp_path):
    (tmp_path / "letter").write_text("Dear reader")
    with pytest.raises(LogError, match=r"is no folder of a store \(letter is in it\); name a new or empty folder"):
        opened(tmp_path)
    with pytest.raises(LogError, match=r"cannot keep a store in .*letter"):
        opened(tmp_path / "letter")
    written(tmp_path / "store", []).abandon()
    (tmp_path / "store" / "log.000001").write_text("Dear reader, this is a long story")
    with pytest.raises(LogError, match="is no file of a daws store"):
        opened(tmp_path / "store")


def test_a_missing_log_is_noticed(tmp_path):
    for node in range(3):
        store, files = opened(tmp_path / "store")
        store.apply(0, [Lease(node, 0, info(node))], 0)
        files.close()
    (tmp_path / "store" / "log.000002").unlink()
    with pytest.raises(LogError, match=r"log.000002 is missing"):
        opened(tmp_path / "store")


def test_another_number_of_shards_is_refused(tmp_path):
    written(tmp_path / "store", []).close()
    with pytest.raises(LogError, match="has 2 shards, and 3 were asked for"):
        opened(tmp_path / "store", settings=StoreSettings(3))


def test_other_settings_may_change_and_old_calls_keep_theirs(tmp_path):
    some = list(calls(9, 100))
    written(tmp_path / "store", some).close()
    store, files = opened(tmp_path / "store", settings=StoreSettings(SHARDS, 7, replicas_max=9))
    files.close()
    assert image(store) == images(some)[-1]
    assert (store.lease_ns, store.replicas_max, store.direct) == (7, 9, False)


def test_a_second_process_is_kept_out_until_the_first_is_gone(tmp_path):
    _, files = opened(tmp_path / "store")
    with pytest.raises(LogError, match=f"is in use by process {os.getpid()}; stop"):
        opened(tmp_path / "store")
    files.close()
    opened(tmp_path / "store")[1].close()


def test_time_does_not_go_back_when_the_clock_of_the_machine_began_anew(tmp_path):
    store, files = opened(tmp_path / "store", now_ns=5_000)
    store.apply(0, [Lease(1, 0, info(1))], 5_000)
    files.close()
    store, files = opened(tmp_path / "store", now_ns=10)
    store.apply(0, [Lease(1, 0)], 20)
    files.close()
    assert store.leases == {1: 5_010 + LEASE_NS}


WRITER = """
import os, sys
from daws.store.log import open_store
from tests.unit.store.log.test_opening import SETTINGS
from tests.unit.store.log.worlds import calls
store, files = open_store(sys.argv[1], SETTINGS, 0, durable=True)
for number, call in enumerate(calls(int(sys.argv[2]), 3000), 1):
    store.apply(*call)
    if number % 7 == 0:
        files.sync()
        os.write(1, b"%d\\n" % number)
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_process_has_lost_nothing_that_it_had_promised(tmp_path, seed):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "store"), str(seed)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[4],
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert writer.stdout is not None
    promised = 0
    for _ in range(20 + 11 * seed):
        promised = int(writer.stdout.readline())
    writer.kill()
    rest = writer.stdout.read().split(b"\n")
    promised = max([promised, *(int(line) for line in rest[:-1])])
    writer.stdout.close()
    writer.wait()
    state = came_back(tmp_path / "store")
    store = LoggedStore(SETTINGS, Ignored())
    for number, call in enumerate(calls(seed, 3000), 1):
        store.apply(*call)
        if number >= promised and image(store) == state:
            break
        assert number < promised + 100, "nothing that was promised, or something that never was"


def test_a_folder_of_a_store_that_was_made_and_killed_at_once_is_new(tmp_path):
    for content in (b"", TITLE[:5], TITLE, opening(SETTINGS)):
        _, files = opened(tmp_path / "store")
        files.abandon()
        log = tmp_path / "store" / "log.000001"
        log.unlink()
        log.with_name(".log.000001.12345").write_bytes(content)  # it has its name when its beginning is safe
        store, files = opened(tmp_path / "store")
        files.abandon()
        assert image(store) == image(MemoryStore(SHARDS))
        assert Folder(tmp_path / "store").numbers("log") == [1]
