"""`daws bound`: the shortest possible time of a workload."""

import argparse

from daws.cli.importing import importing
from daws.cli.options import (
    GROUPS,
    Once,
    Parser,
    add_cluster_options,
    add_json,
    add_seed,
    add_task_options,
    add_workload,
    number,
    whole,
)

ABOUT = """\
Say how fast a workload could be at best with any scheduler: lower bounds that hold for
every schedule of the simulator's model, and which of them binds. Beside it stand the earliest
finishing times that MATRIX published, which are not a bound (docs/bound.md says why)."""

EXAMPLES = f"""\
examples:
  daws bound bot:per-core=1000 --nodes 65536 --cores 2
  daws bound fan-in --nodes 100 --cores 2 --json
  daws bound ./montage.xml --nodes 8 --profile simmatrix

{GROUPS}"""


def add_arguments(parser: Parser) -> None:
    parser.shows_settings = True
    parser.set_defaults(estimates="exact")
    what = parser.add_argument_group("what to run")
    add_workload(what)
    add_seed(what)
    add_task_options(what)
    add_cluster_options(parser.add_argument_group("where to run it"))
    published = parser.add_argument_group("the recursion as published")
    published.add_argument(
        "--per-core", metavar="K", action=Once, type=number, help="tasks per core (default: those of the workload)"
    )
    published.add_argument(
        "--mean-length-ms",
        metavar="L",
        action=Once,
        type=number,
        help="mean length of a task (default: that of the workload)",
    )
    published.add_argument(
        "--bandwidth-mbps", metavar="B", action=Once, type=number, help="MB/s between nodes (default: as --profile)"
    )
    published.add_argument(
        "--task-bytes", metavar="N", action=Once, type=whole, help="size of a task that moves (default: as --profile)"
    )
    output = parser.add_argument_group("what to show")
    add_json(output)
    output.add_argument("--quiet", action="store_true", help="no progress bar")


def run(arguments: argparse.Namespace) -> int:
    """Run the command. All options are checked before anything is computed."""
    with importing():
        from daws.cli.asked import asked_of, check_seed, title_of, typed
        from daws.cli.table import as_json
        from daws.predict.limits import Matrix, bound_graph
        from daws.predict.source import read_source
        from daws.runs.progress import Progress

    check_seed(arguments.seed)
    matrix = Matrix(**{name: getattr(arguments, name) for name in Matrix.__struct_fields__})
    matrix.check(typed)
    asked = asked_of(arguments)
    source = read_source(arguments.workload)
    cluster, settings = asked.cluster(), asked.settings(arguments.seed)
    graph = asked.graph(source, cluster, arguments.seed)
    with Progress(graph.task_count, quiet=arguments.quiet) as progress:
        limits = bound_graph(graph, cluster, settings, asked, source, title_of(arguments, source), matrix, progress)
    print(as_json(limits.report()) if arguments.json else limits)
    return 0
