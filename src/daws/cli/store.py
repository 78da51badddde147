"""`daws store`: serve the store of a cluster."""

import argparse

from daws.cli.importing import importing
from daws.cli.options import Once, Parser, add_cluster_folder, check_seconds, folder_of, number, set_up_log

ABOUT = """\
Serve the store of a cluster on this machine until interrupted. The first node on the store's
machine starts the store by itself; use this command to run the store without a node."""

EXAMPLES = """\
examples:
  daws store --cluster ./lab
  daws store --cluster ./lab --idle 600   end after ten minutes without nodes and clients"""


def add_arguments(parser: Parser) -> None:
    add_cluster_folder(parser)
    parser.add_argument(
        "--idle",
        metavar="S",
        action=Once,
        type=number,
        default=0.0,
        help="end after S seconds without nodes and clients",
    )


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.model.errors import UnavailableError
        from daws.net.config import ClusterConfig
        from daws.runtime.cluster.storing import run_store

    check_seconds("--idle", arguments.idle)
    folder = folder_of(arguments)
    config = ClusterConfig.load(folder)  # before a log file is made there
    set_up_log(arguments, folder, "store")
    try:
        is_first = run_store(folder, arguments.idle)
    except UnavailableError as error:
        config.check_hosts(folder, error)
        raise
    if not is_first and not arguments.idle:
        raise UnavailableError("the store of this cluster runs already", retry=False)
    return 0
