"""`daws drain`: tell a node to leave in good order."""

import argparse

from daws.cli.importing import importing
from daws.cli.options import LEAVE_S, Once, Parser, add_cluster_folder, check_seconds, folder_of, number, whole

ABOUT = """\
Tell a node to leave in good order: it gives its waiting tasks to other nodes, finishes the
running ones, hands over its data, and ends. The command waits for that with --wait only."""

EXAMPLES = """\
examples:
  daws drain 3 --cluster ./lab
  daws drain 3 --cluster ./lab --within 600   running tasks have ten minutes to end
  daws drain 3 --cluster ./lab --wait         return when the node is gone"""


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
    parser.add_argument("--wait", action="store_true", help="return when the node is gone")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.client.admin import drain_node, wait_until_gone

    check_seconds("--within", arguments.within)
    folder, node, within_s = folder_of(arguments), arguments.node, arguments.within
    drain_node(folder, node, within_s)
    if not arguments.quiet:
        print(f"node {node} leaves within {within_s:g} s; 'daws nodes' shows it until it is gone", flush=True)
    if arguments.wait:
        wait_until_gone(folder, node, within_s)
        if not arguments.quiet:
            print(f"node {node} is gone")
    return 0
