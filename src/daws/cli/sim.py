"""`daws sim`: run a workload on a simulated cluster."""

import argparse

from daws.cli.importing import importing
from daws.cli.messages import EXIT_FAILED, complain, one_line
from daws.cli.options import (
    GROUPS,
    Once,
    Parser,
    add_cluster_options,
    add_estimates,
    add_json,
    add_seed,
    add_strategy,
    add_task_options,
    add_workload,
)

ABOUT = """\
Run a workload on a simulated cluster, and print its makespan, efficiency and traffic. The
scheduling code is that of real nodes; executors, network and store are models."""

EXAMPLES = f"""\
examples:
  daws sim bot:per-core=1000 --nodes 1024
  daws sim all-pairs:files=200 --strategy mdl --plot busy.png
  daws sim fan-out:degree=10,output-mb=1 --strategy flds:t=0.2,order=critical-path
  daws sim pipeline --set clusters=2 --set slow=0.1 --set cluster-gbps=10 --json
  daws sim image-stacking --group '16x8' --group '4x2[gpu]:speed=3' --context aggregate=gpu
  daws sim ./montage.xml --nodes 8 --time-scale 0.1 --export run.json
  daws sim skeleton:tasks=256 --strategy aimes --pilots stampede --pilots gordon

{GROUPS}

pilots:
  A resource is NAME[:nodes=N,cores=C,wait-s=S,spread=SIGMA,jitter=SIGMA,walltime-h=H], where
  wait-s is the median wait. Known are stampede, gordon, supermic, comet and blue-waters; of
  others wait-s has to be given. The strategy says how many pilots, how large and where."""


def add_arguments(parser: Parser) -> None:
    parser.shows_settings = True
    what = parser.add_argument_group("what to run")
    add_workload(what)
    add_strategy(what)
    add_seed(what, "a run is one number")
    add_estimates(what)
    add_task_options(what)
    where = parser.add_argument_group("where to run it")
    add_cluster_options(where)
    where.add_argument(
        "--pilots",
        metavar="RESOURCE",
        action="append",
        default=[],
        help="instead of nodes: a resource with a batch queue, where pilots are requested; may be repeated (see below)",
    )
    output = parser.add_argument_group("what to show")
    add_json(output)
    output.add_argument(
        "--plot", metavar="FILE", action=Once, help="draw busy executors over time (.png, .svg or .pdf)"
    )
    output.add_argument("--export", metavar="FILE", action=Once, help="write the run as WfFormat 1.5 (.json, .json.gz)")
    output.add_argument("--check", action="store_true", help="watch every step with independent checkers (slower)")
    output.add_argument("--quiet", action="store_true", help="no progress bar and no table")


def run(arguments: argparse.Namespace) -> int:
    """Run the command. All options are checked before anything runs."""
    with importing():
        from pathlib import Path

        from daws.cli.asked import asked_of, check_seed, title_of
        from daws.cli.pilots import run_on_pilots
        from daws.cli.table import as_json
        from daws.cli.targets import check_apart
        from daws.formats import check_target
        from daws.predict.simulation import simulate_graph
        from daws.predict.source import read_source
        from daws.runs.progress import Progress
        from daws.sim.estimates import parse_estimates
        from daws.sim.plot import check_target as check_picture
        from daws.strategy import parse_strategy

    check_seed(arguments.seed)
    if arguments.pilots:
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
        print(as_json(found.report()))
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
        return EXIT_FAILED
    return 0
