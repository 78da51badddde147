"""`python -m bench.calibrate`: does the simulator tell the truth?

Fits the costs of a simulated node to live bags of tasks, and to nothing else: how long tasks really take that ask for a
time (sleeping is never exact), how many empty tasks a node gets through, and how long an executor waits for its next
task. Then runs graphs live and in the simulator, and says how far apart their makespans are, the worst case last.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from daws.client.cluster import Cluster
from daws.client.defaults import default_workers
from daws.model.graph import Graph
from daws.runs.summary import Summary
from daws.runs.timeline import Timeline
from daws.sim.cluster import cluster_of
from daws.sim.profiles import Costs
from daws.sim.simulate import Settings, simulate
from daws.strategy import parse_strategy
from daws.workflows.emulation import emulate
from daws.workloads import parse_workload

EMPTY_TASKS = 10_000
BAG_SECONDS = 2.0
LONG_MS = 20
COST_NS_MAX = 5_000_000
JUDGED = (
    "bot:tasks={tasks}",
    "fan-in:tasks={tasks}",
    "fan-out:tasks={tasks}",
    "pipeline:tasks={tasks}",
    "random:tasks={tasks}",
    "all-pairs:files={files},length-ms=50",
)
TIME_SCALE = 0.4
"""Of tasks of 50 ms on average: 20 ms."""
DATA_SCALE = 0.1
"""Small enough that writing objects takes next to no time, for which the simulator has no model."""


class Fit(Struct, frozen=True):
    """What bags of tasks say about this machine: costs, and how much longer tasks take than they were asked to."""

    costs: Costs
    late_ns: int

    def makespan_s(self, graph: Graph, nodes: int, workers: int, strategy: str) -> float:
        """What the simulator says of a graph."""
        slower = graph.changed(length_ns=graph.length_ns + self.late_ns)
        result, _ = simulate(slower, cluster_of(nodes, workers), parse_strategy(strategy), Settings(costs=self.costs))
        return result.makespan_s


class Live:
    """Graphs on live clusters, the median of several runs."""

    def __init__(self, workers: int, strategy: str, rounds: int) -> None:
        self.workers = workers
        self.strategy = strategy
        self.rounds = rounds

    def run(self, graph: Graph) -> tuple[Summary, int]:
        """The run with the median makespan, and how many ns its tasks took longer than they were asked to."""
        found: list[tuple[Summary, int]] = []
        for _ in range(self.rounds):
            timeline = Timeline()
            with Cluster(self.workers, strategy=self.strategy, timeline=timeline) as cluster:
                cluster.gather(list(cluster.map(abs, range(100), chunk=1)))  # nobody is measured while waking up
                before = timeline.count
                summary = emulate(cluster, graph)
            took_ns = np.array(timeline.end_ns[before:]) - np.array(timeline.start_ns[before:])
            late_ns = (int(took_ns.sum()) - graph.total_length_ns) // max(1, graph.task_count)
            found.append((summary, late_ns))
        return sorted(found, key=lambda one: one[0].makespan_s)[len(found) // 2]


def bag(tasks: int, length_ms: float) -> Graph:
    return parse_workload(f"bot:tasks={tasks},length-ms={length_ms:g},spread=constant").build(1, 1, 0)


def solved(wanted_s: float, makespan_s: Callable[[int], float]) -> int:
    """The cost in ns with which the simulator says what was measured; the makespan grows with it."""
    low, high = 0, COST_NS_MAX
    while high - low > 100:
        middle = (low + high) // 2
        low, high = (middle, high) if makespan_s(middle) < wanted_s else (low, middle)
    return low


def fitted(live: Live) -> Fit:
    """From bags alone. One node lives in the client's process with its store: nothing travels, so only two costs are
    left: what a node needs for a task, and how long an executor waits for the next one."""
    workers, strategy = live.workers, live.strategy
    empty, long = bag(EMPTY_TASKS, 0), bag(int(BAG_SECONDS * workers * 1000 / LONG_MS), LONG_MS)
    empty_s = live.run(empty)[0].makespan_s
    long_run, late_ns = live.run(long)
    bare = Costs(latency_ns=0, step_ns=0, message_ns=0, task_ns=0, dispatch_ns=0, store_call_ns=0, store_row_ns=0)
    per_task = solved(empty_s, lambda ns: Fit(bare.changed(step_ns=ns), 0).makespan_s(empty, 1, workers, strategy))
    fit = Fit(bare.changed(step_ns=per_task), late_ns)
    wait = solved(
        long_run.makespan_s,
        lambda ns: Fit(fit.costs.changed(dispatch_ns=ns), late_ns).makespan_s(long, 1, workers, strategy),
    )
    return Fit(fit.costs.changed(dispatch_ns=wait), late_ns)


def judged(fit: Fit, live: Live, tasks: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for text in JUDGED:
        workload = text.format(tasks=tasks, files=max(2, round(tasks**0.5)))
        graph = parse_workload(workload).build(1, live.workers, 0).scaled(TIME_SCALE, DATA_SCALE)
        said_s = fit.makespan_s(graph, 1, live.workers, live.strategy)
        was_s = live.run(graph)[0].makespan_s
        rows.append(
            {"workload": workload, "nodes": 1, "live_s": was_s, "simulated_s": said_s, "off": said_s / was_s - 1}
        )
        print(f"{workload:38} {1:>5} {was_s:>8.2f} s {said_s:>9.2f} s {said_s / was_s - 1:>+10.1%}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=default_workers(), help="of the node (default: one per core)")
    parser.add_argument("--strategy", default="daws")
    parser.add_argument("--tasks", type=int, default=400, help="of each graph (default: 400)")
    parser.add_argument("--rounds", type=int, default=3, help="live runs of which the median counts (default: 3)")
    parser.add_argument("--json", action="store_true", help="what was found as JSON, on stdout after the table")
    given = parser.parse_args()
    live = Live(given.workers, given.strategy, given.rounds)
    fit = fitted(live)
    print(
        f"bags of tasks on {given.workers} workers with {given.strategy}: "
        f"a node takes {fit.costs.step_ns / 1e3:.1f} µs per task, "
        f"an executor waits {fit.costs.dispatch_ns / 1e3:.0f} µs for the next one, "
        f"sleeping takes {fit.late_ns / 1e3:.0f} µs longer than asked\n"
    )
    print(f"{'workload':38} {'nodes':>5} {'live':>10} {'simulated':>11} {'difference':>10}")
    rows = judged(fit, live, given.tasks)
    offs = [abs(float(str(row["off"]))) for row in rows]
    print(f"\nworst case {max(offs):.1%}, median {statistics.median(offs):.1%}")
    if given.json:
        json.dump({"step_ns": fit.costs.step_ns, "dispatch_ns": fit.costs.dispatch_ns, "rows": rows}, sys.stdout)
        print()


if __name__ == "__main__":
    main()
