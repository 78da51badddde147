"""What is still to happen in a simulation, in the order of time.

A large cluster has an event for each of its cores under way, and a heap of a hundred thousand of them is in no cache:
each that is taken out of it is compared with thirty others. So only those of the next moment are in the heap. The
others lie in windows of time, unsorted, and become the heap when their window comes. A small cluster has one window.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

Entry = tuple[int, int, int, Any]
"""(time, sequence number, address, event)."""

WINDOWED_CORES_MIN = 4096
WINDOW_EVENTS = 256
"""About so many of the ends of runs are to be in one window."""
SHIFT_MIN, SHIFT_MAX = 20, 62
"""A window is 2 to the power of so many nanoseconds long: a millisecond at least (in shorter ones the timers of idle
nodes would be alone, and each list takes room), and at most all the time there is."""


class Windows(dict[int, list[Entry]]):
    """Events by the number of their window; those that have none yet get one."""

    __slots__ = ("order",)

    def __init__(self) -> None:
        self.order: list[int] = []

    def __missing__(self, window: int) -> list[Entry]:
        heappush(self.order, window)
        events: list[Entry] = []
        self[window] = events
        return events


class Agenda:
    """The events that are to come. Whoever has many of them to add does himself what `push` does."""

    __slots__ = ("heap", "horizon_ns", "shift", "windows")

    def __init__(self, shift: int = SHIFT_MAX) -> None:
        self.shift = shift
        self.heap: list[Entry] = []  # all that comes before the horizon
        self.windows = Windows()
        self.horizon_ns = 1 << shift

    def push(self, entry: Entry) -> None:
        if entry[0] < self.horizon_ns:
            heappush(self.heap, entry)
        else:
            self.windows[entry[0] >> self.shift].append(entry)

    def refill(self) -> None:
        """The heap is empty: the next window is it."""
        window = heappop(self.windows.order)
        self.heap += self.windows.pop(window)
        heapify(self.heap)
        self.horizon_ns = window + 1 << self.shift

    def clear(self) -> None:
        """Nothing is to happen any more."""
        self.heap.clear()
        self.windows.clear()
        self.windows.order.clear()

    def __len__(self) -> int:
        return len(self.heap) + sum(map(len, self.windows.values()))

    def __iter__(self) -> Iterator[Entry]:
        """In no order."""
        yield from self.heap
        for events in self.windows.values():
            yield from events


def window_shift(cores: int, mean_length_ns: float) -> int:
    """How long windows are where so many cores run tasks that take so long on average: their ends are spread over about
    twice that time."""
    if cores < WINDOWED_CORES_MIN:
        return SHIFT_MAX
    width_ns = 2 * mean_length_ns * WINDOW_EVENTS / cores
    return min(SHIFT_MAX, max(SHIFT_MIN, int(width_ns).bit_length() - 1))
