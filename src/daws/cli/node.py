"""`daws node`: run a node of a cluster."""

import argparse

from daws.cli.importing import importing
from daws.cli.options import (
    LEAVE_S,
    Once,
    Parser,
    add_cluster_folder,
    check_seconds,
    folder_of,
    number,
    set_up_log,
    whole,
)
from daws.model.errors import UnavailableError, UsageError

ABOUT = """\
Start a node of a cluster: it runs tasks on executors of this machine until it is told to
leave. The first node on the store's machine starts the store. After Ctrl-C (or SIGTERM) the
node leaves in good order: it gives its waiting tasks to other nodes, finishes the running
ones, hands over its data, and ends. A second Ctrl-C, 2 seconds later or more, ends it at once."""

EXAMPLES = """\
examples:
  daws node --cluster ./lab             one executor per core
  daws node --cluster ./lab --bind 10.0.0.2 --executors 8
  daws node --cluster ./lab --context gpu=2 --memory-gb 32"""

WORKERS_MAX = 4096
STORE_IDLE_S = 60.0


def add_arguments(parser: Parser) -> None:
    add_cluster_folder(parser)
    parser.add_argument(
        "--executors", metavar="N", action=Once, type=whole, help="number of executors (default: one per core)"
    )
    parser.add_argument(
        "--context",
        metavar="LABEL=N",
        action="append",
        default=[],
        help="N more executors for tasks with this context, each with a device of its own; may be repeated",
    )
    parser.add_argument(
        "--kind",
        action=Once,
        choices=("processes", "threads"),
        default="processes",
        help="what executors are (default: processes)",
    )
    parser.add_argument(
        "--bind",
        metavar="ADDRESS",
        action=Once,
        help="the address of this machine for other nodes (default: the one by which it reaches the store)",
    )
    parser.add_argument(
        "--memory-gb", metavar="G", action=Once, type=number, help="memory for objects, before they are spilled to disk"
    )
    parser.add_argument(
        "--leave-within",
        metavar="S",
        action=Once,
        type=number,
        default=LEAVE_S,
        help="the node ends S seconds after it was told to leave (default: 60)",
    )


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.client.starting import default_workers
        from daws.data.limits import check_open_files
        from daws.net.address import Tcp
        from daws.runtime.cluster.hosting import run_node
        from daws.runtime.cluster.reach import Reach
        from daws.runtime.cluster.storing import StoreStarter
        from daws.wire.crew import Crew
        from daws.workers.sharedstreams import share_streams

    workers = default_workers() if arguments.executors is None else arguments.executors
    if not 1 <= workers <= WORKERS_MAX:
        raise UsageError(f"--executors {workers}: give a whole number from 1 to {WORKERS_MAX}")
    devices = tuple([_device(text) for text in arguments.context])
    if devices and arguments.kind == "threads":
        raise UsageError("--context: threads share one environment; use --kind processes")
    limit_bytes = None if arguments.memory_gb is None else int(arguments.memory_gb * 1e9)
    if limit_bytes is not None and limit_bytes <= 0:
        raise UsageError(f"--memory-gb {arguments.memory_gb:g}: give more than 0")
    check_seconds("--leave-within", arguments.leave_within)
    host = "" if arguments.bind is None else _host(arguments.bind)
    reach = Reach(folder_of(arguments), "node")
    try:
        host = host or reach.host_for_others()
    except UnavailableError as error:
        reach.config.check_hosts(reach.folder, error)
        raise
    check_open_files(workers if arguments.kind == "processes" else 0)
    set_up_log(arguments, reach.folder, "node")
    if arguments.kind == "threads":
        share_streams()
    crew = Crew(workers, arguments.kind, devices=devices)
    starter = StoreStarter(reach, STORE_IDLE_S)
    run_node(reach, crew, str(Tcp(host, 0)), limit_bytes, arguments.leave_within, starter)
    return 0


def _device(text: str) -> tuple[str, int]:
    label, _, count = text.partition("=")
    if not label or not count.isascii() or not count.isdigit() or not 1 <= int(count) <= WORKERS_MAX:
        raise UsageError(f"--context {text!r}: expected LABEL=N, as in gpu=2")
    return label, int(count)


def _host(text: str) -> str:
    """The address of this machine for other nodes, without brackets."""
    host = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if host in ("0.0.0.0", "::"):
        raise UsageError(f"--bind {text}: give the address by which other nodes reach this machine")
    if host.count(":") == 1:
        raise UsageError(f"--bind {text}: leave out the port; node_ports in cluster.toml are the ports of nodes")
    if not host or host.startswith("/"):
        raise UsageError(f"--bind {text!r}: expected an address of this machine, as in 10.0.0.1")
    return host
