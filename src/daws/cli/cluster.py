"""`daws cluster`: the folder of a cluster, with its keys."""

import argparse
import re
from pathlib import Path

from daws.cli.table import grid
from daws.net.config import EMBEDDED, HOSTS, PORT, ClusterConfig, shown
from daws.net.folder import init_cluster
from daws.net.keys import ROLES_OF, Keys, good_until

NAME = "daws"
"""Of a cluster whose folder is called something that no cluster can be called."""


def init(arguments: argparse.Namespace) -> int:
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


def show(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder)
    config = ClusterConfig.load(folder)
    roles = [role for role in ROLES_OF if (folder / f"{role}.key").exists()]
    for role in roles:
        Keys(folder, role).check()
    first, last = config.node_ports
    rows = [
        ("name", config.name),
        ("protocol", str(config.protocol)),
        ("store", ", ".join(map(shown, config.store_urls)) or EMBEDDED),
        *([("store shards", str(config.store_shards))] if config.store_shards else []),
        ("hosts", ", ".join(config.hosts)),
        ("port", f"{config.port} (of the embedded store)"),
        ("node ports", f"{first} to {last}" if last else "any"),
        ("lease", f"{config.lease_s:g} s"),
        ("keys", f"{' and '.join(roles) or 'none'}, good until {good_until(folder):%Y-%m-%d}"),
    ]
    print(grid(rows))
    return 0


def name_for(folder: Path) -> str:
    """A cluster is called as its folder is, as far as it can be."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._")[:64] or NAME
