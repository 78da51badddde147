"""What is to happen comes in the order of time, whether it is kept in one heap or in windows."""

from heapq import heappop

import pytest
from msgspec.structs import asdict

from daws.sim.agenda import SHIFT_MAX, SHIFT_MIN, WINDOWED_CORES_MIN, Agenda, Entry, window_shift
from daws.sim.cluster import cluster_of
from daws.sim.kernel import Kernel
from daws.sim.simulate import Settings, simulate
from daws.strategy import parse_strategy
from daws.strategy.rng import SplitMix64
from daws.workloads import parse_workload


def take(agenda: Agenda) -> Entry:
    if not agenda.heap:
        agenda.refill()
    return heappop(agenda.heap)


@pytest.mark.parametrize("shift", [4, 10, SHIFT_MAX])
def test_events_come_in_the_order_of_time_also_those_that_come_up_meanwhile(shift: int):
    rng = SplitMix64(7)
    agenda = Agenda(shift)
    waiting: list[Entry] = []
    now_ns = sequence = 0
    for _ in range(3000):
        if len(waiting) < 50 or rng.below(2):
            entry = (now_ns + rng.below(5000), sequence, 0, None)
            sequence += 1
            agenda.push(entry)
            waiting.append(entry)
        else:
            first = min(waiting)
            assert take(agenda) == first
            waiting.remove(first)
            now_ns = first[0]
        assert len(agenda) == len(waiting)
    assert sorted(agenda) == sorted(waiting)
    assert bool(agenda.windows) == (shift < SHIFT_MAX), "else all of them are in the heap"


def test_who_has_no_events_left_says_so():
    agenda = Agenda(10)
    agenda.push((5000, 0, 0, None))
    agenda.clear()
    assert len(agenda) == 0
    with pytest.raises(IndexError):
        take(agenda)


def test_windows_are_for_large_clusters_and_shorter_the_more_happens():
    assert window_shift(WINDOWED_CORES_MIN - 1, 50e6) == SHIFT_MAX
    assert window_shift(8192, 50e6) == 21, "2 ms"
    assert window_shift(200_000, 50e6) == SHIFT_MIN
    assert window_shift(200_000, 0.0) == SHIFT_MIN
    assert window_shift(4096, 1e40) == SHIFT_MAX


@pytest.mark.parametrize("strategy", ["daws", "adage", "flds"])
def test_nothing_else_changes_with_windows(strategy: str):
    def cut(kernel: Kernel) -> None:
        kernel.agenda = Agenda(SHIFT_MIN)

    graph = parse_workload("fan-out:tasks=300").build(5, 2, 3)
    same, other = (
        asdict(
            simulate(graph, cluster_of(5, 2), parse_strategy(strategy), Settings(seed=3, digest=True), prepare=one)[0]
        )
        for one in (None, cut)
    )
    for figure in ("wall_s", "peak_rss_mb"):
        del same[figure], other[figure]
    assert same == other
