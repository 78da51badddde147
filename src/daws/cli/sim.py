"""`daws sim`: read what was asked, run it, show what came of it."""

import argparse
from pathlib import Path

import msgspec

from daws.cli.asked import asked_of, check_seed, title_of
from daws.cli.messages import complain, one_line
from daws.cli.targets import check_apart
from daws.formats import check_target
from daws.predict.simulation import simulate_graph
from daws.predict.source import read_source
from daws.runs.progress import Progress
from daws.sim.estimates import parse_estimates
from daws.sim.plot import check_target as check_picture
from daws.strategy import parse_strategy


def run(arguments: argparse.Namespace) -> int:
    """Everything is checked before anything is done."""
    check_seed(arguments.seed)
    if arguments.pilots:
        from daws.cli.pilots import run as run_on_pilots

        return run_on_pilots(arguments)
    if arguments.plot is not None:
        check_picture(Path(arguments.plot))
    if arguments.export is not None:
        check_target(arguments.export)
    check_apart(arguments.workload, {"--plot": arguments.plot, "--export": arguments.export})
    strategy = parse_strategy(arguments.strategy)
    parse_estimates(arguments.estimates)
    source = read_source(arguments.workload)
    asked = asked_of(arguments)
    cluster, settings = asked.cluster(), asked.settings(arguments.seed, arguments.check)
    graph = asked.graph(source, cluster, arguments.seed)
    title, records = title_of(arguments, source), arguments.export is not None
    with Progress(graph.task_count, quiet=arguments.quiet) as progress:
        found = simulate_graph(graph, cluster, strategy, settings, asked, source, title, progress, records)
    if arguments.json:
        print(msgspec.json.encode(found.report()).decode())
    elif not arguments.quiet:
        print(found.table())
    told = not (arguments.json or arguments.quiet)
    if arguments.plot is not None:
        found.plot(arguments.plot)
        if told:
            print(f"\nbusy executors over time: {arguments.plot}")
    if arguments.export is not None:
        found.export(arguments.export)
        if told:
            print(f"\nthe run as WfFormat: {arguments.export}")
    if found.failed:
        complain(f"error: {one_line(found.error)}")
        return 1
    return 0
