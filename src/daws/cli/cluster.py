"""`daws cluster`: the folder of a cluster, with its keys."""

import argparse
import re
from pathlib import Path

from daws.cli.importing import importing
from daws.cli.options import Format, Once, Parser, add_json, whole

ABOUT = """\
Make the folder of a cluster of several machines, or show one. The folder holds the cluster's
keys: everybody who has them may join, submit and read; nobody else gets in. Copy it to every
machine, or have it on a file system that they share, always for its owner alone (mode 0700)."""

EXAMPLES = """\
examples:
  daws cluster init ./lab               on this machine alone: everything listens on the loopback
  daws cluster init ./lab --host 10.0.0.1 --host 10.0.0.2 --store redis://10.0.0.1:6379
  daws cluster show ./lab
  daws cluster show ./lab --json"""

NAME = "daws"
"""The name of a cluster whose folder has a name that no cluster can have."""


def add_arguments(parser: Parser) -> None:
    parser.set_defaults(act=lambda _: parser.show_help())
    actions = parser.add_subparsers(title="what to do", metavar="ACTION", parser_class=Parser)
    init = actions.add_parser(
        "init",
        help="make a new folder",
        description="Make the folder of a new cluster, with its keys.",
        epilog=EXAMPLES,
        formatter_class=Format,
        allow_abbrev=False,
    )
    init.set_defaults(act=init_folder)
    init.add_argument("folder", metavar="DIR", help="the folder, which must not exist yet")
    init.add_argument(
        "--name", dest="cluster_name", metavar="NAME", action=Once, help="of the cluster (default: that of the folder)"
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
    init.add_argument("--port", metavar="P", action=Once, type=whole, help="of the embedded store (default: 7878)")
    init.add_argument(
        "--store-shards",
        metavar="N",
        action=Once,
        type=whole,
        default=0,
        help="pieces of a store on a server (default: 1, or 4 for each primary of a Valkey Cluster)",
    )
    show = actions.add_parser(
        "show",
        help="show the settings of a folder",
        description="Show the settings of a cluster's folder, and check its keys.",
        epilog=EXAMPLES,
        formatter_class=Format,
        allow_abbrev=False,
    )
    show.set_defaults(act=show_folder)
    show.add_argument("folder", metavar="DIR", help="the folder of a cluster")
    add_json(show)


def run(arguments: argparse.Namespace) -> int:
    code: int = arguments.act(arguments)
    return code


def init_folder(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.net.config import HOSTS, PORT, ClusterConfig
        from daws.net.folder import init_cluster

    folder = Path(arguments.folder)
    config = ClusterConfig(
        name=name_for(folder) if arguments.cluster_name is None else arguments.cluster_name,
        store=arguments.store,
        store_shards=arguments.store_shards,
        hosts=tuple(arguments.hosts or HOSTS),
        port=PORT if arguments.port is None else arguments.port,
    )
    init_cluster(folder, config)
    print(f"made {folder} with the keys of cluster {config.name}; who has a copy of it may join")
    return 0


def show_folder(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.cli.table import as_json, grid
        from daws.net.config import EMBEDDED, ClusterConfig, shown
        from daws.net.keys import ROLES_OF, Keys, good_until

    folder = Path(arguments.folder)
    config = ClusterConfig.load(folder)
    roles = [role for role in ROLES_OF if (folder / f"{role}.key").exists()]
    for role in roles:
        Keys(folder, role).check()
    first, last = config.node_ports
    store = ", ".join(map(shown, config.store_urls)) or EMBEDDED
    until = f"{good_until(folder):%Y-%m-%d}"
    if arguments.json:
        found = {
            "name": config.name,
            "protocol": config.protocol,
            "store": store,
            "store_shards": config.store_shards,
            "hosts": config.hosts,
            "port": config.port,
            "node_ports": [first, last] if last else None,
            "lease_s": config.lease_s,
            "keys": roles,
            "keys_good_until": until,
        }
        print(as_json(found))
        return 0
    rows = [
        ("name", config.name),
        ("protocol", str(config.protocol)),
        ("store", store),
        *([("store shards", str(config.store_shards))] if config.store_shards else []),
        ("hosts", ", ".join(config.hosts)),
        ("port", f"{config.port} (of the embedded store)"),
        ("node ports", f"{first} to {last}" if last else "any"),
        ("lease", f"{config.lease_s:g} s"),
        ("keys", f"{' and '.join(roles) or 'none'}, good until {until}"),
    ]
    print(grid(rows))
    return 0


def name_for(folder: Path) -> str:
    """The name of a folder with all that the name of a cluster cannot have left out."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._")[:64] or NAME
