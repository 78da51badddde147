"""The function behind emulated tasks."""

import pickle
import time

import pytest

from daws.data.codec import dumps, loads
from daws.workflows.emulated import SMALL_BYTES, Emulated, content_of

MS = 1_000_000


@pytest.mark.parametrize("spin", [False, True])
def test_it_takes_its_time(spin):
    began_ns = time.monotonic_ns()
    assert Emulated("work", spin)([], 20 * MS, ()) is None
    assert time.monotonic_ns() - began_ns >= 20 * MS


@pytest.mark.parametrize("size", [0, 1, SMALL_BYTES, SMALL_BYTES + 1, 1_000_000])
def test_objects_have_their_size_and_can_be_read(size):
    made = loads(dumps(Emulated("work")([], 0, (size,))))
    assert memoryview(made).nbytes == size
    assert Emulated("work")([made, None], 0, ()) is None


def test_several_outputs_are_several_objects():
    made = Emulated("work")([], 0, (3, 5))
    assert isinstance(made, list)
    assert [memoryview(one).nbytes for one in made] == [3, 5]


def test_kinds_travel_by_name():
    function = pickle.loads(pickle.dumps(Emulated("mProject", True)))
    assert (function.__name__, function.spin) == ("mProject", True)
    assert pickle.dumps(Emulated("a")) != pickle.dumps(Emulated("b"))


def test_large_objects_are_not_copied_when_they_are_read():
    data = dumps(content_of(100_000))
    assert isinstance(loads(data), memoryview)
