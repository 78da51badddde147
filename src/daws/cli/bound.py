"""`daws bound`: how fast a workload could be at best."""

import argparse

import msgspec

from daws.bound import Bound, Recursion, bound, recursion
from daws.cli.asked import check_seed, read_graph, read_world, title_of
from daws.cli.source import read_source
from daws.cli.table import grid, seconds, significant
from daws.client.progress import Progress
from daws.formats import Workflow
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.sim.cluster import Cluster
from daws.sim.simulate import check_runnable
from daws.store.memory import MemoryStore

BYTES_PER_MB = 1e6


def run(arguments: argparse.Namespace) -> int:
    """Everything is checked before anything is done."""
    check_seed(arguments.seed)
    for option in ("per_core", "mean_length_ms", "bandwidth_mbps"):
        value = getattr(arguments, option)
        if value is not None and not value > 0:
            raise UsageError(f"--{option.replace('_', '-')} {value:g}: a number above 0 is needed")
    if arguments.task_bytes is not None and arguments.task_bytes < 0:
        raise UsageError(f"--task-bytes {arguments.task_bytes}: a number from 0 on is needed")
    source = read_source(arguments.workload)
    cluster, settings = read_world(arguments, arguments.seed)
    costs = settings.costs
    graph = read_graph(arguments, source, cluster, arguments.seed)
    if _may_not_run(graph, cluster):
        check_runnable(graph, MemoryStore(1, 1).join(cluster.infos()))
    with Progress(graph.task_count, quiet=arguments.quiet) as progress:
        found = bound(graph, cluster.groups, costs)
        published = recursion(
            graph,
            cluster.core_count,
            costs.net_bytes_per_s if arguments.bandwidth_mbps is None else arguments.bandwidth_mbps * BYTES_PER_MB,
            arguments.per_core,
            None if arguments.mean_length_ms is None else arguments.mean_length_ms / 1e3,
            costs.task_bytes if arguments.task_bytes is None else arguments.task_bytes,
            progress,
        )
    title, tasks = title_of(arguments, source), graph.task_count
    if arguments.json:
        print(msgspec.json.encode(report(title, arguments, cluster, tasks, found, published)).decode())
    else:
        cores = f"{cluster.cores_per_node} cores each" if cluster.cores_per_node else "unlike nodes"
        notes = source.notes if isinstance(source, Workflow) else ()
        print(
            f"{title}: {tasks:,} tasks\n{cluster.node_count:,} nodes, {cluster.core_count:,} cores ({cores}); "
            f"costs {arguments.profile}, seed {arguments.seed}\n" + (f"notes: {'; '.join(notes)}\n" if notes else "")
        )
        print(bound_table(tasks, found, published))
    return 0


def _may_not_run(graph: Graph, cluster: Cluster) -> bool:
    """Is it worth looking at every single task? Plain tasks run on plain executors."""
    plain = all(one.context is None for group in cluster.groups for one in group.executors)
    return not plain or len(graph.contexts) > 1 or graph.memory_bytes is not None or bool((graph.cores > 1).any())


def bound_table(tasks: int, found: Bound, published: Recursion) -> str:
    """All parts, the one that binds, and the recursion beside them."""
    rows = [
        ("provable" if not number else "", part.name, seconds(part.seconds), part.meaning)
        for number, part in enumerate(found.parts)
    ]
    best = found.seconds
    rows += [
        ("", "no schedule below", seconds(best), f"by {found.binding.name}"),
        ("", "throughput", f"{significant(tasks / best) if best else 0} /s", "tasks per second at most"),
        ("recursion", "finish", seconds(published.seconds), "as MATRIX published it; not a bound, see docs/bound.md"),
        ("", "throughput", f"{significant(published.throughput(tasks))} /s", "tasks per second"),
        (
            "",
            "queue wait",
            seconds(published.wait_s),
            f"of every task: {significant(published.per_core)} tasks per core of {seconds(published.length_s)} each",
        ),
        ("", "against the bound", f"{published.seconds / best * 100 if best else 0:.1f} %", ""),
    ]
    return grid(rows, right=(2,), indent="  ")


def report(
    title: str, arguments: argparse.Namespace, cluster: Cluster, tasks: int, found: Bound, published: Recursion
) -> dict[str, object]:
    """What `--json` prints."""
    return {
        "workload": title,
        "profile": arguments.profile,
        "seed": arguments.seed,
        "tasks": tasks,
        "nodes": cluster.node_count,
        "cores": cluster.cores_per_node or None,
        "cores_total": cluster.core_count,
        "bound_s": found.seconds,
        "bound_by": found.binding.name,
        "parts_s": {part.name: part.seconds for part in found.parts},
        "recursion_s": published.seconds,
        "recursion": msgspec.structs.asdict(published),
    }
