"""`daws nodes`: list the nodes of a cluster."""

import argparse

from daws.cli.importing import importing
from daws.cli.options import Parser, add_cluster_folder, add_json, folder_of

ABOUT = "List the nodes of a cluster: number, address, and executors by context."

EXAMPLES = """\
examples:
  daws nodes --cluster ./lab
  daws nodes --cluster ./lab --json     node, address, executors and contexts of each node"""


def add_arguments(parser: Parser) -> None:
    add_cluster_folder(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.cli.table import as_json
        from daws.client.admin import list_nodes

    nodes = list_nodes(folder_of(arguments))
    if arguments.json:
        found = [
            {"node": one.node, "address": one.address, "executors": one.workers, "contexts": one.contexts}
            for one in nodes
        ]
        print(as_json(found))
        return 0
    print("\n".join(map(str, nodes)) or "there are no nodes; 'daws node' starts one")
    return 0
