"""`python -m bench.calibrate`: does the simulator tell the truth?

Fits the costs of a simulated node to live bags of tasks, and to nothing else: how much longer tasks take than they were
asked to (nobody sleeps exactly, and writing takes time), how many empty tasks a node gets through, and how long an
executor waits for its next task. Then runs graphs live and in the simulator, and says how far apart their makespans
are, the worst case last.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from daws.client.cluster import Cluster
from daws.client.starting import default_workers
from daws.model.graph import Graph
from daws.runs.timeline import Timeline
from daws.sim.cluster import cluster_of
from daws.sim.profiles import Costs, profile
from daws.sim.simulate import Settings, simulate
from daws.strategy import parse_strategy
from daws.workflows.emulation import emulate
from daws.workloads import parse_workload

EMPTY_TASKS = 10_000
BAG_SECONDS = 2.0
LONG_MS = 50
OUTPUT_MB = 0.5
COST_NS_MAX = 5_000_000
JUDGED = (
    "bot:tasks={tasks}",
    "fan-in:tasks={tasks}",
    "fan-out:tasks={tasks}",
    "pipeline:tasks={tasks}",
    "random:tasks={tasks}",
    "all-pairs:files={files},length-ms=50",
)
TIME_SCALE = 1.0
"""Of tasks of 50 ms on average."""
DATA_SCALE = 0.1
"""Of objects of 5 MB on average: 0.5 MB."""


class Fit(Struct, frozen=True):
    """What bags of tasks say about this machine: costs, and how much longer tasks take than they were asked to, because
    nobody sleeps exactly, and for each byte that they write."""

    costs: Costs
    late_ns: int = 0
    late_ns_per_byte: float = 0.0

    def makespan_s(self, graph: Graph, place: "Place") -> float:
        """What the simulator says of a graph."""
        written = np.append(0, np.cumsum(graph.object_bytes))
        made_bytes = written[graph.output_start[1:]] - written[graph.output_start[:-1]]
        late_ns = self.late_ns + np.rint(made_bytes * self.late_ns_per_byte).astype(np.int64)
        slower = graph.changed(length_ns=graph.length_ns + late_ns)
        cluster = cluster_of(place.nodes, place.workers)
        result, _ = simulate(slower, cluster, parse_strategy(place.strategy), Settings(costs=self.costs))
        return result.makespan_s


class Place(Struct, frozen=True):
    """A live cluster: so many nodes of so many workers."""

    nodes: int
    workers: int
    strategy: str
    rounds: int

    def run(self, graph: Graph) -> tuple[float, int]:
        """The median makespan in seconds, and how many ns the tasks of that run took longer than they were asked to."""
        found = sorted(self._run_once(graph) for _ in range(self.rounds))
        return found[len(found) // 2]

    def _run_once(self, graph: Graph) -> tuple[float, int]:
        timeline = Timeline()
        with Cluster(self.workers, nodes=self.nodes, strategy=self.strategy, timeline=timeline) as cluster:
            cluster.gather(list(cluster.map(abs, range(100), chunk=1)))  # nobody is measured while waking up
            before = timeline.count
            summary = emulate(cluster, graph)
        took_ns = np.array(timeline.end_ns[before:]) - np.array(timeline.start_ns[before:])
        return summary.makespan_s, (int(took_ns.sum()) - graph.total_length_ns) // max(1, graph.task_count)


def bag(tasks: int, length_ms: float, output_mb: float = 0) -> Graph:
    workload = f"bot:tasks={tasks},length-ms={length_ms:g},output-mb={output_mb:g},spread=constant"
    return parse_workload(workload).build(1, 1, 0)


def solved(wanted_s: float, makespan_s: Callable[[int], float]) -> int:
    """The cost in ns with which the simulator says what was measured; the makespan grows with it."""
    low, high = 0, COST_NS_MAX
    while high - low > 100:
        middle = (low + high) // 2
        low, high = (middle, high) if makespan_s(middle) < wanted_s else (low, middle)
    return low


def fitted(place: Place) -> Fit:
    """From bags alone: what a node needs for a task, and how long an executor waits for its next one.

    A node that is alone has its store beside it in the client's process, so nothing else costs anything. Between
    several nodes messages cost what the profile `measured` says.
    """
    tasks = int(BAG_SECONDS * place.nodes * place.workers * 1000 / LONG_MS)
    empty, long, writing = bag(EMPTY_TASKS, 0), bag(tasks, LONG_MS), bag(tasks, LONG_MS, OUTPUT_MB)
    empty_s, _ = place.run(empty)
    long_s, late_ns = place.run(long)
    _, writing_late_ns = place.run(writing)
    late_ns_per_byte = max(0.0, (writing_late_ns - late_ns) * tasks / writing.output_bytes)
    start = profile("local" if place.nodes == 1 else "measured").changed(step_ns=0, dispatch_ns=0)
    step_ns = solved(empty_s, lambda ns: Fit(start.changed(step_ns=ns)).makespan_s(empty, place))
    costs = start.changed(step_ns=step_ns)
    wait_ns = solved(long_s, lambda ns: Fit(costs.changed(dispatch_ns=ns), late_ns).makespan_s(long, place))
    return Fit(costs.changed(dispatch_ns=wait_ns), late_ns, late_ns_per_byte)


def judged(fit: Fit, place: Place, tasks: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for text in JUDGED:
        workload = text.format(tasks=tasks, files=max(2, round(tasks**0.5)))
        graph = parse_workload(workload).build(place.nodes, place.workers, 0).scaled(TIME_SCALE, DATA_SCALE)
        said_s = fit.makespan_s(graph, place)
        was_s, _ = place.run(graph)
        off = said_s / was_s - 1
        rows.append({"workload": workload, "nodes": place.nodes, "live_s": was_s, "simulated_s": said_s, "off": off})
        print(f"{workload:38} {place.nodes:>5} {was_s:>8.2f} s {said_s:>9.2f} s {off:>+10.1%}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1], help="numbers of nodes to try (default: 1)")
    parser.add_argument("--workers", type=int, default=default_workers(), help="of each node (default: one per core)")
    parser.add_argument("--strategy", default="daws")
    parser.add_argument("--tasks", type=int, default=200, help="of each graph, per node (default: 200)")
    parser.add_argument("--rounds", type=int, default=3, help="live runs of which the median counts (default: 3)")
    parser.add_argument("--json", action="store_true", help="what was found as JSON, on stdout after the table")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for nodes in given.nodes:
        place = Place(nodes, given.workers, given.strategy, given.rounds)
        fit = fitted(place)
        print(
            f"\nbags of tasks on {nodes} nodes of {given.workers} workers with {given.strategy}: "
            f"a node takes {fit.costs.step_ns / 1e3:.1f} µs per task, "
            f"an executor waits {fit.costs.dispatch_ns / 1e3:.0f} µs for the next one, "
            f"sleeping takes {fit.late_ns / 1e3:.0f} µs longer than asked, "
            f"writing {fit.late_ns_per_byte * 1e3:.0f} µs per MB\n"
        )
        print(f"{'workload':38} {'nodes':>5} {'live':>10} {'simulated':>11} {'difference':>10}")
        rows += judged(fit, place, given.tasks * nodes)
    offs = [abs(row["off"]) for row in rows]
    print(f"\nworst case {max(offs):.1%}, median {statistics.median(offs):.1%}")
    if given.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
