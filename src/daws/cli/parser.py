"""The table of all commands, and the parser that reads what was typed.

A command is the module of its name: `ABOUT` and `EXAMPLES` for its help, `add_arguments(parser)`, and `run(arguments)`,
which returns the exit code. The module is imported when its command is typed. It imports little at its top, so that
`--help` answers at once; `run` imports the rest under `importing()`.
"""

import argparse
from importlib import import_module

from daws import __version__
from daws.cli.messages import EXIT_CODES
from daws.cli.options import Format, Parser, add_verbosity

COMMANDS = {
    "run": "run a workflow, a workload or a script on this machine",
    "memo": "list the results that are kept for later runs, or remove them",
    "cluster": "make the folder and the keys of a cluster of several machines",
    "node": "start a node of a cluster",
    "store": "serve the store of a cluster; nodes on its machine do that by themselves",
    "nodes": "list the nodes of a cluster",
    "drain": "tell a node to leave in good order",
    "submit": "run a command on a cluster, once or many times",
    "wait": "wait until a session has ended, and show what it printed",
    "sessions": "list the sessions of a cluster, or end one",
    "logs": "show the log of a cluster's nodes and store, and follow it",
    "sim": "run a workload on a simulated cluster",
    "bound": "compute the shortest possible time of a workload",
    "compare": "simulate several strategies, sizes and seeds, and put them side by side",
    "study": "compare published tables and figures with those of daws",
    "strategies": "list the strategies, or show one in full",
    "workloads": "list the kinds of workload with their keys",
}

ELSEWHERE = {
    **dict.fromkeys(("start", "worker", "up", "serve"), "'daws node' starts a node"),
    **dict.fromkeys(("stop", "shutdown", "kill", "down"), "Ctrl-C ends 'daws node', 'daws drain' a node elsewhere"),
    **dict.fromkeys(("status", "list", "info", "ls"), "'daws nodes' lists nodes, 'daws sessions' lists sessions"),
    **dict.fromkeys(("ps", "jobs", "queue", "cancel"), "'daws sessions' lists sessions, or ends one"),
    **dict.fromkeys(("init", "create"), "'daws cluster init' makes a cluster"),
    "head": "the first 'daws node' starts the store; 'daws store' serves it alone",
    "simulate": "'daws sim' simulates",
    "version": "'daws --version' prints the version",
}
"""Commands of other tools, and the command of daws with the same meaning."""

_ABOUT = """\
Run many Python functions and programs that need each other's results, on this machine or on
many; or simulate how they would run. Most work is done from Python ('import daws')."""

_EXAMPLES = f"""\
examples:
  daws run script.py                    a Python script that uses daws.Cluster()
  daws run ./montage.xml                a recorded workflow, live on all cores of this machine
  daws cluster init ./lab               the folder and the keys of a cluster, then on each machine:
  daws node --cluster ./lab             start a node; programs use 'daws.connect("./lab")'
  daws sim fan-out:per-core=200 --nodes 64 --strategy flds
                                        simulate a workload on nodes that you do not have
  daws bound fan-in --nodes 100         the shortest possible time

{EXIT_CODES}

'daws COMMAND --help' says more about a command. Commands that print tables print JSON with --json."""


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="daws", description=_ABOUT, epilog=_EXAMPLES, formatter_class=Format, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"daws {__version__}")
    parser.set_defaults(run=lambda _: parser.show_help())
    parser.elsewhere = ELSEWHERE
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for name, line in COMMANDS.items():
        command = commands.add_parser(name, help=line, formatter_class=Format, allow_abbrev=False)
        command.complete = _complete
    described = commands.add_parser("help", allow_abbrev=False)  # without a line in the list of commands
    described.add_argument("command", nargs="*", help="a command, such as node")
    described.set_defaults(run=lambda given: _show_help(parser, given.command))
    return parser


def _show_help(parser: Parser, command: list[str]) -> int:
    """Print the help of a command, or of all. An unknown command is refused as without 'help'."""
    parser.parse_args([*command, "--help"])
    return 0


def _complete(parser: Parser) -> None:
    """Import the module of a command and add its arguments."""
    command = import_module(f"daws.cli.{parser.prog.split()[-1]}")
    parser.description, parser.epilog = command.ABOUT, command.EXAMPLES
    parser.set_defaults(run=command.run)
    command.add_arguments(parser)
    add_verbosity(parser)
