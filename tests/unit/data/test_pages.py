"""Memory that is shared with a file: the same bytes, the client's own changes, and what has changed."""

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from daws.data import pages
from daws.data.buffers import BufferObject
from daws.data.codec import load_file
from daws.data.pages import PAGE, Pages, address_of, exchange, may_exchange, owner_of

COUNT = 5_000_000  # 40 MB: always a mapping of its own
SHARED = "/dev/shm"


@pytest.fixture
def fd() -> Iterator[int]:
    path = f"{SHARED}/daws-test-pages-{os.getpid()}"
    made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.unlink(path)
    yield made
    os.close(made)


def view_of(array: Any) -> memoryview:
    return memoryview(array).cast("B")


def exchanged(array: Any, fd: int) -> tuple[Pages, int]:
    address = array.ctypes.data
    assert may_exchange(array, address, array.nbytes)
    return exchange(fd, address % PAGE, address, array.nbytes), address


def test_an_array_stays_what_it_was_and_can_be_changed(fd: int):
    array = np.random.default_rng(1).random(COUNT)
    copy = array.copy()
    exchanged(array, fd)
    assert (array == copy).all()
    array[::100_000] += 1
    copy[::100_000] += 1
    assert (array == copy).all()
    before = np.frombuffer(os.pread(fd, array.nbytes, array.ctypes.data % PAGE))
    assert (before[::100_000] + 1 == array[::100_000]).all(), "the file has what was written first"


@pytest.mark.parametrize("look", [pages._scanned, pages._read_entries])
def test_pages_that_were_written_to_are_found(fd: int, look: Any):
    array = np.zeros(COUNT)
    found, address = exchanged(array, fd)
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        assert look(file.fileno(), found.low, found.high) == []
        assert array.sum() == 0  # reading is no change
        assert look(file.fileno(), found.low, found.high) == []
        written = [1_000, 2_000_000, 4_999_000]
        array[written] = 1
        expected = [(address + 8 * at) // PAGE * PAGE for at in written]
        assert [low for low, _ in look(file.fileno(), found.low, found.high)] == expected
        array += 1
        assert sum(high - low for low, high in look(file.fileno(), found.low, found.high)) == found.high - found.low


def test_memory_is_given_back_with_the_array(fd: int):
    array = np.ones(COUNT)
    exchanged(array, fd)
    array[5] = 2
    with open("/proc/self/maps") as file:
        assert "daws-test-pages" in file.read()
    del array
    with open("/proc/self/maps") as file:
        assert "daws-test-pages" not in file.read()


def test_an_array_that_grows_keeps_its_content(fd: int):
    array = np.arange(COUNT)
    exchanged(array, fd)
    array.resize(2 * COUNT, refcheck=False)
    assert (array[:COUNT] == np.arange(COUNT)).all() and not array[COUNT:].any()


def test_a_forked_child_has_its_own(fd: int):
    array = np.zeros(COUNT)
    exchanged(array, fd)
    child = os.fork()
    if not child:
        array[:] = 7
        os._exit(0 if array[-1] == 7 else 1)
    assert os.waitpid(child, 0)[1] == 0 and not array.any()


def test_what_cannot_be_exchanged_is_left_alone():
    array = np.ones(COUNT)

    def may(one: Any) -> bool:
        owner = owner_of(one)
        return owner is not None and may_exchange(owner, one.ctypes.data, one.nbytes)

    assert may(array) and may(array[1000:]) and may(array.reshape(1000, -1).T)
    assert not may(np.ones(100)) and not may(array[:100])
    assert not may(np.frombuffer(bytearray(8 * COUNT))), "memory of others"
    assert not may(np.memmap.__new__(np.memmap, "/dev/zero", mode="r", shape=8 * COUNT))
    mallopt = ctypes.CDLL(None).mallopt
    assert mallopt(-4, 0)  # M_MMAP_MAX: no allocation is a mapping of its own
    try:
        assert not may(np.ones(COUNT)), "memory of the heap"
    finally:
        assert mallopt(-4, 65536)


def test_nothing_is_exchanged_while_another_thread_could_write():
    array = np.ones(COUNT)
    stop = threading.Event()
    busy, begun = True, threading.Event()

    def compute() -> None:
        begun.set()
        while busy:
            sum(range(100))
        stop.wait()

    thread = threading.Thread(target=compute)
    thread.start()
    begun.wait()
    assert not may_exchange(array, array.ctypes.data, array.nbytes)
    busy = False
    until = time.monotonic() + 30
    while not (may := may_exchange(array, array.ctypes.data, array.nbytes)) and time.monotonic() < until:
        pass  # until it waits
    stop.set()
    thread.join()
    assert may


def test_a_failed_mapping_leaves_the_array_as_it_was(fd: int, monkeypatch: pytest.MonkeyPatch):
    array = np.random.default_rng(1).random(COUNT)
    copy = array.copy()
    real, calls = pages._locked(), []

    class Failing:
        pwrite = real.pwrite

        @staticmethod
        def mmap(*arguments: Any) -> Any:
            calls.append(arguments)
            return 0 if len(calls) == 3 else real.mmap(*arguments)

    monkeypatch.setattr(pages, "_locked", lambda: Failing)
    with pytest.raises(OSError, match="cannot share"):
        exchange(fd, array.ctypes.data % PAGE, array.ctypes.data, array.nbytes)
    assert (array == copy).all()
    array += 1
    assert (array == copy + 1).all()


def test_the_address_of_a_view():
    array = np.arange(1000)
    assert address_of(view_of(array)) == array.ctypes.data
    assert address_of(view_of(array)[80:]) == array.ctypes.data + 80


@pytest.mark.parametrize("may", [False, True])
def test_the_file_of_a_buffer_is_that_of_an_object(may: bool):
    array = np.random.default_rng(1).random(COUNT)
    made = BufferObject(view_of(array), array.ctypes.data if may else 0)
    file = made.as_file(7)
    path = f"{SHARED}/daws-test-buffer-{os.getpid()}"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        assert file.write_to(fd) == file.size_bytes == os.fstat(fd).st_size
        found = memoryview(load_file(path, 7))
    finally:
        os.close(fd)
        os.unlink(path)
    assert (made.pages is not None) is may and made.stored is not None
    assert (np.frombuffer(found[made.front :]) == array).all() and (np.frombuffer(made.stored) == array).all()
