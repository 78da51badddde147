"""Large arguments: one copy for all tasks, never stale, and gone when nobody needs them."""

import ctypes
import dataclasses
import functools
import gc
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daws.client.arguments import LargeArguments
from daws.client.cluster import Cluster
from daws.client.future import collecting
from daws.client.inside import current
from daws.data import pages
from daws.futures import Executor
from daws.model.errors import UnpicklableError

KINDS: list[dict[str, Any]] = [{}, {"kind": "threads"}, {"nodes": 2}]
COUNT = 400_000  # 3.2 MB
M_MMAP_THRESHOLD = -3


@pytest.fixture(params=[True, False], ids=["one copy", "two copies"])
def exchanging(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """May pages be shared with files, or not?"""
    if not request.param:
        monkeypatch.setattr(pages, "_is_possible", lambda: False)
    else:
        assert pages._is_possible()
        monkeypatch.setattr(pages, "_are_others_waiting", lambda: True)  # threads of other tests do not write to arrays
        monkeypatch.setattr(pages, "SHARE_BYTES_MIN", 1 << 20)
        # Arrays of this size are mappings of their own, also after others were freed: glibc would learn otherwise.
        assert ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 18)
    return bool(request.param)


@pytest.fixture(params=KINDS, ids=str)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(2, **request.param) as made:
        yield made


@dataclasses.dataclass
class Holder:
    array: Any
    name: str = ""

    def total(self, extra: int) -> float:
        return float(self.array.sum()) + extra


def total(array: Any, *_: Any, **__: Any) -> float:
    return float(array.sum())


def total_inside(holder: Any, extra: int = 0) -> float:
    return float(holder["deep"][0].array.sum()) + extra


def element(array: Any, at: int, gate: str = "") -> float:
    while gate and not os.path.exists(gate):
        time.sleep(0.001)
    return float(array[at])


def written(cluster: Cluster) -> int:
    """How many large arguments there are now."""
    return len(cluster._open().large)


def object_bytes(cluster: Cluster) -> int:
    """What the files of objects take in memory, each counted once."""
    folder = cluster._open().folders.memory
    assert folder is not None
    return bytes_in(folder)


def bytes_in(folder: Path) -> int:
    found = []
    for path in folder.glob("node-*/objects/*"):
        with suppress(FileNotFoundError):
            found.append(path.lstat())
    return sum({one.st_ino: one.st_size for one in found}.values())


def wait_until(condition: Any) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def test_an_array_for_many_tasks_is_written_once(cluster: Cluster, exchanging: bool, tmp_path: Path):
    array = np.random.default_rng(1).random(COUNT)
    gate = tmp_path / "gate"
    futures = [cluster.submit(element, array, at, str(gate)) for at in range(30)]
    assert written(cluster) == 1
    gate.touch()
    assert cluster.gather(futures) == array[:30].tolist()


def test_what_is_large_in_containers_and_keywords_is_found(cluster: Cluster):
    array = np.ones(COUNT)
    made = [cluster.submit(total_inside, {"deep": [Holder(array)]}, extra=at) for at in range(3)]
    made.append(cluster.submit(total, array=array))
    assert cluster.gather(made) == [COUNT, COUNT + 1, COUNT + 2, COUNT]


def add_up(rows: list[Any], whole: Any, gate: str) -> tuple[float, list[bool]]:
    while not os.path.exists(gate):
        time.sleep(0.001)
    rows[0][0] += 1  # small arrays are the task's own
    return float(sum(map(np.sum, rows)) + whole.sum()), [rows[1].flags.writeable, rows[2].flags.writeable]


def test_many_small_arrays_are_one_large_argument(cluster: Cluster, tmp_path: Path):
    rows = [np.full(3001, number, dtype="f4") for number in range(100)]  # 1.2 MB in all
    rows[2].flags.writeable = False
    whole, gate = np.ones(COUNT), str(tmp_path / "gate")
    futures = [cluster.submit(add_up, rows, whole, gate) for _ in range(20)]
    assert written(cluster) == 2
    rows[50][7] += 5
    futures.append(cluster.submit(add_up, rows, whole, gate))
    (tmp_path / "gate").touch()
    expected = 3001 * 99 * 50 + COUNT + 1
    sums, flags = zip(*cluster.gather(futures), strict=True)
    assert [*sums] == [expected] * 20 + [expected + 5]
    assert all(one == [True, False] for one in flags)


def test_a_changed_element_is_seen_by_later_tasks_alone(cluster: Cluster, exchanging: bool, tmp_path: Path):
    array = np.zeros(COUNT)
    gate = str(tmp_path / "gate")
    made = []
    for at in (0, 1, COUNT // 2, COUNT - 1):
        for value in (0, 1, 1, 2):
            array[at] = value
            made.append(cluster.submit(element, array, at, gate))
        assert array[at] == 2
    (tmp_path / "gate").touch()
    assert cluster.gather(made) == [0, 1, 1, 2] * 4


def test_changes_that_keep_sums_are_noticed(exchanging: bool):
    array = np.arange(COUNT, dtype=np.float64)
    with Cluster(2) as cluster:
        before = cluster.submit(element, array, 177_777)
        array[[177_777, 334_567]] = array[[334_567, 177_777]]
        after = cluster.submit(element, array, 177_777)
        array[[177_777, 334_567]] = array[[334_567, 177_777]]
        again = cluster.submit(element, array, 177_777)
        assert cluster.gather([before, after, again]) == [177_777, 334_567, 177_777]


def test_views_of_one_array_each_see_their_own_part(exchanging: bool):
    array = np.arange(COUNT, dtype=np.float64)
    with Cluster(2) as cluster:
        made = []
        for turn in range(3):
            for low in range(0, COUNT - 200_000, 60_001):  # they overlap
                view = array[low : low + 200_000]
                made.append((cluster.submit(total, view), float(view.sum())))
            array[turn * 100_000 : turn * 100_000 + 3] += 1e6
            made.append((cluster.submit(total, array), float(array.sum())))
        assert [future.result() for future, _ in made] == [expected for _, expected in made]


@pytest.mark.parametrize(
    "value",
    [
        np.asfortranarray(np.random.default_rng(1).random((1000, 1000))),
        np.random.default_rng(1).random((1000, 1000)).T,
        np.random.default_rng(1).random(COUNT)[::2],
        np.random.default_rng(1).random(COUNT).view(np.recarray),
        np.ma.masked_array(np.arange(COUNT, dtype=float), np.arange(COUNT) % 2 == 0),
        np.random.default_rng(1).random(COUNT).astype(">f8"),
        np.arange(COUNT).reshape(-1, 2)[3:100_000, 1],
    ],
    ids=["Fortran", "transposed", "strided", "subclass", "masked", "big-endian", "piece"],
)
def test_arrays_of_all_kinds(value: Any):
    with Cluster(2) as cluster:
        assert cluster.gather([cluster.submit(total, value, at) for at in range(3)]) == [float(value.sum())] * 3


def same_bytes(value: Any, other: Any) -> bool:
    return bytes(value) == bytes(other) and type(value) is bytes and type(other) is bytearray


def long_text(value: str) -> tuple[int, str]:
    return len(value), value[-1]


def test_long_bytes_and_texts_and_lists(cluster: Cluster):
    data = os.urandom(600_000)
    assert cluster.submit(same_bytes, data, bytearray(data)).result()
    assert cluster.gather([cluster.submit(long_text, "ä" * 300_000 + "z") for _ in range(3)]) == [(300_001, "z")] * 3
    assert cluster.submit(sum, [*range(150_000)]).result() == sum(range(150_000))


def test_memory_is_given_back_when_the_tasks_have_ended_and_the_array_has_gone(exchanging: bool):
    with Cluster(2) as cluster:
        array = np.ones(COUNT)
        # Its memory may be of the heap, which other tests have left behind.
        is_exchanged = exchanging and pages.may_exchange(array, array.ctypes.data, array.nbytes)
        made = [cluster.submit(total, array, at) for at in range(20)]
        assert cluster.gather(made) == [COUNT] * 20
        if is_exchanged:
            assert written(cluster) == 1  # it is the array's own memory
            assert object_bytes(cluster) < 1.1 * array.nbytes
        else:
            wait_until(lambda: not written(cluster) and not object_bytes(cluster))
        array[0] = 2
        assert cluster.submit(total, array).result() == COUNT + 1
        wait_until(lambda: object_bytes(cluster) < 1.1 * 8 * COUNT)
        del array, made
        gc.collect()
        wait_until(lambda: not written(cluster) and not object_bytes(cluster))
        memory = cluster._open().folders.memory
        assert memory is not None and not [one for one in memory.glob("node-*/free/*") if one.stat().st_size > 10**6]


def test_an_array_that_has_gone_stays_for_tasks_that_wait(cluster: Cluster, exchanging: bool, tmp_path: Path):
    gate = tmp_path / "gate"
    made = []
    for value in range(6):
        array = np.full(COUNT, value, np.float64)
        made.append(cluster.submit(element, array, 5, str(gate)))
        del array
    gate.touch()
    assert cluster.gather(made) == [*range(6)]
    wait_until(lambda: not written(cluster))


def test_a_call_that_is_refused_leaves_nothing(exchanging: bool):
    with Cluster(1) as cluster:
        array = np.ones(COUNT)
        with pytest.raises(UnpicklableError):
            cluster.submit(total, array, threading.Lock())
        other = Cluster(1)
        future = other.submit(abs, 1)
        with pytest.raises(Exception, match="another cluster"):
            cluster.submit(total, array, future)
        other.close()
        del array
        wait_until(lambda: not written(cluster) and not object_bytes(cluster))


def test_arrays_outlive_the_cluster(exchanging: bool):
    array = np.arange(COUNT, dtype=np.float64)
    with Cluster(1) as cluster:
        assert cluster.submit(total, array).result() == array.sum()
    array[::1000] += 1
    assert array[1000] == 1001 and array[1001] == 1001 and array.sum() == COUNT * (COUNT - 1) / 2 + COUNT / 1000
    copy = array.copy()
    array.resize(2 * COUNT, refcheck=False)
    assert (array[:COUNT] == copy).all() and not array[COUNT:].any()


def test_threads_that_submit_and_change_their_own_arrays(exchanging: bool):
    with Cluster(2) as cluster:
        wrong: list[Any] = []

        def work(number: int) -> None:
            array = np.zeros(COUNT)
            for turn in range(10):
                array += 1
                array[turn] = number
                future = cluster.submit(total, array)
                expected = float(array.sum())
                array[turn] = turn
                if future.result() != expected:
                    wrong.append((number, turn))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_through_map_and_executor():
    array = np.ones(COUNT)
    with Cluster(2) as cluster:
        assert list(cluster.map(total, [array] * 6, chunk=2)) == [COUNT] * 6
    with Executor(2) as executor:
        assert [one.result() for one in [executor.submit(total, array, at) for at in range(3)]] == [COUNT] * 3
        assert list(executor.map(total, [array] * 3)) == [COUNT] * 3


def test_functions_with_something_large_in_them(cluster: Cluster):
    """Bound by partial, in a closure, as an attribute of an object; and changed in between."""
    array = np.ones(COUNT)
    bound = functools.partial(total, array)
    made = [cluster.submit(bound, at) for at in range(5)]
    made += [cluster.options(priority=1).submit(bound, 5)]
    array[0] = 2
    later = [cluster.submit(bound), cluster.submit(lambda: float(array.sum())), cluster.submit(Holder(array).total, 3)]
    assert cluster.gather(made) == [COUNT] * 6 and cluster.gather(later) == [COUNT + 1, COUNT + 1, COUNT + 4]
    assert list(cluster.map(functools.partial(element, array), range(10))) == array[:10].tolist()
    assert list(cluster.map(lambda at: array[at], range(10), chunk=3)) == array[:10].tolist()
    with pytest.raises(UnpicklableError, match="lock"):
        list(cluster.map(functools.partial(give_lock, array), range(2)))
    assert not any(len(pickled) > 10_000 for pickled in cluster._open().functions.by_content)


def give_lock(array: Any, at: int) -> Any:
    return threading.Lock()


def submits(array: Any) -> list[float]:
    inner = current()
    made = [inner.submit(element, array, at) for at in range(10)]
    mine = array.copy()
    made.append(inner.submit(element, mine, 5))
    mine[5] = -1
    made.append(inner.submit(element, mine, 5))
    return [one.result() for one in made]


def test_inside_of_tasks(cluster: Cluster):
    array = np.arange(COUNT, dtype=np.float64)
    assert cluster.submit(submits, array).result() == [*range(10), 5, -1]


def submits_many(folder: str, count: int) -> int:
    """The most bytes of objects that there may be in the end, of 16 MB for each argument."""
    inner = current()
    for number in range(count):
        assert inner.submit(element, np.full(2_000_000, float(number)), 3).result() == number
    inner.submit(element, [0.0], 0).result()
    deadline = time.monotonic() + 20
    while (left := bytes_in(Path(folder))) > 100_000_000 and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def test_inside_of_tasks_large_arguments_are_let_go_of(cluster: Cluster):
    folder = cluster._open().folders.memory
    assert cluster.submit(submits_many, str(folder), 12).result() <= 100_000_000


def reads_again(count: int) -> int:
    inner = current()
    array = np.arange(COUNT, dtype=np.float64)
    for at in range(count):
        assert inner.submit(element, array, at).result() == at
    others = [np.full(COUNT, float(at)) for at in range(30)]  # 96 MB
    for at, other in enumerate(others):
        assert inner.submit(element, other, 0).result() == at
    made = [inner.submit(element, other, 0) for other in others for _ in range(2)]
    assert [one.result() for one in made] == [at for at in range(30) for _ in range(2)]
    return len(inner._session._large)


def test_inside_of_tasks_some_large_arguments_are_kept_for_the_next(cluster: Cluster):
    assert 1 <= cluster.submit(reads_again, 4).result() <= 20


def write(array: Any) -> float:
    array[0] = 7
    return float(array[0])


def write_all(arrays: list[Any]) -> float:
    for array in arrays:
        array += 1
    return float(arrays[0][-1])


def make(count: int) -> Any:
    return np.zeros(count)


def test_small_arrays_can_be_changed_in_tasks_and_results(cluster: Cluster):
    for count in (10, 1000, 3000):
        array = np.zeros(count)
        assert cluster.submit(write, array).result() == 7
        assert cluster.submit(write, cluster.submit(make, count)).result() == 7
        result = cluster.submit(make, count).result()
        result[0] = 7
        assert array[0] == 0


def test_large_results_can_be_changed_by_their_reader(cluster: Cluster):
    future = cluster.submit(make, COUNT)
    result = future.result()
    result += 1
    assert cluster.submit(total, future).result() == 0 and result.sum() == COUNT


def part(array: Any, count: int) -> list[Any]:
    return [array[:count], array[5:count]]


def test_a_part_of_a_shared_array_that_is_returned_can_be_changed(cluster: Cluster):
    array = np.zeros(COUNT)
    for count in (10, 3_000, COUNT):
        future = cluster.submit(part, array, count)
        for one in future.result():
            one += 1
        assert cluster.options(writable=True).submit(write_all, future).result() == 1
    assert not array.any()


def test_shared_arrays_are_read_only_and_the_error_names_the_cure(cluster: Cluster):
    array = np.zeros(COUNT)
    for given in (array, cluster.put(array)):
        with pytest.raises(ValueError, match=r"read-only.*copy.*writable=True"):
            cluster.submit(write, given).result()
    with pytest.raises(ValueError, match=r"read-only.*copy.*writable=True"):
        cluster.map(write, [array]).__getitem__(0)


def test_a_writable_task_has_arrays_of_its_own(cluster: Cluster):
    array = np.zeros(COUNT)
    put = cluster.put(array)
    for given in (array, put, make(COUNT)):
        one = cluster.options(writable=True).submit(write, given)
        other = cluster.options(writable=True).submit(write_all, [given, np.zeros(5)])
        assert (one.result(), other.result()) == (7, 1)
    assert not array.any() and cluster.submit(total, put).result() == 0 and cluster.submit(total, array).result() == 0
    assert cluster.options(writable=True).submit(abs, -1).result() == 1


class PutIn:
    task = 7


class SlowPut:
    """Puts in what it is given, as soon as it may."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, made: Any) -> Any:
        self.begun.set()
        assert self.may_end.wait(60)
        return PutIn()


def test_an_upload_keeps_nobody_who_may_not_wait():
    put, waits = SlowPut(), threading.local()
    reads: Any = [PutIn()]
    large = LargeArguments(put, may_wait=lambda: getattr(waits, "may", True))

    def share(data: bytes) -> Any:
        collecting.found = {}
        try:
            return large.share(data)
        finally:
            collecting.found = None

    with ThreadPoolExecutor() as threads:
        uploading = threads.submit(share, bytes(5_000_000))
        assert put.begun.wait(60)

        def in_callback() -> Any:
            waits.may = False
            large.submitted(8, reads)
            large.discard(reads)
            return share(bytes(4_000_000))

        asked = threads.submit(in_callback)
        try:
            assert asked.result(60) == bytearray(4_000_000)
        finally:
            put.may_end.set()
        assert uploading.result(60) == (0, 0, 5_000_000)
    assert len(large) == 1
