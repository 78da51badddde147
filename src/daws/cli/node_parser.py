"""What can be typed about clusters of many machines: nodes, sessions, and tasks from a shell. Imports as little as the
rest of the parser."""

import argparse

from daws.cli.parser import Command, Parser
from daws.cli.parser import _Format as Format
from daws.cli.parser import _number as number
from daws.cli.parser import _Once as Once
from daws.cli.parser import _whole as whole

LEAVE_S = 60.0
STORE_IDLE_S = 60.0

_NODE_ABOUT = """\
Be a node of a cluster: run its tasks on executors of this machine until told to leave. The
first node on the store's machine starts the store. SIGTERM (or Ctrl-C) has the node leave in
good order: it gives away what waits, finishes what runs, and goes; a second one ends it."""

_SUBMIT_ABOUT = """\
Run a command on a cluster, and return as soon as the cluster has it. With --array it runs once
for each number, which it finds in DAWS_ARRAY, and where the command says {}. Prints the name
of the session, for 'daws wait'."""


def add_node_commands(commands: "argparse._SubParsersAction[Parser]") -> None:
    _add_node(commands)
    _add_store(commands)
    _add_nodes(commands)
    _add_drain(commands)
    _add_submit(commands)
    _add_wait(commands)
    _add_sessions(commands)


def _parser(commands: "argparse._SubParsersAction[Parser]", name: str, what: str, about: str = "") -> Parser:
    parser = commands.add_parser(
        name,
        help=what,
        description=about or f"{what[0].upper()}{what[1:]}.",
        formatter_class=Format,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--cluster",
        metavar="DIR",
        action=Once,
        help="the cluster's folder, made by 'daws cluster init' (default: $DAWS_CLUSTER)",
    )
    return parser


def _add_node(commands: "argparse._SubParsersAction[Parser]") -> None:
    node = _parser(commands, "node", "be a node of a cluster", _NODE_ABOUT)
    node.set_defaults(load=_load_node)
    node.add_argument("--executors", metavar="N", action=Once, type=whole, help="default: one per core")
    node.add_argument(
        "--context",
        metavar="LABEL=N",
        action="append",
        default=[],
        help="so many more executors for tasks with this context, each with a device of its own; may be repeated",
    )
    node.add_argument(
        "--kind", action=Once, choices=("processes", "threads"), default="processes", help="what executors are"
    )
    node.add_argument(
        "--bind",
        metavar="ADDRESS",
        action=Once,
        default="127.0.0.1",
        help="the address of this machine for other nodes (default: 127.0.0.1)",
    )
    node.add_argument("--memory-gb", metavar="G", action=Once, type=number, help="for objects, before they are spilled")
    node.add_argument(
        "--leave-within", metavar="S", action=Once, type=number, default=LEAVE_S, help="seconds (default: 60)"
    )


def _add_store(commands: "argparse._SubParsersAction[Parser]") -> None:
    store = _parser(commands, "store", "serve the store of a cluster; nodes on its machine do that by themselves")
    store.set_defaults(load=_load_store)
    store.add_argument(
        "--idle", metavar="S", action=Once, type=number, default=0.0, help="end after S seconds without anybody"
    )


def _add_nodes(commands: "argparse._SubParsersAction[Parser]") -> None:
    nodes = _parser(commands, "nodes", "list the nodes of a cluster")
    nodes.set_defaults(load=_load_nodes)
    nodes.add_argument("--json", action="store_true", help="one JSON object per line")


def _add_drain(commands: "argparse._SubParsersAction[Parser]") -> None:
    drain = _parser(commands, "drain", "have a node leave in good order")
    drain.set_defaults(load=_load_drain)
    drain.add_argument("node", metavar="NODE", type=whole, help="its number, as 'daws nodes' lists it")
    drain.add_argument("--within", metavar="S", action=Once, type=number, default=LEAVE_S, help="default: 60 seconds")


def _add_submit(commands: "argparse._SubParsersAction[Parser]") -> None:
    submit = _parser(commands, "submit", "run a command on a cluster, once or many times", _SUBMIT_ABOUT)
    submit.set_defaults(load=_load_submit)
    submit.add_argument("--array", metavar="FIRST-LAST", action=Once, help="once for each of these numbers")
    submit.add_argument("--session", metavar="NAME", action=Once, default="", help="its name (default: one is made)")
    submit.add_argument("--cores", metavar="N", action=Once, type=whole, default=1, help="of each run (default: 1)")
    submit.add_argument("--context", metavar="C", action=Once, help="what an executor has to offer")
    submit.add_argument(
        "--retries", metavar="N", action=Once, type=whole, default=0, help="after a failure (default: 0)"
    )
    submit.add_argument("words", metavar="COMMAND", nargs=argparse.REMAINDER, help="after '--'")


def _add_wait(commands: "argparse._SubParsersAction[Parser]") -> None:
    wait = _parser(commands, "wait", "wait until a session has ended, and show what it printed")
    wait.set_defaults(load=_load_wait)
    wait.add_argument("session", metavar="NAME", help="as 'daws submit' printed it, or 'daws sessions' lists it")
    wait.add_argument("--keep", action="store_true", help="do not end the session, so that it can be waited for again")
    wait.add_argument("--timeout", metavar="S", action=Once, type=number, help="give up after so many seconds")
    wait.add_argument("--quiet", action="store_true", help="only the exit code")


def _add_sessions(commands: "argparse._SubParsersAction[Parser]") -> None:
    sessions = _parser(commands, "sessions", "list the sessions of a cluster, or end one")
    sessions.set_defaults(load=_load_sessions)
    sessions.add_argument("--end", metavar="NAME", action=Once, help="cancel what has not ended, and forget the rest")
    sessions.add_argument("--json", action="store_true", help="one JSON object per line")


def _load_node() -> Command:
    from daws.cli.nodes import run_node

    return run_node


def _load_store() -> Command:
    from daws.cli.nodes import run_store

    return run_store


def _load_nodes() -> Command:
    from daws.cli.nodes import show_nodes

    return show_nodes


def _load_drain() -> Command:
    from daws.cli.nodes import drain

    return drain


def _load_submit() -> Command:
    from daws.cli.submit import submit

    return submit


def _load_wait() -> Command:
    from daws.cli.submit import wait

    return wait


def _load_sessions() -> Command:
    from daws.cli.nodes import show_sessions

    return show_sessions
