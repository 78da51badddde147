"""`python -m bench.memory`: how much memory arrays take with daws, joblib and Dask, and how long it takes.

Two programs as people write them, with two workers each:

- `fit`: 200 tasks read one array of 200 MB.
- `images`: 500 images of 4 MB are made, filtered and stacked two by two, until there is one.

Each run is a process of its own with all that it starts. In turns, system after system, so that a slow moment of the
machine hits all of them. Memory is what the machine would get back if the run ended: the private memory of all
processes of the run, and what is in /dev/shm, where each page counts once, whoever maps it. "above idle" is the highest
moment minus what the system takes with its workers started and numpy imported, before the first array is there.
`copies` is that in units of the array, or of one image.

It needs an environment with the peers (`make .venv-peers/.setup-done`); a system that is not installed is left out.
Nothing else should run meanwhile, nor use /dev/shm.
"""

import argparse
import importlib.util
import json
import os
import select
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MARK = "DAWS_BENCH_MEMORY"
LOOK_S = 0.02
WORKERS = 2
LIBRARIES = {
    "daws": "daws",
    "daws-threads": "daws",
    "joblib": "joblib",
    "dask": "distributed",
    "dask-threads": "distributed",
}


# -- the programs ------------------------------------------------------------------------------------------------------


def fit(array: Any, number: int) -> float:
    return float(array.sum()) + number


def make(number: int, side: int) -> Any:
    return np.full((side, side), number % 7, np.float32)


def filtered(image: Any) -> Any:
    return (image + np.roll(image, 1, 0) + np.roll(image, 1, 1)) / 3


def stacked(one: Any, other: Any) -> Any:
    return one + other


def tree(items: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    """Two by two until there is one; nothing that was joined is held any longer."""
    while len(items) > 1:
        joined = []
        while items:
            one = items.pop(0)
            joined.append(join(one, items.pop(0)) if items else one)
        items = joined
    return items[0]


def fit_daws(cluster: Any, array: Any, count: int) -> list[float]:
    futures = [cluster.submit(fit, array, number) for number in range(count)]
    return [future.result() for future in futures]


def images_daws(cluster: Any, count: int, side: int) -> float:
    made = [cluster.submit(filtered, cluster.submit(make, number, side)) for number in range(count)]
    return float(tree(made, lambda one, other: cluster.submit(stacked, one, other)).result().sum())


def fit_joblib(parallel: Any, array: Any, count: int) -> list[float]:
    from joblib import delayed

    return list(parallel(delayed(fit)(array, number) for number in range(count)))


def images_joblib(parallel: Any, count: int, side: int) -> float:
    """It has no graphs: whoever uses it goes level by level."""
    from joblib import delayed

    images = parallel(delayed(make)(number, side) for number in range(count))
    images = parallel(delayed(filtered)(image) for image in images)
    while len(images) > 1:
        pairs = [images[at : at + 2] for at in range(0, len(images) - 1, 2)]
        rest = images[len(images) // 2 * 2 :]
        del images
        images = list(parallel(delayed(stacked)(one, other) for one, other in pairs)) + rest
    return float(images[0].sum())


def fit_dask(client: Any, array: Any, count: int) -> list[float]:
    """With `scatter`, as its documentation says: without, it sends the array with each task."""
    scattered = client.scatter(array, broadcast=True, hash=False)
    return list(client.gather([client.submit(fit, scattered, number) for number in range(count)]))


def images_dask(client: Any, count: int, side: int) -> float:
    import dask

    images = [dask.delayed(filtered)(dask.delayed(make)(number, side)) for number in range(count)]
    return float(client.compute(tree(images, dask.delayed(stacked))).result().sum())


def start(system: str) -> Any:
    if system.startswith("daws"):
        import daws

        kind = {"kind": "threads"} if system == "daws-threads" else {}
        return daws.Cluster(WORKERS, **kind)  # type: ignore[arg-type]
    if system == "joblib":
        from joblib import Parallel

        return Parallel(n_jobs=WORKERS)
    from distributed import Client

    if system == "dask-threads":
        return Client(processes=False, n_workers=1, threads_per_worker=WORKERS, dashboard_address=None)
    return Client(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None)


def run_one(program: str, system: str, size: int, count: int) -> None:
    """In the process of a run: says when it is ready, goes on when told, and says how long it took."""
    do_fit, do_images = PROGRAMS[system.partition("-")[0]]
    with start(system) as used:
        do_fit(used, np.ones(10), 4 * WORKERS)  # all workers are there and have imported numpy
        print("ready", flush=True)
        sys.stdin.readline()
        if program == "fit":
            array = np.random.default_rng(1).random(size // 8)
            began_s = time.perf_counter()
            found = do_fit(used, array, count)
            took_s = time.perf_counter() - began_s
            expected = float(array.sum())
            is_right = all(abs(one - expected - number) < 1e-3 for number, one in enumerate(found))
        else:
            side = int((size // 4) ** 0.5)
            began_s = time.perf_counter()
            total = do_images(used, count, side)
            took_s = time.perf_counter() - began_s
            is_right = abs(total / side**2 - sum(number % 7 for number in range(count))) < 0.1
        print(json.dumps({"seconds": took_s, "is_right": bool(is_right)}), flush=True)
        sys.stdin.readline()


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "daws": (fit_daws, images_daws),
    "joblib": (fit_joblib, images_joblib),
    "dask": (fit_dask, images_dask),
}


# -- watching ----------------------------------------------------------------------------------------------------------


def processes(run: int, mark: str) -> list[str]:
    """A run and all that it has started: by their parents, and by their environment. (Some are nobody's children any
    more, others write over what the kernel shows of their environment.)"""
    wanted = f"{MARK}={mark}".encode()
    found = {str(run)}
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parents[name] = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1]
                if wanted in Path(f"/proc/{name}/environ").read_bytes():
                    found.add(name)
            except OSError:
                pass  # it has ended, or is not ours
    while more := {name for name, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def memory_bytes(pids: list[str], shared_before: int) -> int:
    """Private memory of these processes, and what is in /dev/shm since then."""
    total = shared_bytes() - shared_before
    for pid in pids:
        try:
            rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(row.split()[1]) * 1024 for row in rows if row.startswith("Pss_Anon:"))
    return total


def shared_bytes() -> int:
    found = os.statvfs("/dev/shm")
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def watch(program: str, system: str, size: int, count: int) -> dict[str, Any]:
    mark = uuid.uuid4().hex
    shared_before = shared_bytes()
    command = [sys.executable, "-m", "bench.memory", "--one", program, "--systems", system]
    command += ["--size", str(size), "--count", str(count)]
    run = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, MARK: mark}
    )
    assert run.stdin is not None and run.stdout is not None
    if run.stdout.readline().strip() != "ready":
        run.wait()
        return {"program": program, "system": system, "error": f"it ended with code {run.returncode}"}
    time.sleep(0.5)
    idle = memory_bytes(processes(run.pid, mark), shared_before)
    run.stdin.write("\n")
    run.stdin.flush()
    peak, pids = idle, processes(run.pid, mark)
    looks = 0
    while not select.select([run.stdout], [], [], LOOK_S)[0]:
        peak = max(peak, memory_bytes(pids, shared_before))
        looks += 1
        if looks % 25 == 0:
            pids = processes(run.pid, mark)  # some may have been started meanwhile
    answer = run.stdout.readline()
    if not answer.endswith("\n"):
        return {"program": program, "system": system, "error": f"it ended with code {run.wait()}"}
    run.communicate("\n")
    found = json.loads(answer)
    error = "" if found["is_right"] else "its result is wrong"
    figures = {"seconds": found["seconds"], "idle_bytes": idle, "peak_bytes": peak, "copies": (peak - idle) / size}
    return {"program": program, "system": system, "error": error, **figures}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="NAMES", default="fit,images", help="some of the programs: fit,images")
    parser.add_argument("--systems", metavar="NAMES", default=",".join(LIBRARIES), help="some of them, by commas")
    parser.add_argument("--repeat", metavar="N", type=int, default=3, help="repetitions (3)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size: does everything work here?")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        run_one(options.one, options.systems, options.size, options.count)
        return
    sizes = {"fit": (200_000_000, 200), "images": (4_000_000, 500)}
    if options.quick:
        sizes = {"fit": (40_000_000, 20), "images": (1_000_000, 50)}
    systems = [one for one in options.systems.split(",") if importlib.util.find_spec(LIBRARIES[one]) is not None]
    runs = []
    for program in options.only.split(","):
        for _ in range(options.repeat):
            for system in systems:
                runs.append(watch(program, system, *sizes[program]))
                print(runs[-1], file=sys.stderr, flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(runs, indent=1))
    print(table(runs))


def table(runs: list[dict[str, Any]]) -> str:
    """Medians of the repetitions."""
    rows = [f"{'program':8} {'system':13} {'seconds':>8} {'peak MB':>8} {'above idle':>11} {'copies':>7}"]
    for program, system in dict.fromkeys((run["program"], run["system"]) for run in runs):
        mine = [run for run in runs if (run["program"], run["system"]) == (program, system)]
        wrong = [run["error"] for run in mine if run["error"]]
        if wrong:
            rows.append(f"{program:8} {system:13} {wrong[0]}")
            continue
        seconds, peak, idle, copies = (
            statistics.median(run[name] for run in mine) for name in ("seconds", "peak_bytes", "idle_bytes", "copies")
        )
        above = (peak - idle) / 1e6
        rows.append(f"{program:8} {system:13} {seconds:8.2f} {peak / 1e6:8.0f} {above:11.0f} {copies:7.2f}")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
