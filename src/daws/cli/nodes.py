"""`daws node`, `store`, `nodes`, `drain`, `sessions`: the processes of a cluster, and questions to it."""

import argparse
import json
import logging
import os
from pathlib import Path

from msgspec.structs import asdict

from daws.client.admin import drain_node, end_session, list_nodes, list_sessions
from daws.client.defaults import default_workers
from daws.data.limits import check_open_files
from daws.model.errors import UnavailableError, UsageError
from daws.net.address import Tcp
from daws.runtime.cluster.hosting import NodeCrew
from daws.runtime.cluster.hosting import run_node as host_node
from daws.runtime.cluster.reach import Reach
from daws.runtime.cluster.storing import StoreStarter
from daws.runtime.cluster.storing import run_store as serve_store
from daws.workers.sharedstreams import share_streams

CLUSTER = "DAWS_CLUSTER"
WORKERS_MAX = 4096
STORE_IDLE_S = 60.0


def folder_of(arguments: argparse.Namespace) -> Path:
    """The folder of the cluster that is meant."""
    name = arguments.cluster or os.environ.get(CLUSTER, "")
    if not name:
        raise UsageError(f"which cluster? Give --cluster DIR, or set {CLUSTER}")
    return Path(name)


def run_node(arguments: argparse.Namespace) -> int:
    workers = default_workers() if arguments.executors is None else arguments.executors
    if not 1 <= workers <= WORKERS_MAX:
        raise UsageError(f"--executors {workers}: give a whole number from 1 to {WORKERS_MAX}")
    devices = tuple([_device(text) for text in arguments.context])
    if devices and arguments.kind == "threads":
        raise UsageError("--context: threads share one environment; use --kind processes")
    limit_bytes = None if arguments.memory_gb is None else int(arguments.memory_gb * 1e9)
    if limit_bytes is not None and limit_bytes <= 0:
        raise UsageError(f"--memory-gb {arguments.memory_gb:g}: a node has more than 0")
    check_seconds("--leave-within", arguments.leave_within)
    reach = Reach(folder_of(arguments), "node")
    check_open_files(workers if arguments.kind == "processes" else 0)
    _say_in_lines()
    if arguments.kind == "threads":
        share_streams()
    crew = NodeCrew(workers, arguments.kind, devices=devices)
    starter = StoreStarter(reach, STORE_IDLE_S)
    host_node(reach, crew, _bound(arguments.bind), limit_bytes, arguments.leave_within, starter)
    return 0


def check_seconds(option: str, seconds: float | None) -> None:
    if seconds is not None and seconds < 0:
        raise UsageError(f"{option} {seconds:g}: give a number of seconds from 0 on")


def _device(text: str) -> tuple[str, int]:
    label, _, count = text.partition("=")
    if not label or not count.isascii() or not count.isdigit() or not 1 <= int(count) <= WORKERS_MAX:
        raise UsageError(f"--context {text!r}: expected LABEL=N, as in gpu=2")
    return label, int(count)


def _bound(text: str) -> str:
    """An address with a port; 0 is any that is free."""
    host = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if host in ("0.0.0.0", "::"):
        raise UsageError(f"--bind {text}: give the address by which other nodes reach this machine")
    if host.count(":") == 1:
        raise UsageError(f"--bind {text}: leave out the port; node_ports in cluster.toml says which ones nodes may use")
    if not host or host.startswith("/"):
        raise UsageError(f"--bind {text!r}: expected an address of this machine, as in 10.0.0.1")
    return str(Tcp(host, 0))


def run_store(arguments: argparse.Namespace) -> int:
    check_seconds("--idle", arguments.idle)
    _say_in_lines()
    folder = folder_of(arguments)
    if not serve_store(folder, arguments.idle) and not arguments.idle:
        raise UnavailableError("the store of this cluster is served already", retry=False)
    return 0


def _say_in_lines() -> None:
    logging.basicConfig(format="daws: %(message)s", level=logging.INFO)


def show_nodes(arguments: argparse.Namespace) -> int:
    nodes = list_nodes(folder_of(arguments))
    for one in nodes:
        told = {"node": one.node, "address": one.address, "executors": one.workers, "contexts": one.contexts}
        print(json.dumps(told) if arguments.json else one)
    if not nodes and not arguments.json:
        print("there are no nodes; 'daws node' starts one")
    return 0


def drain(arguments: argparse.Namespace) -> int:
    check_seconds("--within", arguments.within)
    drain_node(folder_of(arguments), arguments.node, arguments.within)
    return 0


def show_sessions(arguments: argparse.Namespace) -> int:
    folder = folder_of(arguments)
    if arguments.end is not None:
        end_session(folder, arguments.end)
        return 0
    for one in list_sessions(folder):
        if arguments.json:
            fields = asdict(one)
            print(json.dumps({"session": fields.pop("name"), **fields}))
        else:
            print(one)
    return 0
