"""A live cluster on this machine: a store, so many nodes, and what their processes have used so far."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from bench.scale.counting import ASK, Counts
from daws.model.cluster import Members
from daws.model.errors import UnavailableError
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.runtime.cluster import asking

JOIN_S = 300.0
ASK_S = 0.5
"""Between questions who is there: each is a connection of its own, and disturbs."""
LOOK_S = 0.02
COUNTED_S = 10.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LOST = "declared dead"


class Used(Struct, frozen=True):
    """Seconds of a processor since the start, of nodes, store and client, and of all that ran on the machine; what was
    said, and how many nodes were taken for dead that were not."""

    nodes_s: float
    store_s: float
    client_s: float
    machine_s: float
    counts: Counts
    expiries: int
    at_s: float


class Ground:
    """`with Ground(100, 2) as ground:` all nodes have joined."""

    def __init__(self, nodes: int, executors: int, lease_s: float) -> None:
        self.nodes = nodes
        self.executors = executors
        self.lease_s = lease_s

    def __enter__(self) -> "Ground":
        self._temporary = tempfile.TemporaryDirectory(prefix="scale-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)
        self.cluster = self.folder / "cluster"
        init_cluster(self.cluster, ClusterConfig(name="scale", port=free_port(), lease_s=self.lease_s))
        began_s = time.monotonic()
        self._launcher = subprocess.Popen(
            [sys.executable, "-m", "bench.scale.launching", str(self.folder), str(self.nodes), str(self.executors)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert self._launcher.stdout is not None
            self.store_process, *self.processes = [int(one) for one in self._launcher.stdout.readline().split()]
            wait_until(lambda: len(self.members()) == self.nodes, JOIN_S, "all nodes have joined", ASK_S)
        except BaseException:
            self.__exit__()
            raise
        self.joined_s = time.monotonic() - began_s
        return self

    def __exit__(self, *_: object) -> None:
        assert self._launcher.stdin is not None and self._launcher.stdout is not None
        self._launcher.stdin.close()
        self._launcher.wait()
        self._launcher.stdout.close()
        self._temporary.cleanup()

    def members(self) -> Members:
        try:
            return asking.ask(self.cluster, asking.members)
        except UnavailableError:
            return Members(0, ())

    def kill_last(self) -> None:
        """One node less, without a word."""
        os.kill(self.processes.pop(), signal.SIGKILL)

    def used(self) -> Used:
        return Used(
            nodes_s=sum(processor_s(process) for process in self.processes),
            store_s=processor_s(self.store_process),
            client_s=time.process_time(),
            machine_s=machine_s(),
            counts=self._counts(),
            expiries=self._expiries(),
            at_s=time.monotonic(),
        )

    def _counts(self) -> Counts:
        folder = self.folder / "counts"
        for path in folder.iterdir():
            path.unlink()
        alive = [one for one in (self.store_process, *self.processes) if processor_s(one)]
        for process in alive:
            os.kill(process, ASK)
        wait_until(lambda: all((folder / str(one)).exists() for one in alive), COUNTED_S, "all nodes have counted")
        total = Counts()
        for process in alive:
            total += Counts(*json.loads((folder / str(process)).read_text()))
        return total

    def _expiries(self) -> int:
        path = self.folder / "nodes.log"
        return path.read_text(errors="replace").count(LOST) if path.exists() else 0


def wait_until(is_so: Callable[[], object], limit_s: float, what: str, look_s: float = LOOK_S) -> None:
    until_s = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() > until_s:
            raise TimeoutError(f"it is not so after {limit_s:.0f} s that {what}")
        time.sleep(look_s)


def processor_s(process: int) -> float:
    """0 if it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return 0.0 if fields[0] == "Z" else (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def machine_s() -> float:
    """Seconds that all processors were busy with anything."""
    user, nice, system, _idle, _io, irq, softirq, steal, *_ = Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    return sum(map(int, (user, nice, system, irq, softirq, steal))) / TICKS_PER_S


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
