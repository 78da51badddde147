"""`daws cluster`: the folder of a cluster, with its keys."""

import argparse
from collections.abc import Callable

from daws.cli.importing import importing
from daws.cli.options import Format, Once, Parser, add_json, add_verbosity, whole
from daws.model.errors import UsageError

ABOUT = """\
Make the folder of a cluster of several machines, or show one. The folder holds the cluster's
keys. Every user who has them may join, submit and read; all other users are refused. Copy the
folder to every machine, or keep it on a file system that they share. Only its owner may read
it (mode 0700)."""

EXAMPLES = """\
examples:
  daws cluster init ./lab               on this machine alone: everything listens on the loopback
  daws cluster init ./lab --host 10.0.0.1 --host 10.0.0.2 --store redis://10.0.0.1:6379
  daws cluster show ./lab
  daws cluster show ./lab --json"""


def add_arguments(parser: Parser) -> None:
    parser.set_defaults(act=lambda _: parser.show_help())
    actions = parser.add_subparsers(title="what to do", metavar="ACTION", parser_class=Parser)

    def add(name: str, act: Callable[[argparse.Namespace], int], line: str, about: str) -> Parser:
        parser = actions.add_parser(
            name, help=line, description=about, epilog=EXAMPLES, formatter_class=Format, allow_abbrev=False
        )
        parser.set_defaults(act=act)
        return parser

    init = add("init", init_folder, "make a new cluster", "Make the folder of a new cluster, with its keys.")
    init.add_argument("folder", metavar="DIR", help="the folder: a new one, or an empty one")
    init.add_argument(
        "--name",
        dest="cluster_name",
        metavar="NAME",
        action=Once,
        help="name of the cluster (default: that of the folder)",
    )
    init.add_argument(
        "--host",
        dest="hosts",
        metavar="ADDR",
        action="append",
        help="address of a machine; may be repeated, and the store is at the first one (default: 127.0.0.1)",
    )
    init.add_argument(
        "--store", metavar="STORE", action=Once, default="embedded", help="'embedded' (default), or a redis:// URL"
    )
    init.add_argument("--port", metavar="P", action=Once, type=whole, help="port of the embedded store (default: 7878)")
    init.add_argument(
        "--store-shards",
        metavar="N",
        action=Once,
        type=whole,
        default=0,
        help="pieces of a store on a server (default: 1, or 4 for each primary of a Valkey Cluster)",
    )
    about = "Show the settings of a cluster's folder, and check its keys."
    show = add("show", show_folder, "show the settings of a folder", about)
    show.add_argument("folder", metavar="DIR", help="the folder of a cluster")
    add_json(show)
    add_verbosity(init)
    add_verbosity(show)


def run(arguments: argparse.Namespace) -> int:
    code: int = arguments.act(arguments)
    return code


def init_folder(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.client.admin import create_cluster

    name = arguments.cluster_name
    if name == "":
        raise UsageError("--name '': give a name, or leave it out")
    made = create_cluster(
        arguments.folder,
        name=name or "",
        hosts=arguments.hosts or (),
        store=arguments.store,
        store_shards=arguments.store_shards,
        port=arguments.port,
    )
    print(
        f"made {arguments.folder} with the keys of cluster {made.name}; copy the folder to all machines of the cluster"
    )
    return 0


def show_folder(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.cli.table import as_json, grid
        from daws.client.admin import describe_cluster

    found = describe_cluster(arguments.folder)
    if arguments.json:
        print(as_json(found))
        return 0
    ports = found.node_ports
    rows = [
        ("name", found.name),
        ("protocol", str(found.protocol)),
        ("store", found.store),
        *([("store shards", str(found.store_shards))] if found.store_shards else []),
        ("hosts", ", ".join(found.hosts)),
        ("port", f"{found.port} (of the embedded store)"),
        ("node ports", "any" if ports is None else f"{ports[0]} to {ports[1]}"),
        ("lease", f"{found.lease_s:g} s"),
        ("keys", f"{' and '.join(found.keys) or 'none'}, good until {found.keys_good_until}"),
    ]
    print(grid(rows))
    return 0
