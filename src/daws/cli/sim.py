"""`daws sim`: read what was asked, run it, show what came of it."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from daws.bound import bound, recursion
from daws.cli.asked import check_seed, read_graph, read_world, title_of
from daws.cli.messages import complain, one_line
from daws.cli.source import named, read_source
from daws.cli.table import Bounds, result_table
from daws.cli.targets import check_apart
from daws.client.progress import Progress
from daws.formats import Execution, Machine, Workflow, check_target, write_wfformat
from daws.model.graph import Graph
from daws.sim.cluster import Cluster
from daws.sim.estimates import NONE, parse_estimates
from daws.sim.plot import check_target as check_picture
from daws.sim.plot import draw_run
from daws.sim.profiles import Costs
from daws.sim.runlog import RunLog
from daws.sim.simulate import Result, simulate
from daws.strategy import parse_strategy


def run(arguments: argparse.Namespace) -> int:
    """Everything is checked before anything is done."""
    check_seed(arguments.seed)
    if arguments.pilots:
        from daws.cli.pilots import run as run_on_pilots

        return run_on_pilots(arguments)
    target = None if arguments.plot is None else check_picture(Path(arguments.plot))
    if arguments.export is not None:
        check_target(arguments.export)
    check_apart(arguments.workload, {"--plot": arguments.plot, "--export": arguments.export})
    strategy = parse_strategy(arguments.strategy)
    parse_estimates(arguments.estimates)
    source = read_source(arguments.workload)
    cluster, settings = read_world(arguments, arguments.seed, arguments.check)
    graph = read_graph(arguments, source, cluster, arguments.seed)
    logs: list[RunLog] = []
    prepare = None if arguments.export is None else lambda kernel: logs.append(RunLog(kernel))
    with Progress(graph.task_count, quiet=arguments.quiet) as progress:
        result, kernel = simulate(graph, cluster, strategy, settings, progress, prepare)
    title = title_of(arguments, source)
    notes = source.notes if isinstance(source, Workflow) else ()
    if not arguments.quiet or arguments.json:
        _show(result, bounds_of(graph, cluster, settings.costs), arguments, title, notes)
    told = not (arguments.json or arguments.quiet)
    if target is not None:
        draw_run(result, kernel, target, title=title)
        if told:
            print(f"\nbusy executors over time: {target}")
    if arguments.export is not None:
        write_wfformat(arguments.export, named(source, graph), execution_of(logs[0], cluster))
        if told:
            print(f"\nthe run as WfFormat: {arguments.export}")
    if result.failed:
        task, (_, error) = next(iter(kernel.client.ended.items()))
        complain(f"error: {result.failed:,} tasks failed, first task {task}: {one_line(error)}")
        return 1
    return 0


def execution_of(log: RunLog, cluster: Cluster) -> Execution:
    """A simulated run as if it had begun just now."""
    machines = [Machine(f"node-{number}", info.cores, info.memory_bytes) for number, info in enumerate(cluster.infos())]
    return Execution(log.start_ns, log.end_ns, log.node, machines, datetime.now(UTC))


def bounds_of(graph: Graph, cluster: Cluster, costs: Costs) -> Bounds:
    """What no schedule can beat, and beside it what MATRIX published."""
    return Bounds(
        bound(graph, cluster.groups, costs),
        recursion(graph, cluster.core_count, costs.net_bytes_per_s, task_bytes=costs.task_bytes),
    )


def _show(result: Result, bounds: Bounds, arguments: argparse.Namespace, workload: str, notes: tuple[str, ...]) -> None:
    if arguments.json:
        fields = report(result, bounds, workload, arguments.profile, arguments.estimates)
        print(msgspec.json.encode({**fields, "notes": notes} if notes else fields).decode())
    else:
        cores = f"{result.cores} cores each" if result.cores else "unlike nodes"
        print(
            f"{workload} with {result.strategy}: {result.tasks:,} tasks, {result.edges:,} edges\n"
            f"{result.nodes:,} nodes, {result.cores_total:,} cores ({cores}); "
            f"costs {arguments.profile}, "
            + ("" if arguments.estimates == NONE else f"estimates {arguments.estimates}, ")
            + f"seed {result.seed}\n"
            + (f"notes: {'; '.join(notes)}\n" if notes else "")
        )
        print(result_table(result, bounds))


def report(result: Result, bounds: Bounds, workload: str, profile_name: str, estimates: str) -> dict[str, object]:
    """What `--json` prints. `cores` are those of each node (null where nodes differ), `cores_total` all of them."""
    provable = bounds.provable
    fields = msgspec.structs.asdict(result)
    if not fields["digest"]:
        del fields["digest"]
    said = {"workload": workload, "profile": profile_name, "estimates": estimates}
    best = {
        "bound_s": provable.seconds,
        "bound_by": provable.binding.name,
        "bound_share": provable.share_of(result.makespan_s),
        "recursion_s": bounds.recursion.seconds,
    }
    return {**said, **fields, **best, "cores": result.cores or None}
