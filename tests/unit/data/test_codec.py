import array
import dataclasses
import os
import pickle
import subprocess
import sys
import threading
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daws.data import codec
from daws.data.calls import LARGE_BYTES_MIN, load_parts
from daws.data.codec import (
    dumps,
    dumps_call,
    encode,
    load_file,
    load_private,
    loads,
    open_file,
    pack,
    pack_by_value,
)
from daws.data.limits import memory_bytes
from daws.model.errors import DamagedObjectError, UnpicklableError

MB = 1 << 20


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.tuples(inner, inner)
        | st.builds(Pair, inner, inner)
        | st.builds(bytearray, st.binary())
    ),
)
any_array = hnp.arrays(
    dtype=hnp.scalar_dtypes() | hnp.array_dtypes(max_size=3, allow_subarrays=False),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)


def written(value: object, path: Path) -> Path:
    with open(path, "wb") as file:
        assert pack(value).as_file(1).write_to(file.fileno()) == os.path.getsize(path)
    return path


def ways(value: object) -> list[Any]:
    """The value after each way through bytes."""
    data = dumps(value)
    assert pack(value).to_bytes() == data or b"__main__" in data
    return [
        loads(data),
        loads(memoryview(bytearray(data))),
        loads(data, copy=True),
        loads(pack_by_value(value).to_bytes()),
    ]


@given(plain)
def test_plain_values_come_back(value: object):
    assert all(found == value for found in ways(value))
    assert loads(pickle.dumps(value)) == value  # what others pickled is welcome


@given(any_array)
def test_arrays_come_back(value: np.ndarray):
    for shown in (value, value.T, value[::2] if value.ndim else value, np.asfortranarray(value)):
        expected = pickle.loads(pickle.dumps(shown, 5))  # numpy turns some types to this machine's byte order
        for found in ways({"deep": [shown]}):
            other = found["deep"][0]
            assert other.dtype == expected.dtype and other.shape == expected.shape
            assert other.tobytes() == expected.tobytes()  # NaNs and all


def test_order_is_kept():
    fortran = np.asfortranarray(np.arange(12).reshape(3, 4))
    assert loads(dumps(fortran)).flags.f_contiguous
    assert loads(dumps(fortran.T)).flags.c_contiguous


def test_arrays_of_objects_come_back():
    value = np.array([None, {"a": 1}, "x"], dtype=object)
    assert all(list(found) == list(value) for found in ways(value))


def test_shared_parts_stay_shared():
    array_, list_ = np.arange(1000), [1]
    found = loads(dumps({"a": array_, "b": array_, "c": [list_, list_]}))
    assert found["a"] is found["b"] and found["c"][0] is found["c"][1]
    assert len(dumps([array_, array_])) < 1.5 * array_.nbytes


@pytest.mark.parametrize(
    "view",
    [
        memoryview(b"abc"),
        memoryview(b""),
        memoryview(b"abcdef")[::2],
        memoryview(array.array("d", [1, 2, 3])),
        np.arange(6).reshape(2, 3).data,
        np.asfortranarray(np.arange(6).reshape(2, 3)).data,
    ],
)
def test_memoryviews_come_back_as_memoryviews(view: memoryview):
    for found in (loads(dumps(view)), loads(pack([view]).to_bytes())[0]):
        assert found == view and found.shape == view.shape and found.format == view.format


def test_memoryviews_of_formats_that_cannot_be_made_come_back_as_bytes():
    found = loads(dumps(np.arange(3, dtype=">i4").data))
    assert found.format == "B" and bytes(found) == np.arange(3, dtype=">i4").tobytes()


def test_large_bytes_are_packed_by_reference():
    value = b"x" * MB, bytearray(MB), "y" * MB
    packed = pack({"deep": [value]})
    assert any(part is value[0] for part in packed.parts) and any(part is value[1] for part in packed.parts)
    assert loads(packed.to_bytes()) == {"deep": [value]}


def test_arrays_point_into_the_buffer():
    value = {"a": np.arange(1000), "b": np.ones((10, 10), order="F"), "c": np.zeros(0)}
    data = dumps(value)
    view = memoryview(data)
    memory = np.frombuffer(data, dtype=np.uint8)
    found = loads(view)
    assert np.shares_memory(found["a"], memory) and np.shares_memory(found["b"], memory)
    assert not np.shares_memory(loads(view, copy=True)["a"], memory)
    with pytest.raises(ValueError, match="read-only"):
        found["a"][0] = 1
    loads(view, copy=True)["a"][0] = 1
    loads(bytearray(data))["a"][0] = 1  # as writable as what it points into


def test_what_is_loaded_from_bytes_can_be_changed_unless_it_could_not_before():
    fixed = np.arange(10)
    fixed.flags.writeable = False
    data = dumps([np.arange(10), fixed])
    found = loads(data)
    found[0][0] = 7
    assert not found[1].flags.writeable and loads(data)[0][0] == 0


def test_what_is_encoded_can_be_changed_also_if_it_was_read_only():
    arrays = [np.arange(size) for size in (10, 1000, 20)]
    for fixed in arrays[::2]:
        fixed.flags.writeable = False
    value: dict[str, Any] = {"a": arrays, "text": "\x97\x98 – ", "data": b"\x97\x98\x97\x98", "n": 0x98979897}
    for limit, more in ((0, {}), (MB, {}), (MB, {"by value": "__main__"})):
        value |= more
        made = encode(value, limit)
        found = loads(made if isinstance(made, bytes) else bytearray(made.to_bytes()))
        assert {**found, "a": None} == {**value, "a": None}
        for one, given_ in zip(found["a"], arrays, strict=True):
            assert (one == given_).all() and one.flags.writeable


def test_a_private_mapping_can_be_changed_and_its_file_does_not(tmp_path: Path):
    for size in (10, 100_000, 20_000_000):
        path = written(np.zeros(size, np.uint8), tmp_path / str(size))
        found = load_private(path)
        found[size // 2] = 7
        assert found[size // 2] == 7 and not load_file(path).any()


def shared(value: object) -> tuple[bytes, list[bytes]]:
    """A call with this argument, and what was taken out of it."""
    taken: list[bytes] = []

    def share(buffer: Any) -> tuple[int, int, int]:
        taken.append(b"..." + bytes(buffer))
        return len(taken) - 1, 3, len(taken[-1])

    return dumps_call((value,), {}, share), taken


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (np.arange(MB), 1),
        ({"a": [np.arange(MB), np.ones(10)], "b": b"x" * MB}, 2),
        ("ä" * MB, 1),
        (bytearray(MB), 1),
        ([*range(MB)], 1),
        ([b"x" * MB, "small", "y" * MB, np.zeros(3), [*range(MB)]], 3),
        (np.asfortranarray(np.arange(MB).reshape(1024, 1024)), 1),
        (np.arange(2 * MB)[::2], 1),
        (np.arange(MB).view(np.recarray), 1),
        (np.array([{"a": 1}] * MB, dtype=object), 1),
        (np.zeros(MB, dtype=[("a", "i4"), ("b", "f8")]), 1),
        (np.float64(3), 0),
        (np.zeros(10), 0),
        (b"x" * 200_000, 0),
    ],
)
def test_what_is_large_in_a_call_is_taken_out_and_comes_back(value: object, count: int):
    payload, taken = shared(value)
    assert len(taken) == count and len(payload) < LARGE_BYTES_MIN + 50_000
    (found,), kwargs = load_parts(payload, lambda number: taken[number]) if taken else loads(payload)
    assert kwargs == {} and type(found) is type(value) and pickle.dumps(found, 4) == pickle.dumps(value, 4)


def test_an_array_that_is_given_twice_is_one_array():
    array = np.arange(MB)
    payload, taken = shared((array, {"again": array}))
    ((one, other),), _ = load_parts(payload, lambda number: taken[number])
    assert len(taken) == 1 and other["again"] is one


def test_buffers_are_aligned_and_mapped(tmp_path: Path):
    value = [np.arange(n, dtype=np.uint8) for n in (1, 100_000, 63, 64, 65, 0)]
    found = load_file(written(value, tmp_path / "x"))
    starts = [each.ctypes.data for each in found if each.size]
    assert all(start % 64 == 0 for start in starts)
    [(low, high, mode)] = [line for line in mappings() if line[0] <= starts[0] < line[1]]
    assert all(low <= start < high for start in starts) and mode == "r--s"
    with pytest.raises(ValueError, match="read-only"):
        found[1][0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        found[1].flags.writeable = True


def mappings() -> list[tuple[int, int, str]]:
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    return [(int(line[0].split("-")[0], 16), int(line[0].split("-")[1], 16), line[1]) for line in lines]


def test_a_mapping_lives_as_long_as_its_arrays_and_needs_no_descriptor(tmp_path: Path):
    path = written([np.ones(MB)], tmp_path / "x")
    descriptors = set(os.listdir("/proc/self/fd"))
    [found] = load_file(path)
    assert set(os.listdir("/proc/self/fd")) <= descriptors | {str(max(map(int, descriptors)) + 1)}
    path.unlink()
    where = found.ctypes.data
    part = found[5:10]
    del found
    assert part.sum() == 5 and any(low <= where < high for low, high, _ in mappings())
    del part
    assert not any(low <= where < high for low, high, _ in mappings())


def test_thousands_of_files_can_be_mapped_at_once(tmp_path: Path):
    path = written(np.arange(100_000), tmp_path / "x")
    found = [load_file(path) for _ in range(3000)]
    assert all(each[99_999] == 99_999 for each in found)


@pytest.mark.slow
def test_huge_values(tmp_path: Path):
    size = min(1 << 30, memory_bytes() // 16)
    value = np.zeros(size, dtype=np.uint8)
    value[::4096] = 7
    path = written({"x": value}, tmp_path / "x")
    before = resident_private()
    found = load_file(path)["x"]
    assert found[::4096].min() == 7 and found.nbytes == size
    assert resident_private() - before < size // 20  # nothing was copied
    path.unlink()


def resident_private() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError


def test_small_values_are_plain_pickles():
    value = ((1, "a"), {"b": 2.5})
    assert dumps(value) == pickle.dumps(value, 5) == pack(value).to_bytes()


@pytest.mark.parametrize("value", [3, b"x" * 999, "x" * 999, np.arange(100), lambda: 1, bytearray(2000)])
@pytest.mark.parametrize("limit", [10, 500, 5000])
def test_encode_gives_bytes_up_to_a_size(value: object, limit: int):
    found = encode(value, limit)
    if isinstance(found, codec.Packed):
        assert found.size_bytes > limit
        found = found.to_bytes()
    else:
        assert len(found) <= limit
    assert type(loads(found)) is type(value)


class Dribble:
    """An `os.writev` that takes a few bytes at a time."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.real = os.writev

    def __call__(self, fd: int, parts: list[Any]) -> int:
        assert len(parts) <= codec.PARTS_PER_CALL
        return self.real(fd, [b"".join(parts)[: self.step]])


@pytest.mark.parametrize("step", [1, 7, 64, 100_000])
def test_writing_goes_on_after_a_short_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int):
    value = [np.arange(n) for n in range(20)]
    monkeypatch.setattr(os, "writev", Dribble(step))
    path = written(value, tmp_path / "x")
    assert open_file(path) == dumps(value)


def test_more_parts_than_one_call_takes(tmp_path: Path):
    value = [np.full(3, n) for n in range(5000)]
    found = load_file(written(value, tmp_path / "x"))
    assert [int(each[2]) for each in found] == list(range(5000))


@pytest.mark.parametrize("cut", [0, 1, 10, 20, 100, -1, -4000])
def test_what_was_cut_off_is_refused(cut: int):
    data = dumps([np.arange(1000)])
    with pytest.raises(DamagedObjectError, match="cut off"):
        loads(data[:cut] if cut else b"")


def test_rubbish_with_the_first_letter_of_a_block_is_refused():
    with pytest.raises(DamagedObjectError, match="no header"):
        loads(b"d" * 1000)


def test_another_process_loads_what_was_written(tmp_path: Path):
    path = written({"x": np.arange(MB), "f": lambda n: n + 1}, tmp_path / "x")
    script = (
        "import sys; from daws.data.codec import load_file; v = load_file(sys.argv[1]); print(v['f'](v['x'].sum()))"
    )
    shown = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True).stdout
    assert int(shown) == MB * (MB - 1) // 2 + 1


def test_what_main_defines_travels_by_value():
    script = """
import sys, numpy as np
from daws.data.codec import dumps, encode, pack
class Thing:
    def __init__(self, n): self.n = n
    def twice(self): return 2 * self.n
data = [dumps((Thing(21), np.arange(3))), pack(Thing(21)).to_bytes(), encode(Thing(21), 1).to_bytes()]
assert data[0][:4] == b"daws"
sys.stdout.buffer.write(data[int(sys.argv[1])])
"""
    for number in range(3):
        data = subprocess.run([sys.executable, "-c", script, str(number)], capture_output=True, check=True).stdout
        found = loads(data)
        thing = found[0] if isinstance(found, tuple) else found
        assert thing.twice() == 42


def test_a_string_that_says_main_is_still_a_string():
    assert all(found == ["__main__"] for found in ways(["__main__"]))


def test_errors_name_the_argument_and_the_part():
    bad = {"a": [1, threading.Lock()]}
    with pytest.raises(
        UnpicklableError, match=r"argument 2 cannot be pickled: _thread.lock \(in \['a'\]\[1\]\)"
    ) as caught:
        dumps_call((1, bad), {})
    assert caught.value.what == "argument 2" and "\n" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.what) == (str(caught.value), "argument 2")
    with pytest.raises(UnpicklableError, match="argument 'log' cannot be pickled"):
        dumps_call((), {"log": (n for n in [1])})
    for way in (dumps, pack, lambda value, what: encode(value, 10, what)):
        with pytest.raises(UnpicklableError, match="the result cannot be pickled"):
            way(bad, "the result")
    assert loads(dumps_call((1, 2), {"c": 3})) == ((1, 2), {"c": 3})


def test_running_out_of_memory_is_not_called_unpicklable():
    class Greedy:
        def __reduce__(self) -> Any:
            raise MemoryError

    for way in (dumps, pack, pack_by_value, lambda value: encode(value, 10)):
        with pytest.raises(MemoryError):
            way(Greedy())


def test_errors_of_a_value_that_is_loaded_are_its_own():
    class Bad:
        def __reduce__(self) -> Any:
            return [].__getitem__, (0,)

    with pytest.raises(IndexError):
        loads(dumps(Bad()))


SLOTS_THERE = """
import sys
from daws.data import codec
kind, = codec.loads(sys.stdin.buffer.read())
sys.stdout.buffer.write(codec.dumps(kind(7)))
"""


def test_classes_with_slots_have_slots_elsewhere_too():
    class Base:
        __slots__ = "single"

    class Slotted(Base):
        __slots__ = ("__hidden", "__weakref__", "value")

        def __init__(self, value: int) -> None:
            self.value, self.__hidden = value, -value

        def hidden(self) -> int:
            return self.__hidden

    data = subprocess.run(
        [sys.executable, "-c", SLOTS_THERE], input=dumps((Slotted,)), capture_output=True, check=True
    ).stdout
    found = loads(data)
    assert type(found) is Slotted
    assert (found.value, found.hidden()) == (7, -7)
    assert not hasattr(found, "__dict__")


def test_many_threads_at_once():
    value = {"x": np.arange(100), "y": [np.ones(5)] * 3}
    expected = dumps(value)
    wrong: list[None] = []

    def work() -> None:
        wrong.extend(None for _ in range(300) if dumps(value) != expected)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arrow_tables_point_into_the_buffer():
    table = pyarrow.table({"a": list(range(10_000))})
    data = dumps(table)
    found = loads(memoryview(data))
    assert found.equals(table)
    start = np.frombuffer(data, dtype=np.uint8).ctypes.data
    assert start < found["a"].chunks[0].buffers()[1].address < start + len(data)


PLAIN = [
    (),
    (5,),
    (0, -1, 2**70, -(2**3000)),
    (1.5, float("inf"), -0.0),
    (True, False, None),
    ("", "é\ud800", b"\x00d"),
]


@pytest.mark.parametrize("args", PLAIN, ids=repr)
def test_plain_arguments_come_back_as_they_were(args: tuple[Any, ...]):
    packed = codec.dumps_plain(args)
    assert packed[0] == codec.PLAIN_CALL
    back = codec.loads(packed)
    assert back == args and [*map(type, back)] == [*map(type, args)] and repr(back) == repr(args)


@pytest.mark.parametrize("one", [*PLAIN[1:], *PLAIN[2], *PLAIN[3], *PLAIN[4], *PLAIN[5]], ids=repr)
def test_plain_values_come_back_as_they_were(one: Any):
    made = codec.encode(one, 4096)
    assert isinstance(made, bytes) and repr(codec.loads(made)) == repr(one)


class Marked(IntEnum):
    ONE = 1


class Long(str):
    pass


@pytest.mark.parametrize(
    "one", [Marked.ONE, Long("x"), bytearray(b"x"), memoryview(b"x"), np.int64(1), np.ones(2), (1,), [1], "x" * 513]
)
def test_whatever_is_not_plain_is_pickled(one: Any):
    assert codec.dumps_plain((1, one)) == b""
    made = codec.encode(one, 4096)
    assert isinstance(made, bytes) and type(codec.loads(made)) is type(one)


def test_equal_plain_arguments_give_equal_bytes():
    name = "".join(["na", "me"])
    kept = [name, name]
    assert codec.dumps_plain((name, 1.5, kept[0])) == codec.dumps_plain(("na" + "me"[:], 3 / 2, "name"))


def test_a_number_of_many_digits_gets_a_file():
    assert isinstance(codec.encode(1 << 100_000, 4096), codec.Packed)
