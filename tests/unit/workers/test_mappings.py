"""Large files that are read again and again are mapped once."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

import daws
from daws.workers.mappings import FILES_MAX, Mappings


def test_a_file_is_kept_from_the_second_time_on(tmp_path: Path):
    path = tmp_path / "one"
    path.write_bytes(b"x")
    opened: list[int] = []

    def open_file() -> memoryview:
        opened.append(len(opened))
        return memoryview(b"x")

    mappings = Mappings()
    mappings.content(1, str(path), open_file)
    held = [mappings.is_holding]
    second = mappings.content(1, str(path), open_file)
    held.append(mappings.is_holding)
    assert held == [False, True] and mappings.content(1, str(path), open_file) is second and len(opened) == 2
    mappings.let_go()
    mappings.content(1, str(path), open_file)
    assert len(opened) == 3 and [one for _, one in mappings._seen.values()] == [None]


def test_another_file_of_the_same_object_is_read_anew(tmp_path: Path):
    path, other = tmp_path / "one", tmp_path / "two"
    path.write_bytes(b"x")
    other.write_bytes(b"y")
    mappings = Mappings()
    for _ in range(2):
        mappings.content(1, str(path), lambda: memoryview(b"x"))
    os.rename(other, path)
    assert mappings.content(1, str(path), lambda: memoryview(b"y")).tobytes() == b"y"


def test_few_are_kept(tmp_path: Path):
    path = tmp_path / "one"
    path.write_bytes(b"x")
    mappings = Mappings()
    for object_ in range(3 * FILES_MAX):
        for _ in range(2):
            mappings.content(object_, str(path), lambda: memoryview(b"x"))
    assert len(mappings._seen) == FILES_MAX


def test_a_file_that_is_gone_is_told_by_who_opens_it(tmp_path: Path):
    def open_file() -> memoryview:
        raise FileNotFoundError

    with pytest.raises(FileNotFoundError):
        Mappings().content(1, str(tmp_path / "none"), open_file)


def address(array: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> tuple[int, int]:
    return os.getpid(), array.__array_interface__["data"][0]


def test_tasks_of_one_worker_find_a_shared_array_at_one_place():
    shared = np.zeros(1 << 18)
    with daws.Cluster(workers=1) as cluster:
        kept = cluster.put(shared)
        places = cluster.gather([cluster.submit(address, kept) for _ in range(6)])
    assert len(set(places[1:])) == 1


def test_files_that_a_long_run_does_not_read_are_let_go_of(tmp_path: Path):
    path = tmp_path / "one"
    path.write_bytes(b"x")
    mappings = Mappings()
    for object_ in (1, 1, 2, 2):
        mappings.content(object_, str(path), lambda: memoryview(b"x"))
    _, since_ns = [read_ns for read_ns, _ in mappings._seen.values()]
    mappings.let_go(since_ns)
    assert [object_ for object_, _ in mappings._seen] == [2] and mappings.is_holding


def mapped_after_a_drop(path: str) -> int:
    """How many dropped files this process has mapped, as soon as that is none, or after half a minute."""
    Path(path).touch()
    until = time.monotonic() + 30
    while True:
        found = [
            line for line in Path("/proc/self/maps").read_text().splitlines() if "/daws-" in line and "(del" in line
        ]
        if not found or time.monotonic() > until:
            return len(found)


def test_a_long_run_holds_no_file_that_others_have_read(tmp_path: Path):
    begun = tmp_path / "begun"
    with daws.Cluster(workers=1) as cluster:
        kept = cluster.put(np.zeros(1 << 19))
        cluster.gather([cluster.submit(address, kept) for _ in range(3)])
        long = cluster.submit(mapped_after_a_drop, str(begun))
        while not begun.exists():
            pass
        del kept
        assert long.result() == 0
