"""A cluster of real processes: a store, nodes on hosts of their own, and a client; and what can be done to them."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from tests.chaos.disks import Disks
from tests.chaos.hosts import hosts_of
from tests.chaos.servers import PASSWORD, Pair

ROOT = Path(__file__).parents[2]
MARKER = "DAWS_CHAOS"
EXECUTORS = 2
VALKEY = "valkey"
END_S = 30.0
LOOK_S = 0.02


class World(AbstractContextManager["World"]):
    """All processes carry a mark in their environment, by which they are found and ended."""

    def __init__(
        self, folder: Path, hosts: int, lease_s: float, network: str = "auto", store: str = "embedded", shards: int = 1
    ) -> None:
        self.folder = folder
        self.count = hosts
        self.lease_s = lease_s
        self.cluster = folder / "cluster"
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.store_url = store
        self.shards = shards  # of a store on a server
        self.hosts = hosts_of(hosts, network)
        self.disks = Disks(folder, hosts)
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        self.store: subprocess.Popen[bytes] | None = None  # the embedded one's
        self.pair: Pair | None = None  # or a server with its replica
        self._stack = ExitStack()
        self._logs: list[IO[bytes]] = []
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "World":
        try:
            self._stack.enter_context(self.hosts)
            self._stack.enter_context(self.disks)
            addresses = list(dict.fromkeys([self.hosts.client_address, *map(self.hosts.address, range(self.count))]))
            given = [word for address in addresses for word in ("--host", address)]
            if self.store_url == VALKEY:
                self.pair = Pair(self.folder, self.hosts.client_address, self.launch)
                self.store_url = self.pair.url
                given += ["--store-shards", str(self.shards)]
            self.daws("cluster", "init", str(self.cluster), "--store", self.store_url, *given)
            settings = self.cluster / "cluster.toml"
            lines = [
                line for line in settings.read_text().splitlines() if not line.startswith(("lease_s", "losses_max"))
            ]
            settings.write_text("\n".join([*lines, f"lease_s = {self.lease_s}", "losses_max = 9", ""]))
            if self.store_url == "embedded":
                self.start_store()
            for host in range(self.count):
                self.start_node(host)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    # -- processes -----------------------------------------------------------------------------------------------------

    def daws(self, *words: str) -> None:
        command = [sys.executable, "-m", "daws", *words]
        done = subprocess.run(command, cwd=ROOT, env=self.environment(), capture_output=True, text=True, check=False)
        assert not done.returncode, f"daws {' '.join(words)}: {done.stderr}"

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, MARKER: self.mark, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", **more}

    def start(self, name: str, words: list[str], before: tuple[str, ...] = (), **more: str) -> subprocess.Popen[bytes]:
        """In a session of its own; what it says goes into a file of that name."""
        return self.launch(name, [*before, sys.executable, "-m", *words], **more)

    def launch(self, name: str, command: list[str], **more: str) -> subprocess.Popen[bytes]:
        log = open(self.folder / f"{name}.log", "ab")  # noqa: SIM115 (closed with the world)
        self._logs.append(log)
        process = subprocess.Popen(
            command, cwd=ROOT, env=self.environment(**more), stdout=log, stderr=log, start_new_session=True
        )
        self._started.append(process)
        return process

    def start_store(self) -> None:
        self.store = self.start("store", ["daws", "store", "--cluster", str(self.cluster)])

    def start_node(self, host: int) -> None:
        words = ["daws", "node", "--cluster", str(self.cluster), "--executors", str(EXECUTORS)]
        words += ["--bind", self.hosts.address(host), "--leave-within", "5"]
        before = tuple(self.hosts.command(host))
        self.nodes[host] = self.start(f"node-{host}", words, before, TMPDIR=self.disks.folder(host))

    def pids_of(self, host: int) -> list[int]:
        """The processes of a node, its own first, then its fork server's and workers'."""
        node = self.nodes[host].pid
        return [node, *[pid for pid in self.marked() if pid != node and _session_of(pid) == node]]

    def workers_of(self, host: int) -> list[int]:
        return [pid for pid in self.pids_of(host) if b"worker" in _command_of(pid)]

    def marked(self) -> list[int]:
        wanted = f"{MARKER}={self.mark}".encode()
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                with suppress(OSError):
                    if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                        found.append(int(name))
        return found

    # -- the end -------------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """All nodes in good order, then the store."""
        for node in self.nodes.values():
            _signal(node.pid, signal.SIGCONT)
            _signal(node.pid, signal.SIGTERM)
        until_s = time.monotonic() + END_S
        for node in self.nodes.values():
            with suppress(subprocess.TimeoutExpired):
                node.wait(max(0.1, until_s - time.monotonic()))
        if self.store is not None:
            _signal(self.store.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.store.wait(END_S)

    def secrets_told(self) -> list[str]:
        """The logs in which a password stands."""
        logs = [path for path in self.folder.glob("*.log") if not path.name.startswith(VALKEY)]
        return [path.name for path in logs if PASSWORD in path.read_text(errors="replace")]

    def end_servers(self) -> None:
        if self.pair is not None:
            for process in self.pair.processes.values():
                _signal(process.pid, signal.SIGCONT)
                process.kill()
                process.wait()

    def close(self) -> None:
        self.end_servers()  # they hide their environment
        until_s = time.monotonic() + END_S
        while (pids := self.marked()) and time.monotonic() < until_s:
            for pid in pids:
                _signal(pid, signal.SIGKILL)
            for process in self._started:
                process.poll()
            time.sleep(LOOK_S)
        for process in self._started:
            process.wait()
        for log in self._logs:
            log.close()
        self._stack.close()
        shutil.rmtree(self.cluster, ignore_errors=True)


def wait_until(is_so: Callable[[], Any], limit_s: float, what: str) -> None:
    """Look again and again; a TimeoutError says what did not happen."""
    until_s = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() > until_s:
            raise TimeoutError(f"not within {limit_s:g} s: {what}")
        time.sleep(LOOK_S)


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _session_of(pid: int) -> int:
    with suppress(OSError):
        return os.getsid(pid)
    return 0


def _command_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
