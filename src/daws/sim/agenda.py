"""The events that are still to happen in a simulation, in the order of time.

A large cluster has one event under way for each of its cores. A heap of a hundred thousand events fits into no cache,
and each event that is taken out of it is compared with thirty others. Therefore only the events of the next window of
time are in the heap. The others lie unsorted in later windows, and become the heap when their window comes. A small
cluster has one window.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

Entry = tuple[int, int, int, Any]
"""An event with its time and address: (time, sequence number, address, event)."""

WINDOWED_CORES_MIN = 4096
WINDOW_EVENTS = 256
"""The number of ends of runs that one window is to hold, about."""
SHIFT_MIN, SHIFT_MAX = 20, 62
"""The least and the greatest length of a window, as the binary logarithm of nanoseconds. The least is a millisecond: a
shorter window would often hold only the timers of idle nodes, and each list takes memory. The greatest is all the time
there is."""


class Windows(dict[int, list[Entry]]):
    """Events by the number of their window. A missing window is created when it is first used."""

    __slots__ = ("order",)

    def __init__(self) -> None:
        self.order: list[int] = []

    def __missing__(self, window: int) -> list[Entry]:
        heappush(self.order, window)
        events: list[Entry] = []
        self[window] = events
        return events


class Agenda:
    """The events that are to come. Code that adds many of them copies the body of `push` instead of calling it."""

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
        """Turn the next window into the heap. Called when the heap is empty."""
        window = heappop(self.windows.order)
        self.heap += self.windows.pop(window)
        heapify(self.heap)
        self.horizon_ns = window + 1 << self.shift

    def clear(self) -> None:
        """Drop all events."""
        self.heap.clear()
        self.windows.clear()
        self.windows.order.clear()

    def __len__(self) -> int:
        return len(self.heap) + sum(map(len, self.windows.values()))

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over all events, in no order."""
        yield from self.heap
        for events in self.windows.values():
            yield from events


def window_shift(cores: int, mean_length_ns: float) -> int:
    """The length of a window, as a binary logarithm, for this many cores and this mean length of tasks. The ends of the
    tasks that run are spread over about twice that length."""
    if cores < WINDOWED_CORES_MIN:
        return SHIFT_MAX
    width_ns = 2 * mean_length_ns * WINDOW_EVENTS / cores
    return min(SHIFT_MAX, max(SHIFT_MIN, int(width_ns).bit_length() - 1))
