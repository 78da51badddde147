"""`daws compare`: several strategies, sizes and seeds side by side."""

import argparse

from daws.cli.importing import importing
from daws.cli.options import (
    Once,
    Parser,
    add_cost_options,
    add_estimates,
    add_jobs,
    add_json,
    add_node_options,
    add_task_options,
    add_workload,
    whole,
)

ABOUT = """\
Simulate a workload with several strategies on clusters of several sizes, with several seeds,
and put the results side by side. Each finished run is kept in a file: a comparison that was
interrupted goes on where it stopped, and more strategies, sizes or seeds can be added later."""

EXAMPLES = """\
examples:
  daws compare fan-out:per-core=100 --strategy daws,flds,random --nodes 1,4,16,64 --seeds 5
  daws compare ./montage.xml --strategy daws --strategy flds:tt=5,t=0.2 --nodes 1,2,...,64
  daws compare pipeline --nodes 16,64 --jobs 2 --plot lines.svg --csv runs.csv --html page.html

strategies and sizes:
  Commas separate strategies where the name of a preset follows; all others belong to the
  settings of the strategy before them. --strategy can be repeated as well.
  In '1,4,...,1024' the dots go on as the two numbers before them do, times four here."""


def add_arguments(parser: Parser) -> None:
    parser.shows_settings = True
    parser.set_defaults(group=[])
    what = parser.add_argument_group("what to run")
    add_workload(what)
    what.add_argument(
        "--strategy",
        metavar="S,…",
        dest="strategies",
        action="append",
        default=[],
        help="strategies as for 'daws sim'; may be repeated (default: daws,random)",
    )
    what.add_argument("--seeds", metavar="N", action=Once, type=whole, default=5, help="runs of each (default: 5)")
    add_estimates(what)
    add_task_options(what)
    where = parser.add_argument_group("where to run it")
    where.add_argument(
        "--nodes",
        metavar="N,…",
        dest="sizes",
        action=Once,
        default="1,4,16,64",
        help="numbers of nodes (default: 1,4,16,64)",
    )
    add_node_options(where)
    add_cost_options(where)
    how = parser.add_argument_group("how to go about it")
    add_jobs(how)
    how.add_argument(
        "--results",
        metavar="FILE",
        action=Once,
        help="file that keeps the runs (default: compare-WORKLOAD-….jsonl here)",
    )
    output = parser.add_argument_group("what to show")
    add_json(output)
    output.add_argument("--csv", metavar="FILE", action=Once, help="write all runs, one per line")
    output.add_argument(
        "--plot", metavar="FILE", action=Once, help="draw makespans and shares of the bound (.png, .svg or .pdf)"
    )
    output.add_argument("--html", metavar="FILE", action=Once, help="write one page with plot and tables")
    output.add_argument("--quiet", action="store_true", help="no progress bar and no tables")


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.cli.comparison import compare

    return compare(arguments)
