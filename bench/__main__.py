"""`python -m bench`: how fast the simulator is on this machine, and what it costs in memory."""

import argparse
import gc
import json
import subprocess
import sys
import time
from typing import Any

import msgspec

from bench.cases import CASES, HUGE, Case
from bench.floor import heap_events_per_s

SCALES = (
    ("100 tasks per core", "few nodes", "many nodes", " (aim 3)", " (aim 1.3)"),
    ("the same million tasks", "a million on few", "a million on many", "", ""),
)
"""From few nodes to many: what is compared. Of a million tasks each of many nodes gets few, and looks for more."""


def run_here(case: Case) -> dict[str, Any]:
    """Run one case in this process and say what it took."""
    from daws.sim.cluster import cluster_of
    from daws.sim.simulate import Settings, simulate
    from daws.strategy import parse_strategy
    from daws.workloads import parse_workload

    strategy = parse_strategy(case.strategy)
    best: dict[str, Any] = {}
    for _ in range(case.repeat):
        gc.collect()  # what the run before has left
        floor = heap_events_per_s()
        graph = parse_workload(case.workload).build(case.nodes, case.cores, 0)
        settings = Settings(check=case.check)
        result, _ = simulate(graph, cluster_of(case.nodes, case.cores), strategy, settings)
        run = msgspec.structs.asdict(result) | {"floor": floor, "tasks_per_s": result.tasks / result.wall_s}
        if not best or run["tasks_per_s"] > best["tasks_per_s"]:
            best = run
    return best


def run_apart(case: Case) -> dict[str, Any]:
    """The run with the median time, if there are several; each has a process of its own, as one from the shell has."""
    runs = sorted((run_in_process(case) for _ in range(case.processes)), key=lambda run: float(run["wall_s"]))
    return runs[len(runs) // 2]


def run_in_process(case: Case) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench", "--case", msgspec.json.encode(case).decode()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench: {case.name} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def show(case: Case, run: dict[str, Any]) -> bool:
    """One line per case; True if it is as fast as it should be."""
    rate, floor = run["tasks_per_s"], run["floor"]
    good = bool(rate >= case.tasks_per_s_min and run["efficiency"] >= case.efficiency_min)
    aim = f"aim {case.tasks_per_s_min:>8,.0f}" if case.tasks_per_s_min else " " * 12
    print(
        f"{case.name:17} {run['tasks']:>9,} tasks {run['nodes']:>7,} nodes {run['wall_s']:7.1f} s "
        f"{rate:9,.0f} tasks/s {aim} {floor / rate:5.1f} heap events per task, "
        f"{run['events'] / run['tasks']:5.2f} events per task, "
        f"efficiency {run['efficiency']:.3f}, {run['peak_rss_mb']:7.0f} MB  {'' if good else '<- below its aim'}",
        flush=True,
    )
    return good


def show_scale(runs: dict[str, dict[str, Any]]) -> None:
    for what, few_name, many_name, aim, events_aim in SCALES:
        if {few_name, many_name} <= runs.keys():
            few, many = runs[few_name], runs[many_name]
            cost = (many["wall_s"] / many["tasks"]) / (few["wall_s"] / few["tasks"])
            events = (many["events"] / many["tasks"]) / (few["events"] / few["tasks"])
            print(
                f"from 64 to 16,384 nodes, {what}: {cost:.2f} times the time per task{aim}, "
                f"{events:.2f} times the events{events_aim}"
            )
    if {"idle nodes, few", "idle nodes, many"} <= runs.keys():
        few, many = runs["idle nodes, few"], runs["idle nodes, many"]
        each = (many["peak_rss_mb"] - few["peak_rss_mb"]) * 1024 * 1024 / (many["nodes"] - few["nodes"])
        print(f"an idle node takes {each:,.0f} bytes (aim 2,048)")
    if {"bag", "idle nodes, few"} <= runs.keys():
        each = (
            (runs["bag"]["peak_rss_mb"] - runs["idle nodes, few"]["peak_rss_mb"]) * 1024 * 1024 / runs["bag"]["tasks"]
        )
        print(f"a task of a bag takes {each:,.0f} bytes (aim 1,024)")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--huge",
        action="store_true",
        help="also 5 million tasks on 100,000 nodes, and one million on few and on many (minutes, gigabytes)",
    )
    parser.add_argument("--only", metavar="NAME", help="only cases whose name begins with this")
    parser.add_argument("--json", metavar="FILE", help="write all figures to a file")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(run_here(msgspec.json.decode(options.case, type=Case))))
        return
    cases = [case for case in (*CASES, *(HUGE if options.huge else ())) if case.name.startswith(options.only or "")]
    if not cases:
        parser.error(
            f"no case begins with {options.only!r}; there are {', '.join(case.name for case in (*CASES, *HUGE))}"
        )
    began = time.perf_counter()
    runs: dict[str, dict[str, Any]] = {}
    good = True
    for case in cases:
        runs[case.name] = run_apart(case)
        good = show(case, runs[case.name]) and good
    show_scale(runs)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(runs, file, indent=1)
    print(f"all in {time.perf_counter() - began:.0f} s" + ("" if good else "; some cases are below their aim"))


if __name__ == "__main__":
    main()
