"""Real processes of a cluster on the loopback, for tests; and what they are to run.

They are forks of a process that has imported everything, which makes their start quick.
"""

import gc
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import daws
import daws.cli.nodes
import daws.runtime.cluster.hosting  # these, for those that are forked
import daws.runtime.cluster.storing
from daws.cli import main
from daws.client.connect import ConnectedCluster, connect
from daws.data.outside import File
from daws.model.cluster import Members
from daws.model.errors import DawsError
from daws.net.config import EMBEDDED, ClusterConfig
from daws.net.folder import init_cluster
from daws.runtime.cluster import asking
from daws.runtime.cluster.asking import ask
from daws.runtime.engine import Engine

DEADLINE_S = 90.0
LEASE_S = 4.0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def free_pair() -> int:
    """The first of two ports in a row that are free, below those that the system gives to whoever asks for any."""
    for first in range(20_000 + 2 * (os.getpid() % 5_000), 32_000, 2):
        with suppress(OSError), socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", first))
            other.bind(("127.0.0.1", first + 1))
            return first
    raise AssertionError("no two ports in a row are free")


def _be(arguments: list[str]) -> None:
    """In a fork: be a `daws` command, silently."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os._exit(main(arguments))


class Machine:
    """One process of a cluster."""

    def __init__(self, arguments: list[str]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.unit.runtime.cluster.machines"])
        self._process = context.Process(target=_be, args=(arguments,))
        self._process.start()
        self.pid = self._process.pid or 0

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)

    def wait(self) -> int | None:
        """Its exit code, None if it has not ended in time."""
        self._process.join(DEADLINE_S)
        return self._process.exitcode


class Machines:
    """A store and nodes; all of them are gone at the end of the `with` block."""

    def __init__(self, folder: Path, lease_s: float = LEASE_S, store: str = EMBEDDED, **more: Any) -> None:
        """With a `store` that is there already, none is started. `more` stands in the cluster's configuration."""
        self.folder = folder / "cluster"
        init_cluster(self.folder, ClusterConfig(name="tests", port=free_port(), lease_s=lease_s, store=store, **more))
        self.processes: list[Machine] = []
        if store == EMBEDDED:
            self.store = self.start("store")
            until(self._is_served)  # else the first node might start another

    def start(self, command: str, *arguments: str) -> Machine:
        machine = Machine([command, "--cluster", str(self.folder), *arguments])
        self.processes.append(machine)
        return machine

    def node(self, executors: int = 1, kind: str = "threads") -> Machine:
        return self.start("node", "--executors", str(executors), "--kind", kind)

    def _is_served(self) -> bool:
        try:
            ask(self.folder, asking.members)
        except DawsError:
            return False
        return True

    def members(self) -> Members:
        try:
            return ask(self.folder, asking.members)
        except DawsError:
            return Members(0, ())

    def wait_for(self, count: int) -> Members:
        """Until there are so many members."""
        until(lambda: len(self.members()) == count)
        return self.members()

    def connect(self, session: str = "", keep: bool = False) -> ConnectedCluster:
        return connect(self.folder, session=session, keep=keep, timeout=DEADLINE_S)

    def __enter__(self) -> "Machines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self._end_store()

    def _end_store(self) -> None:
        """That which a node has started; its lock names it."""
        with suppress(OSError, ValueError):
            os.kill(int((self.folder / "state/store/lock").read_text()), signal.SIGKILL)


def until(holds: Callable[[], bool]) -> None:
    """Look again and again; a deadline for all that a test waits for."""
    end_s = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end_s, "it took too long"
        time.sleep(0.02)


# -- tasks -------------------------------------------------------------------------------------------------------------


def block(number: int, size_bytes: int = 80_000, seconds: float = 0.0) -> bytes:
    time.sleep(seconds)
    return bytes([number % 251]) * size_bytes


def mixed(*blocks: bytes) -> bytes:
    return bytes([sum(one[0] for one in blocks) % 251]) * len(blocks[0])


def wait_for_file(path: str) -> int:
    """Says in a file beside it that it runs, and ends when the file is there."""
    Path(f"{path}.{os.getpid()}").touch()
    end_s = time.monotonic() + DEADLINE_S
    while not os.path.exists(path) and time.monotonic() < end_s:
        time.sleep(0.01)
    return os.getpid()


def shout(text: str) -> str:
    print(text)
    return text.upper()


def functions_here() -> tuple[int, int]:
    """Which process this is, and how many functions it keeps, if it is a node of threads."""
    time.sleep(0.05)  # so that others have to help
    engines: list[Any] = [one for one in gc.get_objects() if type(one) is Engine]
    return os.getpid(), sum([len(one.functions.known) + len(one.pool.runner._pickled) for one in engines])


def modes_of(*files: File) -> list[int]:
    time.sleep(0.05)  # so that others have to help
    return [os.stat(file).st_mode & 0o777 for file in files]


def leaves_sign(path: str) -> bytes:
    """Says in which process it ran; on nodes of threads that is the node's."""
    partial = Path(f"{path}.{os.getpid()}")
    partial.write_text(str(os.getpid()))
    partial.rename(path)
    return bytes(200_000)


def reads_late(folder: str) -> int:
    """What a task has made that it creates, when it is told to."""
    made = daws.current().submit(leaves_sign, os.path.join(folder, "made"))
    wait_for_file(os.path.join(folder, "go"))
    return len(made.result())
