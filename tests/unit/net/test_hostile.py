"""Whatever comes to a door, nobody gets in who should not, it costs one line in the log, and others are served."""

import asyncio
import logging
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daws.model.errors import ClusterError, UnavailableError
from daws.net import door as door_module
from daws.net import stream as stream_module
from daws.net.complaints import LINES_MAX
from daws.net.handshake import Hello
from daws.net.keys import Keys
from daws.net.listening import ListeningSocket
from daws.net.stream import StreamDoor, connect
from tests.unit.net import attacks
from tests.unit.net.attacks import Attack, careless, greeting, noise, recorded, says, secured
from tests.unit.net.ends import CLIENT, NODE, End, World, run

NOT_DAWS = "it does not speak"

ANYBODY: dict[str, tuple[Attack, str]] = {
    "http": (says(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), NOT_DAWS),
    "ssh": (says(b"SSH-2.0-OpenSSH_9.2\r\n"), NOT_DAWS),
    "noise": (says(noise(1)), NOT_DAWS),
    "zeros": (says(bytes(5000)), NOT_DAWS),
    "hangs up": (attacks.hangs_up, "it closed the connection"),
    "closes half": (attacks.closes_half, "it closed the connection"),
    "resets": (attacks.resets, "it closed the connection"),
}
WITHOUT_TLS: dict[str, tuple[Attack, str]] = {
    "noise after a greeting": (says(greeting(CLIENT), noise(2)), NOT_DAWS),
    "recorded": (says(recorded(CLIENT, NODE)), "this handshake was recorded"),
    "half a greeting": (attacks.closes_half_after(greeting(CLIENT)[:50]), "it closed the connection"),
    "another cluster": (
        says(recorded(Hello("b\nd", "client"), NODE)),
        "is of cluster 'b[?]d', node 1 of 'lab'",
    ),
}
WITH_TLS = {
    "another cluster's client": "not one of this cluster's: ",
    "another cluster's node": "not one of this cluster's: ",
    "no keys": "it has no certificate",
    "expired keys": "not one of this cluster's: certificate has expired",
    "old TLS": "TLS failed: unsupported protocol",
    "a client as a node": "node 1 has no keys for this role, but those of client",
    "noise inside": NOT_DAWS,
    "recorded": "this handshake was recorded",
    "noise after a greeting": NOT_DAWS,
}


@pytest.fixture
def with_tls(cluster: Path, other: Path, tmp_path: Path) -> Callable[[str], Attack]:
    def attack(name: str) -> Attack:
        good = careless(cluster)
        match name:
            case "another cluster's client":
                return secured(careless(other), greeting(CLIENT))
            case "another cluster's node":
                return secured(careless(other, "node"), greeting(CLIENT))
            case "no keys":
                return secured(attacks.without_certificate(), greeting(CLIENT))
            case "expired keys":
                return secured(attacks.expired(cluster, tmp_path), greeting(CLIENT))
            case "old TLS":
                return secured(attacks.old_tls(cluster))
            case "a client as a node":
                return secured(good, recorded(NODE, NODE))
            case "noise inside":
                return secured(good, noise(3))
            case "recorded":
                return secured(good, recorded(CLIENT, NODE))
            case _:
                return secured(good, greeting(CLIENT), noise(4))

    return attack


class Log(logging.Handler):
    """What anybody warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def await_line(self, deadline_s: float = 30) -> None:
        end_s = time.monotonic() + deadline_s
        while not self.lines:
            assert time.monotonic() < end_s, "nothing was logged"
            time.sleep(0.001)


@pytest.fixture
def log() -> Iterator[Log]:
    handler = Log()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def besiege(world: World, attack: Attack, says: str, log: Log) -> None:
    """Attack a door on an event loop. One line says what was wrong, and then somebody with keys comes in as always."""

    async def main() -> None:
        async with world as here:
            await asyncio.to_thread(attack, here.door.address)
            await asyncio.to_thread(log.await_line)
            assert here.inside.link is None
            link = await here.dial(End())
            link.send(b"still there?")
            await here.inside.until(lambda: here.inside.heard)
            link.close()
            await here.inside.until(lambda: here.inside.lost)

    run(main())
    assert len(log.lines) == 1 and re.search(f"was refused: .*{says}", log.lines[0])


def besiege_threads(bind: str, cluster: Path, attack: Attack, says: str, log: Log) -> None:
    """The same for a door with threads behind it."""
    has_keys = not bind.startswith("/")
    served: list[Hello] = []

    def serve_(sock: socket.socket, peer: Hello) -> None:
        served.append(peer)
        sock.sendall(b"yes")

    door = StreamDoor(ListeningSocket(bind, Keys(cluster, "node") if has_keys else None), NODE, serve_)
    try:
        attack(door.address)
        log.await_line()
        assert served == []
        with connect(door.address, Keys(cluster, "client") if has_keys else None, CLIENT) as sock:
            assert sock.recv(3) == b"yes"
    finally:
        door.close()
    assert len(log.lines) == 1 and re.search(f"was refused: .*{says}", log.lines[0])


@pytest.mark.parametrize("threads", [False, True], ids=["loop", "threads"])
class TestDoors:
    # CPython lets go of the socket, without closing it first, when it finds it reset while it wraps it.
    @pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")
    @pytest.mark.parametrize("name", ANYBODY)
    def test_without_keys_over_tcp(self, name: str, threads: bool, cluster: Path, log: Log):
        attack, says = ANYBODY[name]
        if threads:
            besiege_threads("127.0.0.1:0", cluster, attack, f"({says}|TLS failed)", log)
        else:
            besiege(World(cluster), attack, f"({says}|TLS failed)", log)

    @pytest.mark.parametrize("name", WITH_TLS)
    def test_with_wrong_keys(self, name: str, threads: bool, cluster: Path, log: Log, with_tls):
        if threads:
            besiege_threads("127.0.0.1:0", cluster, with_tls(name), WITH_TLS[name], log)
        else:
            besiege(World(cluster), with_tls(name), WITH_TLS[name], log)

    @pytest.mark.parametrize("name", [*ANYBODY, *WITHOUT_TLS])
    def test_inside_one_host(self, name: str, threads: bool, cluster: Path, tmp_path: Path, log: Log):
        tmp_path.chmod(0o700)
        attack, says = (ANYBODY | WITHOUT_TLS)[name]
        if threads:
            besiege_threads(f"{tmp_path}/socket", cluster, attack, says, log)
        else:
            besiege(World(cluster, tmp_path / "socket"), attack, says, log)

    @pytest.mark.parametrize("name", ["says nothing", "only TLS", "half a greeting", "drips"])
    def test_strangers_have_only_so_long(
        self, name: str, threads: bool, cluster: Path, tmp_path: Path, log: Log, monkeypatch
    ):
        monkeypatch.setattr(door_module, "HANDSHAKE_S", 0.3)
        monkeypatch.setattr(stream_module, "HANDSHAKE_S", 0.3)
        good = careless(cluster)
        attack = {
            "says nothing": says(),
            "only TLS": secured(good),
            "half a greeting": secured(good, greeting(CLIENT)[:50]),
            "drips": attacks.drips(greeting(CLIENT), 0.01),
        }[name]

        def then_have_time(address: str) -> None:
            attack(address)
            monkeypatch.undo()  # those who come in later need it on a busy machine

        tmp_path.chmod(0o700)
        path = tmp_path / "socket" if name == "drips" else None
        if threads:
            bind = str(path) if path else "127.0.0.1:0"
            besiege_threads(bind, cluster, then_have_time, "it took too long", log)
        else:
            besiege(World(cluster, path), then_have_time, "it took too long", log)

    def test_a_crowd_of_strangers_is_turned_away(self, threads: bool, cluster: Path, log: Log, monkeypatch):
        monkeypatch.setattr(door_module, "STRANGERS_MAX", 2)
        monkeypatch.setattr(stream_module, "STRANGERS_MAX", 2)

        def crowd(address: str) -> None:
            with attacks.plain(address), attacks.plain(address), attacks.plain(address) as third:
                assert attacks.outlast(third) == b""
                log.await_line()
                assert "others are in the handshake already" in log.lines.pop()

        def later(address: str) -> None:
            crowd(address)
            end_s = time.monotonic() + 30
            while len(log.lines) < 2 and time.monotonic() < end_s:
                time.sleep(0.001)
            assert log.lines.pop()  # both were strangers to the end

        if threads:
            besiege_threads("127.0.0.1:0", cluster, later, "it closed the connection", log)
        else:
            besiege(World(cluster), later, "it closed the connection", log)


def test_a_flood_does_not_fill_the_log(cluster: Path, tmp_path: Path, log: Log):
    tmp_path.chmod(0o700)

    async def main() -> None:
        async with World(cluster, tmp_path / "socket") as here:
            for _ in range(3 * LINES_MAX):
                await asyncio.to_thread(says(b"nonsense"), here.door.address)
            link = await here.dial(End())
            link.close()

    run(main())
    assert len(log.lines) == LINES_MAX


@pytest.mark.parametrize("role", ["client", "node"])
def test_nobody_passes_for_a_node_of_another_cluster(role: str, cluster: Path, other: Path, log: Log):
    """A client's keys are good for dialling alone, and those of others for nothing."""
    impostor = Keys(cluster if role == "client" else other, role)
    impostor.__dict__["server"] = impostor._context(ssl.PROTOCOL_TLS_SERVER)

    async def main() -> None:
        world = World(cluster)
        world.node_keys = impostor
        async with world as here:
            with pytest.raises(UnavailableError, match="not one of this cluster's") as refused:
                await here.dial(End())
            assert not refused.value.retry
            await asyncio.to_thread(log.await_line)

    run(main())
    assert len(log.lines) == 1


def test_nothing_here_can_unpickle():
    script = (
        "import sys; before = set(sys.modules); import daws.net.links, daws.net.stream; "
        "print({'pickle', '_pickle', 'cloudpickle', 'marshal'} & (set(sys.modules) - before))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "set()"


def test_too_many_open_files_are_named_and_pass(cluster: Path, tmp_path: Path, log: Log, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setattr(door_module, "BREATH_S", 0.01)

    async def main() -> None:
        async with World(cluster, tmp_path / "socket") as here:
            real = here.door._listener.sock

            class Full:
                def accept(self) -> None:
                    here.door._listener.sock = real
                    raise OSError(24, "Too many open files")

                fileno = real.fileno

            here.door._listener.sock = Full()  # type: ignore[assignment]
            link = await here.dial(End())
            link.close()

    run(main())
    assert len(log.lines) == 1 and "Too many open files; raise the limit (ulimit -n)" in log.lines[0]


def test_only_those_who_may_be_anywhere(cluster: Path, tmp_path: Path):
    """Over TCP nobody listens without keys, not on the loopback either; inside a host only in a private folder."""

    async def refused(bind: str) -> str:
        with pytest.raises(Exception) as error:
            ListeningSocket(bind, None)
        return str(error.value)

    async def main() -> None:
        for bind in ("127.0.0.1:0", "0.0.0.0:0", "10.1.2.3:7878", "[::]:0"):
            assert "needs keys" in await refused(bind) and "daws cluster init DIR" in await refused(bind)
        tmp_path.chmod(0o755)
        assert f"chmod 700 {tmp_path}" in await refused(f"{tmp_path}/socket")
        assert "No such file" in await refused(f"{tmp_path}/nowhere/socket")
        with pytest.raises(ClusterError, match="a client's key cannot be used to listen"):
            ListeningSocket("127.0.0.1:0", Keys(cluster, "client"))
        with pytest.raises(UnavailableError, match=r"cannot listen at 203\.0\.113\.1:0"):
            ListeningSocket("203.0.113.1:0", Keys(cluster, "node"))

    run(main())
