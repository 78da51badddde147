"""Six policies on three workloads: what each does with 64 nodes, as a table and as a picture.

Run it with `make policies`. It leaves `policies.png` in the current folder, or writes the file named as argument.
"""

import sys
import time
from pathlib import Path

from daws.sim.cluster import cluster_of
from daws.sim.plot import Panel, check_target, draw_panels, panel_of
from daws.sim.simulate import Result, simulate
from daws.strategy import PRESETS, parse_strategy
from daws.workloads import parse_workload

NODES, CORES = 64, 2
POLICIES = ("mlb", "mdl", "rlds", "flds", "daws", "random")
WORKLOADS = {
    "bot:per-core=100": "independent tasks of 0–100 ms",
    "fan-out:per-core=100": "a tree from one root; each task reads 0–10 MB that its parent made",
    "all-pairs:files=150": "22,500 tasks of 100 ms, each of which reads two of 300 files of 12 MB",
}
SHOWN = 1.6  # the time axis of a row of pictures reaches this many times as far as its fastest policy


def main() -> None:
    target = check_target(Path(sys.argv[1] if len(sys.argv) > 1 else "policies.png"))
    began = time.monotonic()
    print(f"Six policies on {NODES} simulated nodes of {CORES} cores.\n")
    for policy in POLICIES:
        print(f"  {policy:<7} {PRESETS[policy].summary}")
    panels: list[Panel] = []
    results: dict[tuple[str, str], Result] = {}
    for workload, about in WORKLOADS.items():
        print(f"\n{workload}: {about}\n")
        print("  policy   makespan  efficiency   data moved  read locally  steals  pushes")
        runs = []
        for policy in POLICIES:
            graph = parse_workload(workload).build(NODES, CORES, seed=0)
            result, kernel = simulate(graph, cluster_of(NODES, CORES), parse_strategy(policy))
            results[workload, policy] = result
            runs.append((result, kernel))
            print(f"  {policy:<7}{row(result)}", flush=True)
        until_s = SHOWN * min(result.makespan_s for result, _ in runs)
        name = workload.partition(":")[0]
        panels += [
            panel_of(run, kernel, f"{name} · {run.strategy} · {run.efficiency:.0%}", until_s) for run, kernel in runs
        ]
    draw_panels(panels, target, "Busy executors over time, and efficiency", columns=len(POLICIES), size=(14.0, 6.4))
    print(what_to_see(results))
    print(f"\nThe picture is in {target} ({time.monotonic() - began:.0f} s for {len(panels)} simulations).")


def row(result: Result) -> str:
    reads = result.local_hits + result.cache_hits
    local = f"{reads:,}" if result.bytes_moved or reads else "-"
    return (
        f"{result.makespan_s:>9.1f} s {result.efficiency:>10.1%} {result.bytes_moved / 1e9:>9,.1f} GB"
        f" {local:>13} {result.steals:>7,} {result.pushes:>7,}"
    )


def what_to_see(results: dict[tuple[str, str], Result]) -> str:
    bag, tree, pairs = WORKLOADS

    def efficiency(workload: str, policy: str) -> str:
        return f"{results[workload, policy].efficiency:.0%}"

    def moved(workload: str, policy: str) -> str:
        return f"{results[workload, policy].bytes_moved / 1e9:,.0f} GB"

    return f"""
What to see:
- Where tasks read nothing, all policies that steal are one and the same ({efficiency(bag, "flds")}). What random
  placement leaves uneven, nobody mends ({efficiency(bag, "random")}).
- On the tree, running where the data is (mdl) means running where the root ran: {efficiency(tree, "mdl")}.
  Ignoring data (mlb) gives {efficiency(tree, "mlb")}. Keeping to it has to know when to stop: rlds never does
  ({efficiency(tree, "rlds")}), flds does when a queue gets too long ({efficiency(tree, "flds")}).
- On all-pairs both matter. mlb moves {moved(pairs, "mlb")} and reaches {efficiency(pairs, "mlb")}.
  mdl moves only {moved(pairs, "mdl")}, but some nodes have the files of too many tasks: {efficiency(pairs, "mdl")}.
  flds shares what would wait too long: {moved(pairs, "flds")}, {efficiency(pairs, "flds")}."""


if __name__ == "__main__":
    main()
