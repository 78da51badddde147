"""The floor: what a bare event heap costs in Python on this machine, with as many entries as a cluster has executors.

No simulator of this kind can be faster, whatever it leaves out; dividing by it takes the machine out of the figures.
"""

import time
from heapq import heappop, heappush


def heap_events_per_s(entries: int = 2048, events: int = 400_000) -> float:
    heap: list[tuple[int, int, int, object]] = []
    for number in range(entries):
        heappush(heap, (number * 7919 % 100_000, number, number, None))
    began = time.perf_counter()
    for number in range(entries, entries + events):
        at, _, to, event = heappop(heap)
        heappush(heap, (at + 50_000 + number * 7919 % 100_000, number, to, event))
    return events / (time.perf_counter() - began)
