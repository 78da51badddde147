"""What can be typed. Imports little but argparse: it has to answer `--help` at once.

The parsed arguments hold `load`, which imports what the command needs and returns what runs it.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from daws import __version__
from daws.cli.messages import complain, one_line, shown
from daws.model.numbers import read_number, read_whole

Command = Callable[[argparse.Namespace], int]

STRATEGY = "daws"
PROFILES = ("measured", "simmatrix", "local")
NETWORKS = ("simple", "fair")
NODES = 64
CORES = 2

_ABOUT = """\
Run many Python functions and programs that need each other's results, on this machine or on
many; or simulate what they would do. Most work is done from Python ('import daws')."""

_EXAMPLES = """\
examples:
  daws run script.py                    a Python script that uses daws.Cluster()
  daws run ./montage.xml                a recorded workflow, live on all cores of this machine
  daws cluster init ./lab               the folder and the keys of a cluster, then on each machine:
  daws node --cluster ./lab             be a node of it; 'daws.connect("./lab")' uses it
  daws sim fan-out:per-core=200 --nodes 64 --strategy flds
                                        simulate a workload on nodes that you do not have
  daws bound fan-in --nodes 100         how fast it could be at best

'daws COMMAND --help' says more about a command."""

_SIM_ABOUT = """\
Run a workload on a simulated cluster and say how it went: the very scheduling code of a
real node, driven by an event heap with models of executors, network and store."""

_GROUPS = """\
nodes that differ:
  A group is NODESxCORES[:speed=S,cluster=K,memory-gb=G,pool=P,steals=P+Q]. CORES is a
  number (8), a number with the context that these executors offer (8[gpu>any]), or several
  of them (8+1[gpu]).
  Give --group once for each sort of node, in quotes because of the brackets."""

_SIM_EXAMPLES = f"""\
examples:
  daws sim bot:per-core=1000 --nodes 1024
  daws sim all-pairs:files=200 --strategy mdl --plot busy.png
  daws sim fan-out:degree=10,output-mb=1 --strategy flds:t=0.2,order=critical-path
  daws sim pipeline --set clusters=2 --set slow=0.1 --set cluster-gbps=10 --json
  daws sim image-stacking --group '16x8' --group '4x2[gpu]:speed=3' --context aggregate=gpu
  daws sim ./montage.xml --nodes 8 --time-scale 0.1 --export run.json
  daws sim skeleton:tasks=256 --strategy aimes --pilots stampede --pilots gordon

{_GROUPS}

pilots:
  A resource is NAME[:nodes=N,cores=C,wait-s=S,spread=SIGMA,jitter=SIGMA,walltime-h=H], where
  wait-s is the median wait. Known are stampede, gordon, supermic, comet and blue-waters; of
  others wait-s has to be given. The strategy says how many pilots, how large and where."""


_RUN_ABOUT = """\
Run something for real, on worker processes of this machine. A recorded workflow or a
workload runs as emulated tasks, which read and write real bytes and take their recorded
time; with --execute its own commands run, those that are not up to date. A Python script runs
as it is: --nodes, --workers and --strategy are the defaults of its clusters, and --export,
--plot and --trace tell how its tasks ran."""

_RUN_EXAMPLES = """\
examples:
  daws run ./montage.xml --time-scale 0.01 --trace trace.json
  daws run fan-out:tasks=1000 --workers 2 --spin --plot busy.png
  daws run ./genome.json --execute --folder ./data --dry-run
  daws run ./genome.json --execute --folder ./data --keep-going
  daws run --workers 4 script.py --its-own option
  daws run --export graph.json --plot busy.png script.py
  daws sim ./graph.json --nodes 64      the same script on 64 nodes, simulated

What follows a name that ends in .py belongs to the script."""

_BOUND_ABOUT = """\
Say how fast a workload could be at best, whatever schedules it: lower bounds that hold for
every schedule of the simulator's model, and which of them binds. Beside it stand the earliest
finishing times that MATRIX published, which are not a bound (docs/bound.md says why)."""

_BOUND_EXAMPLES = f"""\
examples:
  daws bound bot:per-core=1000 --nodes 65536 --cores 2
  daws bound fan-in --nodes 100 --cores 2 --json
  daws bound ./montage.xml --nodes 8 --profile simmatrix

{_GROUPS}"""

_COMPARE_ABOUT = """\
Simulate a workload with several strategies on clusters of several sizes, with several seeds,
and put the results side by side. Each finished run is kept in a file: what was interrupted
goes on where it stopped, and more strategies, sizes or seeds can be added later."""

_COMPARE_EXAMPLES = """\
examples:
  daws compare fan-out:per-core=100 --strategy daws,flds,random --nodes 1,4,16,64 --seeds 5
  daws compare ./montage.xml --strategy daws --strategy flds:tt=5,t=0.2 --nodes 1,2,...,64
  daws compare pipeline --nodes 16,64 --jobs 2 --plot lines.svg --csv runs.csv --html page.html

strategies and sizes:
  Commas separate strategies where the name of a preset follows; all others belong to the
  settings of the strategy before them. --strategy can be repeated as well.
  In '1,4,...,1024' the dots go on as the two numbers before them do, times four here."""

_STUDY_ABOUT = """\
Run studies: what a paper published, beside what daws does. Each prints tables and says which
claims hold, and leaves a page, a plot and a CSV. Without a name: the list of all studies."""

_STUDY_EXAMPLES = """\
examples:
  daws study                            what there is
  daws study table4 --quick --out here  a small version, to see that it works
  daws study --all                      everything; less than an hour on two cores"""

_CLUSTER_ABOUT = """\
Make the folder of a cluster of several machines, or show one. It holds the cluster's keys:
who has them may join, submit and read; nobody else gets in. Copy it to every machine, or
have it on a file system that they share, always for its owner alone (mode 0700)."""

_CLUSTER_EXAMPLES = """\
examples:
  daws cluster init ./lab               on this machine alone: everything listens on the loopback
  daws cluster init ./lab --host 10.0.0.1 --host 10.0.0.2 --store redis://10.0.0.1:6379
  daws cluster show ./lab"""


class Parser(argparse.ArgumentParser):
    """An argparse parser that complains in one line, and does not keep to itself that its help could not be written."""

    leaves_rest_to_script = False

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        rest: list[str] = []
        if self.leaves_rest_to_script and args is not None:
            at = next((number for number, one in enumerate(args) if is_script(one)), len(args))
            args, rest = args[: at + 1], args[at + 1 :]
        found, unknown = super().parse_known_args(args, namespace)
        if rest:
            found.script_arguments = rest
        return found, unknown

    def error(self, message: str) -> NoReturn:
        complain(f"error: {one_line(message)} (see '{self.prog} --help')")
        sys.exit(2)


def is_script(what: str) -> bool:
    return what.endswith(".py")


def _whole(text: str) -> int:
    value = read_whole(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number")
    return value


def _scale(text: str) -> float:
    value = _number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{shown(text)} is less than 0")
    return value


def _number(text: str) -> float:
    value = read_number(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number")
    return float(value)


class _Format(argparse.RawDescriptionHelpFormatter):
    """Descriptions and examples as they are written, options in a column that is wide enough."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)
        self._action_max_length = 14  # argparse forgets to count the indent of subcommands


class _Once(argparse.Action):
    """Store a value; a second one is a mistake that argparse would pass over."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        given: set[str] = vars(namespace).setdefault("given", set())
        if self.dest in given:
            parser.error(f"{option} is given twice")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class _KnobsHelp(argparse.Action):
    """A help that ends with a table of what `--set` can set, which has to be fetched first."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from daws.cli.knobs import knobs_table

        parser.epilog = f"{parser.epilog}\n\nwhat --set can set:\n{knobs_table()}"
        parser.print_help()
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="daws",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=_Format,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"daws {__version__}")
    parser.set_defaults(load=lambda: lambda _: _print_help(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    _add_run(commands)
    from daws.cli.memo_parser import add_memo_command  # they need what is defined here
    from daws.cli.node_parser import add_node_commands

    add_memo_command(commands)
    _add_cluster(commands)
    add_node_commands(commands)
    _add_sim(commands)
    _add_bound(commands)
    _add_compare(commands)
    _add_study(commands)
    _add_strategies(commands)
    _add_workloads(commands)
    return parser


def _add_sim(commands: "argparse._SubParsersAction[Parser]") -> None:
    sim = commands.add_parser(
        "sim",
        help="run a workload on a simulated cluster",
        description=_SIM_ABOUT,
        epilog=_SIM_EXAMPLES,
        formatter_class=_Format,
        allow_abbrev=False,
        add_help=False,
    )
    sim.set_defaults(load=_load_sim)
    what = sim.add_argument_group("what to run")
    _add_workload(what)
    what.add_argument(
        "--strategy",
        metavar="S",
        action=_Once,
        default=STRATEGY,
        help=f"name or name:key=value,… (see 'daws strategies'; default: {STRATEGY})",
    )
    what.add_argument(
        "--seed", metavar="K", action=_Once, type=_whole, default=0, help="a run is one number (default: 0)"
    )
    _add_estimates(what)
    _add_task_options(what)

    where = sim.add_argument_group("where to run it")
    _add_cluster_options(where)
    where.add_argument(
        "--pilots",
        metavar="RESOURCE",
        action="append",
        default=[],
        help="instead of nodes, a resource with a batch queue that pilots may be asked of; may be repeated (see below)",
    )

    output = sim.add_argument_group("what to show")
    output.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    output.add_argument(
        "--plot", metavar="FILE", action=_Once, help="draw busy executors over time (.png, .svg or .pdf)"
    )
    output.add_argument(
        "--export", metavar="FILE", action=_Once, help="write the run as WfFormat 1.5 (.json, .json.gz)"
    )
    output.add_argument("--check", action="store_true", help="watch every step with independent checkers (slower)")
    output.add_argument("--quiet", action="store_true", help="no progress bar and no table")
    output.add_argument("-h", "--help", action=_KnobsHelp, nargs=0, help="show this help and exit")


def _add_workload(what: "argparse._ArgumentGroup") -> None:
    what.add_argument(
        "workload",
        metavar="WORKLOAD",
        help="kind or kind:key=value,… (see 'daws workloads'), or a DAX or WfFormat file",
    )


def _add_estimates(what: "argparse._ArgumentGroup") -> None:
    what.add_argument(
        "--estimates",
        metavar="E",
        action=_Once,
        default="exact",
        help="what is known of lengths: exact (to planners; nodes learn them), told (to nodes too), "
        "or how far off they are at most, as in 20%% (default: exact)",
    )


def _add_task_options(what: "argparse._ArgumentGroup") -> None:
    """What can be said of the tasks of a workload."""
    what.add_argument(
        "--context",
        metavar="[KIND=]CONTEXT",
        action="append",
        default=[],
        help="what tasks (of a kind) ask of an executor: gpu, gpu@3, gpu@1..5, a|b (either), a>b (a, else b)",
    )
    what.add_argument(
        "--task-memory-gb",
        metavar="[KIND=]G",
        action="append",
        default=[],
        help="what tasks (of a kind) declare to need while they run; matters where nodes have --memory-gb",
    )
    what.add_argument(
        "--time-scale", metavar="X", action=_Once, type=_scale, default=1.0, help="multiply the lengths of all tasks"
    )
    what.add_argument(
        "--data-scale", metavar="X", action=_Once, type=_scale, default=1.0, help="multiply the sizes of all objects"
    )


def _add_cluster_options(where: "argparse._ArgumentGroup") -> None:
    """Nodes, alike or not, and what things cost there."""
    where.add_argument("--nodes", metavar="N", action=_Once, type=_whole, help=f"number of nodes (default: {NODES})")
    _add_node_options(where)
    where.add_argument(
        "--group",
        metavar="GROUP",
        action="append",
        default=[],
        help="nodes of one sort, instead of --nodes, --cores and --memory-gb; may be repeated (see below)",
    )
    _add_cost_options(where)


def _add_node_options(where: "argparse._ArgumentGroup") -> None:
    where.add_argument("--cores", metavar="C", action=_Once, type=_whole, help=f"cores of each node (default: {CORES})")
    where.add_argument(
        "--memory-gb", metavar="G", action=_Once, type=_number, help="memory of each node for tasks (default: no limit)"
    )


def _add_cost_options(where: "argparse._ArgumentGroup") -> None:
    where.add_argument(
        "--profile",
        action=_Once,
        choices=PROFILES,
        default=PROFILES[0],
        help="what things cost: as measured, as in the papers' simulator, or as on one live node (default: measured)",
    )
    where.add_argument(
        "--network",
        action=_Once,
        choices=NETWORKS,
        default=NETWORKS[0],
        help="a link carries one transfer after the other, or all at once in fair parts (default: simple)",
    )
    where.add_argument(
        "--set",
        metavar="KEY=VALUE",
        dest="settings",
        action="append",
        default=[],
        help="change the cluster or a cost; may be repeated (see below)",
    )


def _add_run(commands: "argparse._SubParsersAction[Parser]") -> None:
    run = commands.add_parser(
        "run",
        help="run a workflow, a workload or a script on this machine",
        description=_RUN_ABOUT,
        epilog=_RUN_EXAMPLES,
        formatter_class=_Format,
        allow_abbrev=False,
    )
    run.leaves_rest_to_script = True
    run.set_defaults(load=_load_run, script_arguments=[])
    what = run.add_argument_group("what to run")
    what.add_argument(
        "what",
        metavar="WHAT",
        help="a DAX or WfFormat file, a workload (see 'daws workloads'), or a Python script with its arguments",
    )
    what.add_argument(
        "--strategy",
        metavar="S",
        action=_Once,
        default=STRATEGY,
        help=f"name or name:key=value,… (see 'daws strategies'; default: {STRATEGY})",
    )
    what.add_argument(
        "--time-scale", metavar="X", action=_Once, type=_scale, default=1.0, help="multiply the lengths of all tasks"
    )
    what.add_argument(
        "--data-scale", metavar="X", action=_Once, type=_scale, default=1.0, help="multiply the sizes of all objects"
    )
    what.add_argument("--spin", action="store_true", help="tasks compute all the time instead of sleeping")
    what.add_argument("--ignore-needs", action="store_true", help="each task runs on one worker, whatever it asks for")
    _add_execute(run.add_argument_group("commands of a workflow file (with --execute)"))
    what.add_argument(
        "--seed", metavar="K", action=_Once, type=_whole, default=0, help="of a workload that is made (default: 0)"
    )
    where = run.add_argument_group("where to run it")
    where.add_argument(
        "--workers", metavar="N", action=_Once, type=_whole, help="workers of each node (default: one per core)"
    )
    where.add_argument("--nodes", metavar="N", action=_Once, type=_whole, help="nodes, each a process (default: 1)")
    output = run.add_argument_group("what to show")
    output.add_argument("--json", metavar="FILE", action=_Once, help="write how it went as JSON; - is stdout")
    output.add_argument(
        "--trace", metavar="FILE", action=_Once, help="write when and where each task ran, for Perfetto"
    )
    output.add_argument("--plot", metavar="FILE", action=_Once, help="draw busy workers over time (.png, .svg or .pdf)")
    output.add_argument(
        "--export", metavar="FILE", action=_Once, help="write the run as WfFormat 1.5 (.json, .json.gz)"
    )
    output.add_argument("--quiet", action="store_true", help="no progress bar and no table")


def _add_execute(execute: "argparse._ArgumentGroup") -> None:
    execute.add_argument(
        "--execute", action="store_true", help="run the commands in the file; up to date ones do not run"
    )
    execute.add_argument(
        "--folder",
        metavar="DIR",
        action=_Once,
        default=".",
        help="where commands find and leave their files (default: .)",
    )
    execute.add_argument(
        "-k", "--keep-going", action="store_true", help="after a failure go on with all that does not need it"
    )
    execute.add_argument("-n", "--dry-run", action="store_true", help="only say what would run, and why")
    execute.add_argument("--rerun", action="store_true", help="run all commands, also those that are up to date")
    execute.add_argument(
        "--mtime", action="store_true", help="up to date is what is newer than its inputs, as with make"
    )


def _add_bound(commands: "argparse._SubParsersAction[Parser]") -> None:
    bound = commands.add_parser(
        "bound",
        help="say how fast a workload could be at best",
        description=_BOUND_ABOUT,
        epilog=_BOUND_EXAMPLES,
        formatter_class=_Format,
        allow_abbrev=False,
        add_help=False,
    )
    bound.set_defaults(load=_load_bound, estimates="exact")
    what = bound.add_argument_group("what to run")
    _add_workload(what)
    what.add_argument(
        "--seed", metavar="K", action=_Once, type=_whole, default=0, help="of a workload that is made (default: 0)"
    )
    _add_task_options(what)
    _add_cluster_options(bound.add_argument_group("where to run it"))
    published = bound.add_argument_group("the recursion as published")
    published.add_argument(
        "--per-core", metavar="K", action=_Once, type=_number, help="tasks per core (default: those of the workload)"
    )
    published.add_argument(
        "--mean-length-ms", metavar="L", action=_Once, type=_number, help="of a task (default: that of the workload)"
    )
    published.add_argument(
        "--bandwidth-mbps", metavar="B", action=_Once, type=_number, help="MB/s between nodes (default: as --profile)"
    )
    published.add_argument(
        "--task-bytes", metavar="N", action=_Once, type=_whole, help="of a task that moves (default: as --profile)"
    )
    output = bound.add_argument_group("what to show")
    output.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    output.add_argument("--quiet", action="store_true", help="no progress bar")
    output.add_argument("-h", "--help", action=_KnobsHelp, nargs=0, help="show this help and exit")


def _add_compare(commands: "argparse._SubParsersAction[Parser]") -> None:
    compare = commands.add_parser(
        "compare",
        help="simulate several strategies, sizes and seeds, and put them side by side",
        description=_COMPARE_ABOUT,
        epilog=_COMPARE_EXAMPLES,
        formatter_class=_Format,
        allow_abbrev=False,
        add_help=False,
    )
    compare.set_defaults(load=_load_compare, group=[])
    what = compare.add_argument_group("what to run")
    _add_workload(what)
    what.add_argument(
        "--strategy",
        metavar="S,…",
        dest="strategies",
        action="append",
        default=[],
        help="strategies as for 'daws sim'; may be repeated (default: daws,random)",
    )
    what.add_argument("--seeds", metavar="N", action=_Once, type=_whole, default=5, help="runs of each (default: 5)")
    _add_estimates(what)
    _add_task_options(what)
    where = compare.add_argument_group("where to run it")
    where.add_argument(
        "--nodes",
        metavar="N,…",
        dest="sizes",
        action=_Once,
        default="1,4,16,64",
        help="numbers of nodes (default: 1,4,16,64)",
    )
    _add_node_options(where)
    _add_cost_options(where)
    how = compare.add_argument_group("how to go about it")
    how.add_argument("--jobs", metavar="N", action=_Once, type=_whole, help="processes (default: one per core)")
    how.add_argument(
        "--results", metavar="FILE", action=_Once, help="where runs are kept (default: compare-WORKLOAD-….jsonl here)"
    )
    output = compare.add_argument_group("what to show")
    output.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the tables")
    output.add_argument("--csv", metavar="FILE", action=_Once, help="write all runs, one per line")
    output.add_argument(
        "--plot", metavar="FILE", action=_Once, help="draw makespans and shares of the bound (.png, .svg or .pdf)"
    )
    output.add_argument("--html", metavar="FILE", action=_Once, help="write one page with plot and tables")
    output.add_argument("--quiet", action="store_true", help="no progress bar and no tables")
    output.add_argument("-h", "--help", action=_KnobsHelp, nargs=0, help="show this help and exit")


def _add_study(commands: "argparse._SubParsersAction[Parser]") -> None:
    study = commands.add_parser(
        "study",
        help="published tables and figures beside what daws does",
        description=_STUDY_ABOUT,
        epilog=_STUDY_EXAMPLES,
        formatter_class=_Format,
        allow_abbrev=False,
    )
    study.set_defaults(load=_load_study)
    study.add_argument("names", nargs="*", metavar="NAME", help="studies to run")
    study.add_argument("--all", action="store_true", help="run all of them")
    study.add_argument("--quick", action="store_true", help="small versions, only to show that they work")
    study.add_argument("--files", metavar="DIR", action=_Once, help="folder with the classic workflow files to use")
    study.add_argument(
        "--out", metavar="DIR", action=_Once, help="where everything goes (default: docs/studies, or out/studies)"
    )
    study.add_argument("--jobs", metavar="N", action=_Once, type=_whole, help="processes (default: one per core)")
    study.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_cluster(commands: "argparse._SubParsersAction[Parser]") -> None:
    cluster = commands.add_parser(
        "cluster",
        help="make the folder and the keys of a cluster of several machines",
        description=_CLUSTER_ABOUT,
        epilog=_CLUSTER_EXAMPLES,
        formatter_class=_Format,
        allow_abbrev=False,
    )
    cluster.set_defaults(load=lambda: lambda _: _print_help(cluster))
    actions = cluster.add_subparsers(title="what to do", metavar="ACTION", parser_class=Parser)
    init = actions.add_parser("init", help="make a new folder", formatter_class=_Format, allow_abbrev=False)
    init.set_defaults(load=_load_cluster_init)
    init.add_argument("folder", metavar="DIR", help="the folder, which must not exist yet")
    init.add_argument(
        "--name", dest="cluster_name", metavar="NAME", action=_Once, help="of the cluster (default: that of the folder)"
    )
    init.add_argument(
        "--host",
        dest="hosts",
        metavar="ADDR",
        action="append",
        help="address of a machine; may be repeated, and the store is at the first one (default: 127.0.0.1)",
    )
    init.add_argument(
        "--store", metavar="STORE", action=_Once, default="embedded", help="'embedded' (default), or a redis:// URL"
    )
    init.add_argument("--port", metavar="P", action=_Once, type=_whole, help="of the embedded store (default: 7878)")
    init.add_argument(
        "--store-shards",
        metavar="N",
        action=_Once,
        type=_whole,
        default=0,
        help="pieces of a store on a server (default: 1, or 4 for each primary of a Valkey Cluster)",
    )
    show = actions.add_parser("show", help="say what there is", formatter_class=_Format, allow_abbrev=False)
    show.set_defaults(load=_load_cluster_show)
    show.add_argument("folder", metavar="DIR", help="the folder of a cluster")


def _add_strategies(commands: "argparse._SubParsersAction[Parser]") -> None:
    strategies = commands.add_parser(
        "strategies",
        help="list the strategies, or show one in full",
        description="A strategy is a list of decisions. Lists the presets and the answers to each decision.",
        epilog=(
            "examples:\n"
            "  daws strategies                       all presets, where they come from, what they decide\n"
            "  daws strategies flds                  one preset with every parameter\n"
            "  daws strategies daws:order=critical-path,t=0.2\n"
            "  daws strategies place                 all answers to one decision"
        ),
        formatter_class=_Format,
        allow_abbrev=False,
    )
    strategies.add_argument("name", metavar="NAME", nargs="?", help="a strategy as for 'daws sim', or a decision")
    strategies.set_defaults(load=_load_strategies)


def _add_workloads(commands: "argparse._SubParsersAction[Parser]") -> None:
    workloads = commands.add_parser(
        "workloads",
        help="list the workloads and what each can be told",
        description="Lists the kinds of workload with their keys, defaults and units.",
        allow_abbrev=False,
    )
    workloads.set_defaults(load=_load_workloads)


def _print_help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


def _load_sim() -> Command:
    from daws.cli.sim import run

    return run


def _load_run() -> Command:
    from daws.cli.run import run

    return run


def _load_bound() -> Command:
    from daws.cli.bound import run

    return run


def _load_compare() -> Command:
    from daws.cli.compare import run

    return run


def _load_study() -> Command:
    from daws.cli.study import run

    return run


def _load_cluster_init() -> Command:
    from daws.cli.cluster import init

    return init


def _load_cluster_show() -> Command:
    from daws.cli.cluster import show

    return show


def _load_strategies() -> Command:
    from daws.cli.lists import show_strategies

    return lambda arguments: show_strategies(arguments.name)


def _load_workloads() -> Command:
    from daws.cli.lists import show_workloads

    return lambda _: show_workloads()
