"""`python -m bench.commands`: programs per second, beside a bare loop of `posix_spawn` in the same run.

The floor is one process per worker that starts the same program and waits for it, and does nothing else: no graph, no
working directory, nothing kept of what is printed. Both are measured in turns, because machines are noisy: read the
ratios. The aim is for 2 workers on 2 cores.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

import daws

PROGRAM = "/bin/true"
AIM_PER_S = 700


def bare_per_s(workers: int, count: int) -> float:
    """The floor: so many processes in a loop each."""
    loop = (
        "import os, sys\n"
        "for _ in range(int(sys.argv[1])):\n"
        f"    os.waitpid(os.posix_spawn({PROGRAM!r}, [{PROGRAM!r}], os.environ), 0)\n"
    )
    ready, go = os.pipe(), os.pipe()
    begin = f"import os\nos.write({ready[1]}, b'x')\nos.read({go[0]}, 1)\n"
    for fd in (ready[1], go[0]):
        os.set_inheritable(fd, True)
    each = count // workers
    pids = [
        os.posix_spawn(sys.executable, [sys.executable, "-c", begin + loop, str(each)], os.environ)
        for _ in range(workers)
    ]
    for _ in pids:
        os.read(ready[0], 1)
    began = time.perf_counter()
    os.write(go[1], b"x" * workers)
    for pid in pids:
        os.waitpid(pid, 0)
    took = time.perf_counter() - began
    for fd in (*ready, *go):
        os.close(fd)
    return each * workers / took


def ours_per_s(cluster: daws.Cluster, count: int) -> float:
    began = time.perf_counter()
    runs = [cluster.run([PROGRAM]) for _ in range(count)]
    for run in runs:
        run.result()
    return count / (time.perf_counter() - began)


def files_per_s(cluster: daws.Cluster, given: daws.File, count: int) -> float:
    """With a folder of its own, an input and an output."""
    began = time.perf_counter()
    runs = [cluster.run(["cp", given, daws.Out("copy")]) for _ in range(count)]
    for run in runs:
        run.result()
    return count / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.commands", description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--count", type=int, default=1000, help="programs per round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    found: dict[str, list[float]] = {"bare loop": [], "daws": [], "daws, cp of a file": []}
    with daws.Cluster(arguments.workers) as cluster, tempfile.NamedTemporaryFile() as file:
        file.write(bytes(100_000))
        file.flush()
        given = daws.File(file.name)
        ours_per_s(cluster, 10 * arguments.workers)
        for _ in range(arguments.rounds):
            found["bare loop"].append(bare_per_s(arguments.workers, arguments.count))
            found["daws"].append(ours_per_s(cluster, arguments.count))
            found["daws, cp of a file"].append(files_per_s(cluster, given, arguments.count // 4))
    floor = statistics.median(found["bare loop"])
    print(f"{PROGRAM}, {arguments.workers} workers, {arguments.rounds} rounds of {arguments.count:,}: per second")
    print(f"{'':20} {'median':>8} {'least':>8} {'most':>8} {'of floor':>9}")
    for name, rates in found.items():
        median = statistics.median(rates)
        print(f"{name:20} {median:8,.0f} {min(rates):8,.0f} {max(rates):8,.0f} {median / floor:9.2f}")
    print(f"aim on 2 cores: {AIM_PER_S}; per round, daws is {_spread(found)} of the floor")


def _spread(found: dict[str, list[float]]) -> str:
    ratios = [ours / bare for ours, bare in zip(found["daws"], found["bare loop"], strict=True)]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


if __name__ == "__main__":
    main()
