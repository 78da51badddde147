"""`python -m bench.data`: values to bytes and objects to files, beside what they are built on, interleaved in one run.

Small values against plain pickle; 5 MB arrays written here and read by another process, against a raw write and map of
the same bytes. Ratios are what counts: the machine's own speed is in both columns.
"""

import argparse
import mmap
import os
import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from daws.data.codec import dumps, load_file, loads, pack
from daws.data.segments import Segments
from daws.data.session import SessionFolders

ARRAY = np.arange(5 * (1 << 20) // 8, dtype=np.float64)
SMALL: dict[str, Any] = {
    "1": 1,
    "(3, 'abc', 2.5)": (3, "abc", 2.5),
    "((x,), {'y': [1, 2, 3]})": (("some text",), {"y": [1, 2, 3]}),
    "100 integers": list(range(1000, 1100)),
    "array of 10": np.arange(10),
    "array of 4,000": np.arange(4000),
}


def seconds(call: Callable[[], object], count: int) -> float:
    """Per call."""
    began = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - began) / count


def beside(ours: Callable[[], object], floor: Callable[[], object], count: int, rounds: int) -> tuple[float, float]:
    """The best of both, measured in turns: a round is shorter than a time slice, so others' work shows in few."""
    pairs = [(seconds(ours, count), seconds(floor, count)) for _ in range(rounds)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def small_values(count: int, rounds: int) -> None:
    print(f"{'µs per value':28} {'dumps':>7} {'pickle':>7} {'more':>7}   {'loads':>7} {'pickle':>7} {'more':>7}")
    for name, value in SMALL.items():
        ours, plain = dumps(value), pickle.dumps(value, 5)
        there = beside(lambda value=value: dumps(value), lambda value=value: pickle.dumps(value, 5), count, rounds)  # type: ignore[misc]
        back = beside(lambda ours=ours: loads(ours), lambda plain=plain: pickle.loads(plain), count, rounds)  # type: ignore[misc]
        cells = [f"{a * 1e6:7.2f} {b * 1e6:7.2f} {(a - b) * 1e6:+7.2f}" for a, b in (there, back)]
        print(f"{name:28} {'   '.join(cells)}", flush=True)


def raw_write(path: str, data: memoryview) -> None:
    """What any writer has to do: make a file and copy the bytes into it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.ftruncate(fd, len(data))
        with mmap.mmap(fd, len(data)) as memory:
            memory[:] = data
    finally:
        os.close(fd)


def raw_sum(path: str) -> float:
    with open(path, "rb") as file:
        memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    return float(np.frombuffer(memory, dtype=np.float64).sum())


def serve() -> None:
    """The other process: add up what is in the files whose paths come in, say how long that took."""
    for line in sys.stdin:
        kind, path = line.split()
        began = time.perf_counter()
        total = float(load_file(path).sum()) if kind == "ours" else raw_sum(path)
        print(time.perf_counter() - began, total, flush=True)


class Reader:
    def __init__(self) -> None:
        command = [sys.executable, "-m", "bench.data", "--serve"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, kind: str, path: str) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{kind} {path}\n")
        self.process.stdin.flush()
        took, total = map(float, self.process.stdout.readline().split())
        assert total == float(ARRAY.sum())
        return took

    def close(self) -> None:
        self.process.communicate()


def large_arrays(rounds: int) -> None:
    reader = Reader()
    taken: dict[str, list[float]] = {}

    def measure(name: str, call: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        found = call()
        taken.setdefault(name, []).append(time.perf_counter() - began)
        return found

    with SessionFolders() as session:
        place = Segments(*session.node_folders(0))
        room = 10 * ARRAY.nbytes
        raw_reused = f"{session.memory}/raw-reused"
        raw_write(raw_reused, ARRAY.data.cast("B"))
        for number in range(rounds):
            raw = f"{session.memory}/raw-{number}"
            measure("write, fresh: raw", lambda raw=raw: raw_write(raw, ARRAY.data.cast("B")))  # type: ignore[misc]
            fresh = measure("write, fresh: ours", lambda: place.write(pack(ARRAY), 1))
            place.recycle(fresh, room)
            measure("write, reused: raw", lambda: raw_write(raw_reused, ARRAY.data.cast("B")))
            path = measure("write, reused: ours", lambda: place.write(pack(ARRAY), 1))
            taken.setdefault("read and add: raw", []).append(reader.seconds("raw", raw))
            taken.setdefault("read and add: ours", []).append(reader.seconds("ours", path))
            measure("map: ours", lambda path=path: load_file(path))  # type: ignore[misc]
            measure("add alone", ARRAY.sum)
            os.unlink(raw)
            os.unlink(path)
    reader.close()
    show_arrays(taken)


def show_arrays(taken: dict[str, list[float]]) -> None:
    print(f"\n{'5 MB arrays, GB/s':22} {'median':>8} {'best':>8}   times raw (medians)")
    medians = {name: statistics.median(times) for name, times in taken.items()}
    for name, median in medians.items():
        raw = medians.get(name.replace("ours", "raw"), median)
        ratio = f"{raw / median:12.2f}" if raw != median else ""
        best = min(taken[name])
        print(f"{name:22} {ARRAY.nbytes / median / 1e9:8.2f} {ARRAY.nbytes / best / 1e9:8.2f} {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.data", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--count", type=int, default=500, help="values per round")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve()
    small_values(arguments.count, arguments.rounds)
    large_arrays(arguments.rounds)


if __name__ == "__main__":
    main()
