"""`daws bound`: how fast a workload could be at best."""

import argparse

import msgspec

from daws.cli.asked import asked_of, check_seed, title_of, typed
from daws.predict.limits import Matrix, bound_graph
from daws.predict.source import read_source
from daws.runs.progress import Progress


def run(arguments: argparse.Namespace) -> int:
    """Everything is checked before anything is done."""
    check_seed(arguments.seed)
    matrix = Matrix(**{name: getattr(arguments, name) for name in Matrix.__struct_fields__})
    matrix.check(typed)
    asked = asked_of(arguments)
    source = read_source(arguments.workload)
    cluster, settings = asked.cluster(), asked.settings(arguments.seed)
    graph = asked.graph(source, cluster, arguments.seed)
    with Progress(graph.task_count, quiet=arguments.quiet) as progress:
        limits = bound_graph(graph, cluster, settings, asked, source, title_of(arguments, source), matrix, progress)
    print(msgspec.json.encode(limits.report()).decode() if arguments.json else limits)
    return 0
