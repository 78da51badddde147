"""Small objects on the links between nodes: two ends, and what is said between them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daws.data.codec import WholeFile
from daws.data.files import ObjectFiles
from daws.model.task import NodeId, ObjectTransfer
from daws.runtime.cluster.parcels import SILENT_S, SMALL_BYTES, WINDOW_BYTES, Parcels
from daws.wire.objects import AskObjects, GiveObjects

HERE, THERE = 1, 2


class Clock:
    """As much of an event loop as is asked for: its time passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.calls: list[Call] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, function: Callable[[], None]) -> "Call":
        return self.call_at(self.now_s + delay_s, function)

    def call_at(self, at_s: float, function: Callable[[], None]) -> "Call":
        self.calls.append(Call(at_s, function))
        return self.calls[-1]

    def pass_(self, seconds: float) -> None:
        self.now_s += seconds
        for call in [call for call in self.calls if call.at_s <= self.now_s]:
            self.calls.remove(call)
            if not call.is_cancelled:
                call.function()


class Call:
    def __init__(self, at_s: float, function: Callable[[], None]) -> None:
        self.at_s = at_s
        self.function = function
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class End:
    """One node: what it says stays in `said` until it is delivered."""

    def __init__(self, node: NodeId, files: ObjectFiles, clock: Any) -> None:
        self.node = node
        self.files = files
        self.said: list[Any] = []
        self.came: list[ObjectTransfer] = []
        self.failed: list[ObjectTransfer] = []
        self.withheld: list[tuple[NodeId, list[ObjectTransfer]]] = []
        self.parcels = Parcels(
            clock,
            files,
            lambda to, word: self.said.append(word),
            self.failed.extend,
            lambda peer, some: self.withheld.append((peer, some)),
        )

    def hear(self, other: "End") -> None:
        """All that the other has said so far."""
        words, other.said = other.said, []
        for word in words:
            if isinstance(word, AskObjects):
                self.parcels.on_ask(other.node, word)
            else:
                assert isinstance(word, GiveObjects)
                self.came += self.parcels.on_give(other.node, word)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def files_in(folder: Path) -> ObjectFiles:
    for name in ("memory", "scratch"):
        (folder / name).mkdir(parents=True)
    return ObjectFiles(folder / "memory", folder / "scratch", limit_bytes=1 << 24)


@pytest.fixture
def here(tmp_path: Path, clock: Clock) -> End:
    return End(HERE, files_in(tmp_path / "here"), clock)


@pytest.fixture
def there(tmp_path: Path, clock: Clock) -> End:
    return End(THERE, files_in(tmp_path / "there"), clock)


def content(number: int, size_bytes: int = 5_000) -> bytes:
    return bytes([number]) * size_bytes


def raw(content: bytes, mode: int = 0) -> WholeFile:
    """A file that a command made, who may read it being left to the system unless told."""
    mask = os.umask(0o22)
    os.umask(mask)
    return WholeFile([content], len(content), is_raw=True, mode=mode or 0o666 & ~mask)


def from_there(*objects: int, size_bytes: int = 5_000) -> list[ObjectTransfer]:
    return [ObjectTransfer(object_, size_bytes, THERE) for object_ in objects]


def test_objects_come_as_they_are_with_or_without_files(here: End, there: End):
    there.files.hold(1, content(1))
    there.files.put_packed(2, raw(content(2)))
    here.parcels.ask(THERE, from_there(1, 2))
    there.hear(here)
    here.hear(there)
    assert here.came == from_there(1, 2) and not here.failed and not here.withheld
    assert [here.files.held(number) for number in (1, 2)] == [content(1), content(2)]


def test_what_cannot_be_given_is_left_to_a_stream(here: End, there: End):
    there.files.put_packed(1, raw(content(1)))
    there.files.put_packed(2, raw(content(2, SMALL_BYTES + 1)))
    there.files.put_packed(3, raw(content(3)))
    there.files.path(1)
    there.files.limit_bytes, limit_bytes = 1, there.files.limit_bytes
    there.files.pin(3)
    there.files.make_room()  # 1 is on disk now
    there.files.limit_bytes = limit_bytes
    here.parcels.ask(THERE, from_there(1, 2, 3, 4))
    there.hear(here)
    here.hear(there)
    assert here.came == from_there(3)
    assert here.withheld == [(THERE, from_there(1, 2, 4))]


def test_files_with_a_mode_of_their_own_are_left_to_a_stream(here: End, there: End):
    there.files.put_packed(1, raw(content(1), 0o600))
    there.files.put_packed(2, raw(content(2), 0o755))
    here.parcels.ask(THERE, from_there(1, 2))
    there.hear(here)
    here.hear(there)
    assert not here.came and here.withheld == [(THERE, from_there(1, 2))]


def test_only_so_much_is_on_its_way(here: End, there: End):
    count = 40
    size_bytes = WINDOW_BYTES // 16
    for number in range(count):
        there.files.hold(number, content(number, size_bytes))
    wanted = from_there(*range(count), size_bytes=size_bytes)
    here.parcels.ask(THERE, wanted)
    turns = 0
    while here.said:
        assert sum([len(word.objects) for word in here.said]) <= 16
        there.hear(here)
        here.hear(there)
        turns += 1
    assert here.came == wanted and turns == 3


def test_who_asks_for_too_much_at_a_time_gets_a_part_of_it(there: End):
    for number in range(40):
        there.files.hold(number, content(number, SMALL_BYTES))
    there.parcels.on_ask(HERE, AskObjects(tuple(range(40))))
    (word,) = there.said
    assert sum([len(one) for _, one in word.given]) <= WINDOW_BYTES + SMALL_BYTES
    assert len(word.given) + len(word.withheld) == 40


def test_a_node_that_is_gone_gives_nothing(here: End):
    many = from_there(*range(100), size_bytes=SMALL_BYTES)
    here.parcels.ask(THERE, many)
    here.parcels.on_lost(THERE)
    here.parcels.on_lost(THERE)
    assert here.failed == many


def test_a_node_that_says_nothing_is_given_up_and_not_heard_afterwards(here: End, there: End, clock: Clock):
    for number in (1, 2, 3):
        there.files.hold(number, content(number))
    here.parcels.ask(THERE, from_there(1))
    clock.pass_(SILENT_S - 1)
    here.parcels.ask(THERE, from_there(2))
    there.hear(here)
    word = there.said.pop()
    here.hear(there)
    assert here.came == from_there(1), "whoever gives something is not silent"
    clock.pass_(SILENT_S - 1)
    assert not here.failed
    clock.pass_(1)
    assert here.failed == from_there(2)
    there.said = [word]
    here.hear(there)
    assert here.came == from_there(1) and 2 not in here.files
    here.parcels.ask(THERE, from_there(3))
    there.hear(here)
    here.hear(there)
    assert here.came == from_there(1, 3), "it may be asked again"


def test_what_nobody_asked_for_or_what_is_too_large_is_not_kept(here: End):
    here.parcels.ask(THERE, from_there(1, 2))
    unasked, large, empty = (7, content(7)), (1, content(1, SMALL_BYTES + 1)), (2, b"")
    assert here.parcels.on_give(THERE, GiveObjects((unasked, large, empty))) == []
    assert len(here.files) == 0 and here.withheld == [(THERE, from_there(1, 2))]


def test_nothing_is_asked_for_here_where_room_may_have_to_be_made(here: End, tmp_path: Path, clock: Clock):
    small, large = ObjectTransfer(1, 5_000, THERE), ObjectTransfer(1, SMALL_BYTES + 1, THERE)
    assert here.parcels.takes(small) and not here.parcels.takes(large)
    here.files.limit_bytes = 10_000
    here.files.hold(9, content(9, 9_000))
    assert not here.parcels.takes(small), "memory is scarce"
    on_disk = End(HERE, ObjectFiles(None, tmp_path), clock)
    assert not on_disk.parcels.takes(small), "there is no memory"


def test_at_the_end_nobody_is_watched(here: End, clock: Clock):
    here.parcels.ask(THERE, from_there(1))
    here.parcels.close()
    clock.pass_(2 * SILENT_S)
    assert not here.failed
