"""The options that several commands share, and the conversion of texts to numbers. Imports little but argparse."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from daws.cli.messages import EXIT_USAGE, complain, one_line, shown
from daws.model.numbers import read_number, read_whole

if TYPE_CHECKING:
    from pathlib import Path

STRATEGY = "daws"
PROFILES = ("measured", "simmatrix", "local")
NETWORKS = ("simple", "fair")
NODES = 64
CORES = 2
LEAVE_S = 60.0
CLUSTER = "DAWS_CLUSTER"
LOG = "DAWS_LOG"
ELSEWHERE = {
    **dict.fromkeys(("--workers", "--nworkers", "--num-workers", "--cpus", "--cores", "--slots"), "--executors"),
    **dict.fromkeys(("--folder", "--dir", "--keys", "--config"), "--cluster"),
}
"""Options of other tools, and the option of daws with the same meaning."""

GROUPS = """\
nodes that differ:
  A group is NODESxCORES[:speed=S,cluster=K,memory-gb=G,pool=P,steals=P+Q]. CORES is a
  number (8), a number with the context that these executors offer (8[gpu>any]), or several
  of them (8+1[gpu]).
  Give --group once for each sort of node, in quotes because of the brackets."""


class Parser(argparse.ArgumentParser):
    """An argparse parser that reports errors in one line, also an error while it writes its help.

    `complete` adds the arguments of a command when that command is typed. `elsewhere` has commands of other tools and
    the command of daws with the same meaning. `shows_settings` adds a table of the keys of `--set` to the help.
    """

    complete: "Callable[[Parser], None] | None" = None
    elsewhere: "Mapping[str, str]" = MappingProxyType({})
    leaves_rest_to_script = False
    shows_settings = False

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.complete is not None:
            complete, self.complete = self.complete, None
            complete(self)
        rest: list[str] = []
        if self.leaves_rest_to_script and args is not None:
            at = next((number for number, one in enumerate(args) if is_script(one)), len(args))
            args, rest = args[: at + 1], args[at + 1 :]
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self._refuse(unknown[0])
        if rest:
            found.script_arguments = rest
        return found, unknown

    def _refuse(self, word: str) -> NoReturn:
        """Refuse an unknown argument, and name the argument that was probably meant."""
        options = self._option_string_actions
        name = word.partition("=")[0]
        if name.startswith("-"):
            meant = ELSEWHERE.get(name, "")
            meant = meant if meant in options else closest(name, options)
            self.error(f"there is no option {name}" + (f"; did you mean {meant}?" if meant else ""))
        is_folder = "--cluster" in options and os.path.isdir(word)
        cure = f"; the folder of a cluster is given by --cluster {word}" if is_folder else ""
        self.error(f"there is one argument too many: {shown(word)}{cure}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            meant = closest(value, action.choices)
            others = f"did you mean {meant!r}?" if meant else f"there are {', '.join(action.choices)}"
            self.error(f"there is no command {shown(value)}; {self.elsewhere.get(value, others)}")
        super()._check_value(action, value)

    def format_help(self) -> str:
        text = super().format_help()
        if not self.shows_settings:
            return text
        from daws.cli.knobs import knobs_table

        return f"{text}\nwhat --set can set:\n{knobs_table()}\n"

    def show_help(self) -> int:
        self.print_help()
        return 0

    def error(self, message: str) -> NoReturn:
        complain(f"error: {one_line(message)} (see '{self.prog} --help')")
        sys.exit(EXIT_USAGE)


class Format(argparse.RawDescriptionHelpFormatter):
    """A help format that keeps descriptions and examples as they are written, with a wide column for options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)
        self._action_max_length = 14  # argparse forgets to count the indent of subcommands


class Once(argparse.Action):
    """Store a value, and refuse a second one, which argparse would accept."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        given: set[str] = vars(namespace).setdefault("given", set())
        if self.dest in given:
            parser.error(f"{option} is given twice")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant; empty if none is similar."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), 1, 0.7)), "")


def is_script(what: str) -> bool:
    return what.endswith(".py")


def whole(text: str) -> int:
    value = read_whole(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number")
    return value


def number(text: str) -> float:
    value = read_number(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number")
    return float(value)


def scale(text: str) -> float:
    value = number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{shown(text)} is less than 0")
    return value


def add_json(output: "argparse._ActionsContainer") -> None:
    output.add_argument("--json", action="store_true", help="print one JSON document instead of the table")


def add_verbosity(parser: Parser) -> None:
    """Add `--verbose` and `--quiet`, unless the command has options of its own with these names."""
    known = parser._option_string_actions
    how = parser.add_argument_group("the log of daws itself, on stderr (see also DAWS_LOG)")
    if "--verbose" not in known:
        how.add_argument("-v", "--verbose", action="count", default=0, help="write more to the log; -vv for still more")
    if "--quiet" not in known:
        how.add_argument("--quiet", action="store_true", help="write less to the log")


def set_up_log(arguments: argparse.Namespace, folder: "Path | None" = None, role: str = "") -> None:
    """Set up the log of a command by `--verbose`, `--quiet` and DAWS_LOG. A command with a `role` has a log file."""
    louder = getattr(arguments, "verbose", 0) or -getattr(arguments, "quiet", False)
    if not louder and not role and not os.environ.get(LOG):
        return
    import logging

    from daws.logs import set_up

    set_up(logging.INFO if role else logging.WARNING, louder, folder, role)


def reset_log() -> None:
    """Restore the log settings, because a program may call a command as a function."""
    if "daws.logs" in sys.modules:
        sys.modules["daws.logs"].reset()


def add_workload(what: "argparse._ActionsContainer") -> None:
    what.add_argument(
        "workload",
        metavar="WORKLOAD",
        help="kind or kind:key=value,… (see 'daws workloads'), or a DAX or WfFormat file",
    )


def add_strategy(what: "argparse._ActionsContainer") -> None:
    what.add_argument(
        "--strategy",
        metavar="S",
        action=Once,
        default=STRATEGY,
        help=f"name or name:key=value,… (see 'daws strategies'; default: {STRATEGY})",
    )


def add_seed(what: "argparse._ActionsContainer", text: str = "of a workload that is made") -> None:
    what.add_argument("--seed", metavar="K", action=Once, type=whole, default=0, help=f"{text} (default: 0)")


def add_estimates(what: "argparse._ActionsContainer") -> None:
    what.add_argument(
        "--estimates",
        metavar="E",
        action=Once,
        default="exact",
        help="what is known of lengths: exact (to planners; nodes learn them), told (to nodes too), "
        "or how far off they are at most, as in 20%% (default: exact)",
    )


def add_task_options(what: "argparse._ActionsContainer") -> None:
    """Add the options for contexts, memory and scales of the tasks of a workload."""
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
    add_scales(what)


def add_scales(what: "argparse._ActionsContainer") -> None:
    for name, of in (("time", "lengths of all tasks"), ("data", "sizes of all objects")):
        what.add_argument(
            f"--{name}-scale", metavar="X", action=Once, type=scale, default=1.0, help=f"multiply the {of}"
        )


def add_cluster_options(where: "argparse._ActionsContainer") -> None:
    """Add the options for nodes, equal or different, and for the costs of their work."""
    where.add_argument("--nodes", metavar="N", action=Once, type=whole, help=f"number of nodes (default: {NODES})")
    add_node_options(where)
    where.add_argument(
        "--group",
        metavar="GROUP",
        action="append",
        default=[],
        help="nodes of one sort, instead of --nodes, --cores and --memory-gb; may be repeated (see below)",
    )
    add_cost_options(where)


def add_node_options(where: "argparse._ActionsContainer") -> None:
    where.add_argument("--cores", metavar="C", action=Once, type=whole, help=f"cores of each node (default: {CORES})")
    where.add_argument(
        "--memory-gb", metavar="G", action=Once, type=number, help="memory of each node for tasks (default: no limit)"
    )


def add_cost_options(where: "argparse._ActionsContainer") -> None:
    where.add_argument(
        "--profile",
        action=Once,
        choices=PROFILES,
        default=PROFILES[0],
        help="costs: as measured, as in the papers' simulator, or as on one live node (default: measured)",
    )
    where.add_argument(
        "--network",
        action=Once,
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


def add_jobs(how: "argparse._ActionsContainer") -> None:
    how.add_argument("--jobs", metavar="N", action=Once, type=whole, help="processes (default: one per core)")


def add_cluster_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        metavar="DIR",
        action=Once,
        help=f"the cluster's folder, made by 'daws cluster init' (default: ${CLUSTER})",
    )


def folder_of(arguments: argparse.Namespace) -> "Path":
    """The folder of the cluster: the option, else the variable DAWS_CLUSTER."""
    from pathlib import Path

    from daws.model.errors import UsageError

    name = arguments.cluster or os.environ.get(CLUSTER, "")
    if not name:
        raise UsageError(f"which cluster? Give --cluster DIR, or set {CLUSTER}")
    return Path(name)


def check_seconds(option: str, seconds: float | None) -> None:
    from daws.model.errors import UsageError

    if seconds is not None and seconds < 0:
        raise UsageError(f"{option} {seconds:g}: give a number of seconds from 0 on")
