"""`daws run`: a recorded workflow, a workload or a script on the cores of this machine."""

import argparse
from typing import TYPE_CHECKING

from daws.cli.importing import importing
from daws.cli.options import Once, Parser, add_scales, add_seed, add_strategy, is_script, number, whole

if TYPE_CHECKING:
    from daws.workflows.submission import GraphSubmission

ABOUT = """\
Run a workflow, a workload or a Python script on worker processes of this machine. Tasks of a
recorded workflow or a workload are emulated: they read and write real bytes and take their
recorded time. With --execute the workflow's own commands run, unless they are up to date. For
a script, --nodes, --workers and --strategy are the defaults of its clusters, and --export,
--plot and --trace record how its tasks ran."""

EXAMPLES = """\
examples:
  daws run ./montage.xml --time-scale 0.01 --trace trace.json
  daws run fan-out:tasks=1000 --workers 2 --spin --plot busy.png
  daws run ./genome.json --execute --folder ./data --dry-run
  daws run ./genome.json --execute --folder ./data --keep-going
  daws run --workers 4 script.py --its-own option
  daws run --export graph.json --plot busy.png script.py
  daws sim ./graph.json --nodes 64      the same script on 64 nodes, simulated

Arguments after a name that ends in .py belong to the script, and the exit code is the script's."""


def add_arguments(parser: Parser) -> None:
    parser.leaves_rest_to_script = True
    parser.set_defaults(script_arguments=[])
    what = parser.add_argument_group("what to run")
    what.add_argument(
        "what",
        metavar="WHAT",
        help="a DAX or WfFormat file, a workload (see 'daws workloads'), or a Python script with its arguments",
    )
    add_strategy(what)
    add_scales(what)
    what.add_argument("--spin", action="store_true", help="tasks compute all the time instead of sleeping")
    what.add_argument(
        "--ignore-needs", action="store_true", help="each task runs on one worker, even if it asks for more"
    )
    add_seed(what)
    _add_execute(parser.add_argument_group("commands of a workflow file (with --execute)"))
    where = parser.add_argument_group("where to run it")
    where.add_argument(
        "--workers", metavar="N", action=Once, type=whole, help="workers of each node (default: one per core)"
    )
    where.add_argument("--nodes", metavar="N", action=Once, type=whole, help="nodes, each a process (default: 1)")
    output = parser.add_argument_group("what to show")
    output.add_argument("--json", metavar="FILE", action=Once, help="write the numbers of the run as JSON; - is stdout")
    output.add_argument("--trace", metavar="FILE", action=Once, help="write when and where each task ran, for Perfetto")
    output.add_argument("--plot", metavar="FILE", action=Once, help="draw busy workers over time (.png, .svg or .pdf)")
    output.add_argument("--export", metavar="FILE", action=Once, help="write the run as WfFormat 1.5 (.json, .json.gz)")
    output.add_argument("--quiet", action="store_true", help="no progress bar and no table")


def _add_execute(execute: "argparse._ArgumentGroup") -> None:
    execute.add_argument(
        "--execute", action="store_true", help="run the commands in the file; up to date ones do not run"
    )
    execute.add_argument(
        "--folder",
        metavar="DIR",
        action=Once,
        default=".",
        help="where commands find and leave their files (default: .)",
    )
    execute.add_argument(
        "-k",
        "--keep-going",
        action="store_true",
        help="after a failure run all commands that do not need the failed one",
    )
    execute.add_argument(
        "--timeout", metavar="S", action=Once, type=number, help="kill a command that takes longer than S seconds"
    )
    execute.add_argument(
        "--retries", metavar="N", action=Once, type=whole, default=0, help="try a command that fails again, N times"
    )
    execute.add_argument("-n", "--dry-run", action="store_true", help="only list the commands that would run, and why")
    execute.add_argument("--rerun", action="store_true", help="run all commands, also those that are up to date")
    execute.add_argument(
        "--mtime", action="store_true", help="an output that is newer than its inputs is up to date, as with make"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command. All options are checked before anything runs."""
    with importing():
        from daws.cli.script import run_script
        from daws.cli.workflow_run import cluster_size, run_source
        from daws.strategy import lacks_live, parse_strategy

    lacks = lacks_live(parse_strategy(arguments.strategy))
    nodes, workers = cluster_size(arguments)
    if is_script(arguments.what):
        return run_script(arguments)
    return run_source(arguments, nodes, workers, lacks)


def carry_out(submission: "GraphSubmission", quiet: bool = False) -> bool:
    """Run until all tasks have ended or one has failed; False if the user interrupted it."""
    try:
        from daws.cli.live import LiveProgress

        progress = LiveProgress(submission, quiet)
        with progress:
            submission.prepare()
            submission.start(progress.tick)
            submission.wait(progress.tick)
        return True
    except KeyboardInterrupt:
        return False
