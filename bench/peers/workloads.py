"""What every system is given, and what is measured. Results are checked: a fast wrong answer counts as a failure."""

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from bench.peers.graphs import GRAPHS, Graph, depths_of
from bench.peers.measure import moved_bytes, settled_rss_bytes, with_marker
from bench.peers.systems.base import System
from bench.peers.tasks import OBJECT_BYTES, hold, increment, no_op, sleep, spin

Figures = dict[str, float]
MARKER = "DAWS_BENCH_RUN"
"""Set in the environment of each run, so that whatever it starts can be found."""


class Effort(Struct, frozen=True):
    """How long to measure. `quick` is for trying whether all of it works; its figures say little."""

    seconds: float = 2.5
    trips: int = 300
    makers: int = 200
    efficiency_s: float = 2.0
    pending_share: float = 1.0
    scripts: int = 3
    many: int = 1_000_000
    few: int = 10_000


FULL = Effort()
QUICK = Effort(0.1, 20, 8, 0.1, 0.02, 1, 4_000, 1_000)


def sized(run: Callable[[int], float], seconds: float) -> tuple[int, float]:
    """Find a size with which `run` takes about so long; the smaller runs before it warm everything up."""
    size = 32
    while (took_s := run(size)) < seconds / 2:
        size = int(size * min(16.0, max(1.5, seconds / took_s)))
    return size, took_s


def rate(run: Callable[[int], float], seconds: float) -> Figures:
    """Tasks per second; and the client's processor time per task, which other programs disturb less."""
    used_s = 0.0

    def timed(size: int) -> float:
        nonlocal used_s
        began = time.process_time()
        took_s = run(size)
        used_s = time.process_time() - began
        return took_s

    size, took_s = sized(timed, seconds)
    return {"value": size / took_s, "size": size, "took_s": took_s, "client_us": used_s / size * 1e6}


def submit_all(system: System, count: int) -> float:
    submit = system.submit
    began = time.perf_counter()
    results = system.gather([submit(no_op) for _ in range(count)])
    took_s = time.perf_counter() - began
    assert results == [None] * count
    return took_s


def futures(system: System, effort: Effort) -> Figures:
    return rate(lambda count: submit_all(system, count), effort.seconds)


def arguments(system: System, effort: Effort) -> Figures:
    """Futures with one small argument and a small result."""

    def run(count: int) -> float:
        submit = system.submit
        began = time.perf_counter()
        results = system.gather([submit(increment, number) for number in range(count)])
        took_s = time.perf_counter() - began
        assert results == [*range(1, count + 1)]
        return took_s

    return rate(run, effort.seconds)


def bulk_map(system: System, effort: Effort) -> Figures:
    def run(chunk: int | None, count: int) -> float:
        items = range(count)
        began = time.perf_counter()
        total = system.map(items, chunk)
        took_s = time.perf_counter() - began
        assert total == count * (count + 1) // 2
        return took_s

    best: tuple[float, int | None] = (0.0, None)
    for chunk in system.chunks:
        size, took_s = sized(partial(run, chunk), effort.seconds / 4)
        best = max(best, (size / took_s, chunk), key=lambda one: one[0])
    return rate(partial(run, best[1]), effort.seconds) | {"chunk": best[1] or 0}


def trip(system: System, effort: Effort) -> Figures:
    took = []
    for _ in range(effort.trips + effort.trips // 5):
        began = time.perf_counter()
        system.gather([system.submit(no_op)])
        took.append(time.perf_counter() - began)
    took = sorted(took[effort.trips // 5 :])
    return {"value": statistics.median(took), "p95_s": took[int(len(took) * 0.95)], "size": len(took)}


def graph_of(kind: str) -> Callable[[System, Effort], Figures]:
    def run(system: System, effort: Effort) -> Figures:
        def one(count: int) -> float:
            parents, sinks = build(count)
            began = time.perf_counter()
            found = system.run_graph(parents, sinks)
            took_s = time.perf_counter() - began
            depths = depths_of(parents)
            assert found == [depths[sink] for sink in sinks]
            return took_s * count / len(parents)  # a tree has one task less, or none

        return rate(one, effort.seconds)

    def build(count: int) -> Graph:
        return GRAPHS[kind](count)

    return run


def objects(system: System, effort: Effort) -> Figures:
    """Arrays of 5 MB, each read by four of twice as many readers."""
    _read_pairs(system, max(4, effort.makers // 10))
    everybody = [*with_marker(f"{MARKER}={os.environ.get(MARKER)}"), os.getpid()]
    before = moved_bytes(everybody)
    began = time.perf_counter()
    _read_pairs(system, effort.makers)
    took_s = time.perf_counter() - began
    moved = moved_bytes(everybody) - before + system.unseen_bytes_per_object * effort.makers
    return {"value": took_s, "moved_bytes": moved, "size": effort.makers * OBJECT_BYTES}


def _read_pairs(system: System, makers: int) -> None:
    pairs = [(number % makers, (number * 7 + 3) % makers) for number in range(2 * makers)]
    sums = system.objects(makers, pairs)
    assert sums == [(one + two) * (OBJECT_BYTES // 8) for one, two in pairs]


def efficiency_of(function: Callable[[float], None], task_s: float) -> Callable[[System, Effort], Figures]:
    def run(system: System, effort: Effort) -> Figures:
        system.gather([system.submit(function, task_s) for _ in range(20)])
        count = int(effort.efficiency_s * WORKERS / task_s)
        began = time.perf_counter()
        system.gather([system.submit(function, task_s) for _ in range(count)])
        took_s = time.perf_counter() - began
        return {"value": count * task_s / (took_s * WORKERS), "size": count, "took_s": took_s}

    return run


def commands(system: System, effort: Effort) -> Figures:
    def run(count: int) -> float:
        began = time.perf_counter()
        system.commands(count)
        return time.perf_counter() - began

    return rate(run, effort.seconds)


def memory(system: System, effort: Effort) -> Figures:
    """How much this process grows with futures that wait because all workers are busy."""
    system.gather([system.submit(no_op) for _ in range(1_000)])
    count = int(system.pending_count * effort.pending_share)
    with tempfile.NamedTemporaryFile() as held:
        holders = [system.submit(hold, held.name) for _ in range(WORKERS)]
        gc.collect()
        before = settled_rss_bytes()
        pending = [system.submit(no_op) for _ in range(count)]
        grown = settled_rss_bytes() - before
    system.gather(holders)
    assert system.gather(pending) == [None] * count
    return {"value": grown / count, "size": count}


def million(system: System, effort: Effort) -> Figures:
    """The rate with very many futures, as a share of that with few, in one session."""
    submit_all(system, effort.few)
    few = statistics.median([effort.few / submit_all(system, effort.few) for _ in range(5)])
    many = effort.many / submit_all(system, effort.many)
    return {"value": many / few, "few_per_s": few, "many_per_s": many, "size": effort.many}


def script(name: str, effort: Effort) -> Figures:
    """A whole Python process that starts a system, runs 100 tasks and ends. The first one only fills caches."""
    took = []
    for _ in range(effort.scripts + 1):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "bench.peers.script", name],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        took.append(time.perf_counter() - began)
    return {"value": statistics.median(took[1:]), "size": 100}


class Workload(Struct, frozen=True):
    """`run` takes a running system; without one the workload starts systems itself, by name."""

    name: str
    title: str
    unit: str
    run: Callable[[System, Effort], Figures] | None
    higher_is_better: bool = True
    workers: int = 2


WORKERS = 2
WORKLOADS = {
    one.name: one
    for one in (
        Workload("futures", "no-op futures, one by one", "/s", futures),
        Workload("argument", "futures with an int and an int back", "/s", arguments),
        Workload("map", "bulk map, best chunk size", "/s", bulk_map),
        Workload("trip", "round trip, median", "s", trip, higher_is_better=False),
        Workload("pipeline", "chains of 50 tiny tasks", "/s", graph_of("pipeline")),
        Workload("tree", "binary tree of tiny tasks", "/s", graph_of("tree")),
        Workload("random", "random graph of tiny tasks", "/s", graph_of("random")),
        Workload("objects", "5 MB objects, 4 workers", "s", objects, higher_is_better=False, workers=4),
        Workload("spin-1ms", "1 ms tasks, spinning", "%", efficiency_of(spin, 0.001)),
        Workload("spin-10ms", "10 ms tasks, spinning", "%", efficiency_of(spin, 0.01)),
        Workload("sleep-10ms", "10 ms tasks, sleeping", "%", efficiency_of(sleep, 0.01)),
        Workload("commands", "commands: /bin/true", "/s", commands),
        Workload("script", "script of 100 tasks, in all", "s", None, higher_is_better=False),
        Workload("memory", "memory per pending future", "B", memory, higher_is_better=False),
        Workload("million", "1 M futures against 10,000", "×", million),
    )
}
