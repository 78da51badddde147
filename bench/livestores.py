"""`python -m bench.livestores`: live nodes around a store on a Valkey server, beside the embedded store.

    python -m bench.livestores               throughput with no-op tasks, 4 nodes, both stores
    python -m bench.livestores --failover    a Valkey Cluster of 3 + 3 servers; one primary dies in the middle

Nodes are processes of their own, and so are the servers; all of them are on this machine. Rows per task are what nodes
and client have asked the store for, beside what the simulator counts for the same tasks.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daws.client.connect import ConnectedCluster, connect
from daws.client.waiting import as_completed, gather
from daws.net.config import EMBEDDED, ClusterConfig
from daws.net.folder import init_cluster
from daws.store.valkey.server import _slot_of
from tests.valkey import LocalServer, a_cluster, free_port

AIM_TASKS_PER_S = 5_000
NODES = 4
NAME = "bench"
_ROWS = re.compile(r"has asked the store for ([\d,]+) rows")


@contextmanager
def live(folder: Path, store: str, executors: int, kind: str) -> Iterator[tuple[ConnectedCluster, Callable[[], int]]]:
    """A cluster of live nodes, connected to; and what tells how many rows its nodes have asked for, once they left."""
    place = folder / "cluster"
    init_cluster(place, ClusterConfig(name=NAME, port=free_port(), store=store))
    command = [sys.executable, "-m", "daws.cli", "node", "--cluster", str(place)]
    command += ["--executors", str(executors), "--kind", kind]
    logs = [folder / f"node-{number}.log" for number in range(NODES)]
    nodes = []
    for log in logs:
        with log.open("wb") as out:
            nodes.append(subprocess.Popen(command, stdout=out, stderr=out))

    def rows() -> int:
        for node in nodes:
            node.send_signal(signal.SIGTERM)
        for node in nodes:
            node.wait()
        found = [_ROWS.search(log.read_text()) for log in logs]
        return sum(int(one.group(1).replace(",", "")) for one in found if one is not None)

    try:
        with connect(place, timeout=60) as cluster:
            until_s = time.monotonic() + 60
            while cluster.nodes < NODES:
                cluster._open()
                assert time.monotonic() < until_s, logs[0].read_text()
                time.sleep(0.01)
            yield cluster, rows
    finally:
        for node in nodes:
            node.kill()
            node.wait()
        if store == EMBEDDED:
            _end_store(place)


def _end_store(place: Path) -> None:
    """A node has started it; its lock says who it is."""
    for line in Path("/proc/locks").read_text().splitlines():
        parts = line.split()
        if parts[1] == "FLOCK" and int(parts[5].rpartition(":")[2]) == os.stat(place / "state" / "lock").st_ino:
            os.kill(int(parts[4]), signal.SIGTERM)


def throughput(folder: Path, store: str, tasks: int, executors: int, kind: str) -> tuple[float, float]:
    """Tasks per second, and rows per task (0 where nobody counts them)."""
    with live(folder, store, executors, kind) as (cluster, node_rows):
        gather([cluster.submit(abs, -1) for _ in range(200)])  # everybody knows the function
        best_s = float("inf")
        for _ in range(3):
            began_s = time.perf_counter()
            results = gather([cluster.submit(abs, number) for number in range(tasks)])
            assert sum(results) == tasks * (tasks - 1) // 2
            best_s = min(best_s, time.perf_counter() - began_s)
        link: Any = cluster._joined.joined._link
        mine = 0 if store == EMBEDDED else link.store.rows
        asked = node_rows()
        return tasks / best_s, (asked + mine) / (3 * tasks + 200) if mine else 0.0


def simulated_rows(tasks: int, executors: int) -> float:
    """What the simulator counts for such tasks."""
    from daws.sim.cluster import cluster_of
    from daws.sim.simulate import Settings, simulate
    from daws.strategy import parse_strategy
    from daws.workloads import parse_workload

    graph = parse_workload(f"bot:tasks={tasks},length-ms=1").build(NODES, executors, 0)
    result, _ = simulate(graph, cluster_of(NODES, executors), parse_strategy("daws"), Settings(check=False))
    return result.store_records / tasks


def compare(tasks: int, executors: int, kind: str) -> None:
    rates: dict[str, float] = {}
    for store in (EMBEDDED, "valkey"):
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            server = None if store == EMBEDDED else LocalServer(folder / "server", "--appendonly", "yes")
            try:
                url = EMBEDDED if server is None else server.url
                rates[store], rows = throughput(folder, url, tasks, executors, kind)
            finally:
                if server is not None:
                    server.kill()
        said = f"; {rows:.2f} rows per task, {simulated_rows(tasks, executors):.2f} in the simulator" if rows else ""
        print(f"{NODES} nodes, {store}: {rates[store]:,.0f} tasks/s{said}", flush=True)
    share = rates["valkey"] / rates[EMBEDDED]
    good = share >= 0.5 and rates["valkey"] >= AIM_TASKS_PER_S
    print(f"Valkey has {share:.0%} of the embedded store's{'' if good else f'  <- aim: 50 % and {AIM_TASKS_PER_S:,}'}")


def failover(tasks: int, length_s: float) -> None:
    """The primary that has the cluster's shard dies when a third of the tasks has ended."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        servers: list[LocalServer] = []

        def start(*options: str, **more: Any) -> LocalServer:
            servers.append(LocalServer(folder / f"server-{len(servers)}", *options, **more))
            return servers[-1]

        try:
            a_cluster(start)
            with live(folder, ",".join(one.url for one in servers[:3]), 2, "threads") as (cluster, _):
                owner = servers[_slot_of(f"{{daws:{NAME}:0}}") * 3 // 16384]
                futures = [cluster.submit(_sleep, number, length_s) for number in range(tasks)]
                began_s = last_s = time.perf_counter()
                longest_s = 0.0
                for ended, _future in enumerate(as_completed(futures)):
                    now_s = time.perf_counter()
                    longest_s, last_s = max(longest_s, now_s - last_s), now_s
                    if ended == tasks // 3:
                        owner.kill()
                took_s = last_s - began_s
                right = [future.result() for future in futures] == list(range(tasks))
        finally:
            for server in servers:
                server.kill()
    ideal_s = tasks * length_s / (2 * NODES)
    print(
        f"3 + 3 servers, {tasks:,} tasks of {length_s * 1e3:g} ms on {NODES} x 2 executors: {took_s:.1f} s "
        f"({ideal_s:.1f} s at best), longest silence {longest_s:.1f} s; all results {'right' if right else 'WRONG'}"
    )


def _sleep(number: int, length_s: float) -> int:
    time.sleep(length_s)
    return number


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.livestores", description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, help="default: 20,000, or 4,000 with --failover")
    parser.add_argument("--executors", type=int, default=1, help="of each node (default: 1)")
    parser.add_argument("--kind", choices=("threads", "processes"), default="threads", help="default: threads")
    parser.add_argument("--failover", action="store_true")
    options = parser.parse_args()
    if options.failover:
        failover(options.tasks or 4_000, 0.01)
    else:
        compare(options.tasks or 20_000, options.executors, options.kind)


if __name__ == "__main__":
    main()
