"""`daws sim --pilots`: a simulation on nodes that come from batch queues."""

import argparse

import msgspec

from daws.cli.asked import read_graph, read_settings_alone, title_of
from daws.cli.messages import EXIT_FAILED, complain, number_of, one_line
from daws.cli.table import as_json, count, grid, seconds, share, significant
from daws.model.cluster import ExecutorClass
from daws.model.errors import UsageError
from daws.predict.source import read_source
from daws.runs.progress import Progress
from daws.sim.cluster import NodeGroup, SimulatedCluster, joined
from daws.sim.pilots import PilotReport, simulate_pilots
from daws.sim.resources import Queue, parse_queues
from daws.sim.simulate import Result
from daws.strategy import parse_strategy

HOUR_S = 3600.0


def run_on_pilots(arguments: argparse.Namespace) -> int:
    """Run the simulation. All options are checked before anything runs."""
    for option in ("nodes", "cores", "memory_gb", "group", "plot", "export"):
        if getattr(arguments, option):
            raise UsageError(f"--pilots cannot be used with --{option.replace('_', '-')}")
    strategy = parse_strategy(arguments.strategy)
    queues = parse_queues(arguments.pilots)
    settings = read_settings_alone(arguments, arguments.seed, arguments.check)
    source = read_source(arguments.workload)
    graph = read_graph(arguments, source, one_node_each(queues), arguments.seed)
    with Progress(graph.task_count, quiet=arguments.quiet) as progress:
        report, result, kernel = simulate_pilots(graph, queues, strategy, settings, progress)
    title = title_of(arguments, source)
    if arguments.json:
        fields = {"workload": title, "profile": arguments.profile, "estimates": arguments.estimates}
        fields |= msgspec.structs.asdict(result) | msgspec.structs.asdict(report)
        del fields["digest"]  # nobody asked for one
        print(as_json({**fields, "cores": result.cores or None}))
    elif not arguments.quiet:
        print(
            f"{title} with {result.strategy}: {number_of(result.tasks, 'task')}, {number_of(result.edges, 'edge')}\n"
            f"pilots on {', '.join(queue.name for queue in queues)}; costs {arguments.profile}, seed {result.seed}\n"
        )
        print(pilot_table(report, result))
    if result.failed:
        task, (_, error) = next(iter(kernel.client.ended.items()))
        complain(f"error: {number_of(result.failed, 'task')} failed, first task {task}: {one_line(error)}")
        return EXIT_FAILED
    return 0


def one_node_each(queues: tuple[Queue, ...]) -> SimulatedCluster:
    """A cluster with one node of each size. A workload is built for it, because no pilots have been requested yet."""
    return joined([NodeGroup(1, (ExecutorClass(queue.cores),)) for queue in queues])


def pilot_table(report: PilotReport, result: Result) -> str:
    """A table of times, divided as AIMES divides them, and of the use of the pilots."""
    waits = [
        (f"waits at {name}", f"{seconds(min(some))} to {seconds(max(some))}", f"of {len(some)} that became active")
        for name, some in report.waits_s.items()
        if some
    ]
    held = f"{significant(report.held_core_s / HOUR_S)} h"
    rows = [
        ("TTC", seconds(report.ttc_s), "from asking for pilots to the end of the last task"),
        ("Tw", seconds(report.tw_s), "until the first pilot was active"),
        ("Tx", seconds(report.tx_s), "from the first task's start to the last one's end"),
        ("Ts", seconds(report.ts_s), "objects were on their way; most of it is within Tx"),
        ("pilots", count(report.asked), f"asked for; {report.active} became active, {report.ended} ended early"),
        *waits,
        ("core time held", held, "by pilots, until they ended or all was done"),
        ("used", share(report.used), "of it, by runs that counted"),
        ("busy", share(result.utilization), "of it, also by runs that had to be repeated"),
        ("steals", count(result.steals), "tasks taken over by idle nodes"),
        ("wall time", seconds(result.wall_s), f"{result.events:,} events"),
    ]
    return grid(rows, right=(1,), indent="  ")
