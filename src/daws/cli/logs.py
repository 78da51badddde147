"""`daws logs`: the log of a cluster's nodes and store."""

import argparse
from collections import deque

from daws.cli.importing import importing
from daws.cli.messages import complain
from daws.cli.options import Once, Parser, add_cluster_folder, folder_of, whole

ABOUT = """\
Show the log of the nodes and the store of a cluster, by time: time, level, logger, node,
session and task, message. The log files are in the folder 'logs' of the cluster's folder, so
these are the processes of this machine, or of all machines that share the folder."""

EXAMPLES = """\
examples:
  daws logs --cluster ./lab
  daws logs --cluster ./lab --follow --level warning
  daws logs --cluster ./lab --node 3 --last 20
  daws logs --cluster ./lab --json      one JSON object per line"""

LEVELS = ("debug", "info", "warning", "error")


def add_arguments(parser: Parser) -> None:
    add_cluster_folder(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="print new lines until interrupted")
    parser.add_argument("--node", metavar="N", action=Once, type=whole, help="only lines of this node")
    parser.add_argument(
        "--level", action=Once, choices=LEVELS, default="debug", help="only lines of this level and above"
    )
    parser.add_argument("--last", metavar="N", action=Once, type=whole, help="only the last N lines; not with --follow")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.cli.table import as_json
        from daws.client.admin import read_log
        from daws.logs import FOLDER, line_of
        from daws.model.errors import UsageError

    if arguments.last is not None and (arguments.follow or arguments.last < 1):
        raise UsageError("--last: give a number of at least 1, and leave out --follow")
    shown = as_json if arguments.json else line_of
    folder = folder_of(arguments)
    lines = read_log(folder, node=arguments.node, level=arguments.level, follow=arguments.follow)
    if not any((folder / FOLDER).glob("*.jsonl")):
        complain("no log yet; 'daws node' starts a node")
    for line in lines if arguments.last is None else deque(lines, arguments.last):
        print(shown(line), flush=arguments.follow)
    return 0
