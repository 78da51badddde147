"""`daws sessions`: list the sessions of a cluster, or end one."""

import argparse

from daws.cli.importing import importing
from daws.cli.options import Once, Parser, add_cluster_folder, add_json, folder_of

ABOUT = "List the sessions of a cluster with the number of their tasks, or end one."

EXAMPLES = """\
examples:
  daws sessions --cluster ./lab
  daws sessions --cluster ./lab --json
  daws sessions --cluster ./lab --end night"""


def add_arguments(parser: Parser) -> None:
    add_cluster_folder(parser)
    parser.add_argument(
        "--end", metavar="NAME", action=Once, help="end a session: cancel its tasks, and delete its results"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from msgspec.structs import asdict

        from daws.cli.table import as_json
        from daws.client.admin import end_session, list_sessions

    folder = folder_of(arguments)
    if arguments.end is not None:
        end_session(folder, arguments.end)
        return 0
    sessions = list_sessions(folder)
    if arguments.json:
        rows = [asdict(one) for one in sessions]
        print(as_json([{"session": row.pop("name"), **row} for row in rows]))
        return 0
    print("\n".join(map(str, sessions)) or "there are no sessions: no client is connected, and no session is kept")
    return 0
