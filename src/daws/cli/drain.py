"""`daws drain`: tell a node to leave in good order."""

import argparse

from daws.cli.importing import importing
from daws.cli.options import LEAVE_S, Once, Parser, add_cluster_folder, check_seconds, folder_of, number, whole

ABOUT = """\
Tell a node to leave in good order: it gives its waiting tasks to other nodes, finishes the
running ones, hands over its data, and ends. The command does not wait for that."""

EXAMPLES = """\
examples:
  daws drain 3 --cluster ./lab
  daws drain 3 --cluster ./lab --within 600   running tasks have ten minutes to end"""


def add_arguments(parser: Parser) -> None:
    add_cluster_folder(parser)
    parser.add_argument("node", metavar="NODE", type=whole, help="number of the node, as 'daws nodes' lists it")
    parser.add_argument(
        "--within",
        metavar="S",
        action=Once,
        type=number,
        default=LEAVE_S,
        help="the node is gone after S seconds (default: 60)",
    )


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.client.admin import drain_node

    check_seconds("--within", arguments.within)
    drain_node(folder_of(arguments), arguments.node, arguments.within)
    return 0
