"""Every preset on every workload, with the checkers on.

python -m tests.sim.matrix                     at 1,000 nodes, on all cores
python -m tests.sim.matrix --nodes 1 7 64      at other sizes
python -m tests.sim.matrix --nodes 16 --workload montage:tasks=1000 some/workflow.xml
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from daws.formats.reader import read_workflow
from daws.model.graph import Graph
from daws.sim.cluster import cluster_of
from daws.sim.simulate import Settings, simulate
from daws.sim.worlds.graphs import growing_graph
from daws.strategy import PRESETS, parse_strategy
from daws.strategy.rng import SplitMix64
from daws.workloads import parse_workload
from daws.workloads.registry import KINDS
from tests.sim.many import Ticker, processes, run_all

CORES = 2
SEED = 1
Builder = Callable[[int], Graph]


def _workload(text: str) -> Builder:
    return lambda nodes: parse_workload(text).build(nodes, CORES, SEED)


WORKLOADS: dict[str, Builder] = {
    "bot": _workload("bot:per-core=6,length-ms=20"),
    "fan-in": _workload("fan-in:per-core=6,degree=4,output-mb=1,length-ms=20"),
    "fan-out": _workload("fan-out:per-core=6,degree=4,output-mb=1,length-ms=20"),
    "pipeline": _workload("pipeline:per-core=6,size=4,output-mb=1,length-ms=20"),
    "all-pairs": _workload("all-pairs:files=16,length-ms=20"),
    "image-stacking": _workload("image-stacking:per-core=6,degree=100,length-ms=20"),
    "random": _workload("random:per-core=6,layers=4,output-mb=1,length-ms=20"),
    "skeleton": _workload("skeleton:tasks=60,length-min=3e-4,task-cores=2"),
    "ensemble": _workload("ensemble:simulations=30,analysis-cores=2,simulation-s=0.02,analysis-s=0.02,last-s=0.02"),
    # Real workflows take hours, in which idle nodes ask around: scaled down to tasks of some 20 ms.
    "cybershake": _workload("cybershake:per-core=6,time-scale=1e-3,data-scale=1e-3"),
    "epigenomics": _workload("epigenomics:per-core=6,time-scale=5e-6,data-scale=1e-3"),
    "inspiral": _workload("inspiral:per-core=6,time-scale=1e-4,data-scale=0.1"),
    "montage": _workload("montage:per-core=8,time-scale=2e-3,data-scale=0.1"),
    "sipht": _workload("sipht:per-core=7,time-scale=1e-4,data-scale=0.01"),
    "moldyn": _workload("moldyn:per-core=6,time-scale=1e-4,data-scale=0.1"),
    "fmri": _workload("fmri:per-core=6,time-scale=0.01"),
    "growing": lambda nodes: growing_graph(SplitMix64(SEED), waits=False, roots=2 * nodes),
    "waiting": lambda nodes: growing_graph(SplitMix64(SEED), waits=True, roots=2 * nodes),
}
"""By name, for a cluster of so many nodes. The last two are graphs that grow while they run."""
assert set(KINDS) <= set(WORKLOADS)

Cell = tuple[str, str, int]
"""Preset, workload, nodes."""


class Seen(Struct, frozen=True):
    """How one of them went; `message` is empty if all was well."""

    tasks: int
    wall_s: float
    message: str = ""


def cells(nodes: Sequence[int], strategy: str = "", workloads: Sequence[str] = ()) -> list[Cell]:
    return [
        (preset, kind, count)
        for count in nodes
        for preset in PRESETS
        for kind in workloads or WORKLOADS
        if strategy in ("", preset)
    ]


def graph_of(kind: str, nodes: int) -> Graph:
    """One of the workloads above, another one as users name it, or a workflow file."""
    if kind in WORKLOADS:
        return WORKLOADS[kind](nodes)
    return read_workflow(kind).graph if Path(kind).exists() else _workload(kind)(nodes)


def run_cell(cell: Cell) -> None:
    """Raises a Violation at the first thing that is wrong; a run that hangs has an empty event heap and lost tasks."""
    preset, kind, nodes = cell
    graph = graph_of(kind, nodes)
    cores = max(CORES, int(graph.cores.max(initial=1)))  # enough for the widest task
    result, kernel = simulate(graph, cluster_of(nodes, cores), parse_strategy(preset), Settings(seed=SEED, check=True))
    assert kernel.client.is_done, f"{kernel.client.waiting_for} tasks have not ended"
    assert (result.failed, result.cancelled) == (0, 0), f"{result.failed} failed, {result.cancelled} were cancelled"


def try_cell(cell: Cell) -> Seen:
    began_s = time.perf_counter()
    try:
        run_cell(cell)
    except Exception as error:
        return Seen(0, time.perf_counter() - began_s, f"{type(error).__name__}: {error}")
    return Seen(graph_of(cell[1], cell[2]).task_count, time.perf_counter() - began_s)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.matrix", description="Every preset on every workload.")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000], help="sizes of the cluster (default: 1000)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--strategy", choices=list(PRESETS), default="", help="only this preset")
    parser.add_argument("--workload", nargs="+", default=[], help="only these, of the table or not, or files")
    given = parser.parse_args(argv)
    wanted = cells(given.nodes, given.strategy, given.workload)
    began_s = time.monotonic()
    found: dict[Cell, Seen] = {}
    ticker = Ticker(len(wanted), "runs")
    with processes(given.jobs) as pool:
        for cell, seen in run_all(pool, try_cell, wanted, ticker):
            found[cell] = seen
    wrong = {cell: seen for cell, seen in found.items() if seen.message}
    slowest = max(found, key=lambda cell: found[cell].wall_s)
    tasks = sum(seen.tasks for seen in found.values())
    print(
        f"{len(found) - len(wrong)} of {len(wanted)} runs without violation, {tasks:,} tasks in "
        f"{time.monotonic() - began_s:.0f} s; slowest: {' '.join(map(str, slowest))}, {found[slowest].wall_s:.1f} s"
    )
    for (preset, kind, nodes), seen in sorted(wrong.items()):
        print(f"{preset} on {kind} at {nodes} nodes: {seen.message}")
        print(f"    again: python -m tests.sim.matrix --strategy {preset} --workload {kind} --nodes {nodes}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
