"""A whole cluster on the loopback, as strangers and broken peers meet it: at every port of every process."""

import asyncio
import os
import pickle
import signal
import socket
import ssl
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import msgpack

import daws
from daws.client.future import Future
from daws.core.effects import CallStore
from daws.data.envelope import ALIGN_BYTES
from daws.data.session import default_scratch
from daws.model.errors import DawsError, TaskFailedError, TaskKilledError
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.net.handshake import Hello
from daws.runtime.cluster import asking
from daws.runtime.cluster.asking import ask
from daws.runtime.cluster.reach import Reach
from daws.wire.cluster import FROM_STORE, AskCluster, AskEnds
from daws.wire.store import Lease
from tests.unit.net import attacks
from tests.unit.runtime.cluster.machines import DEADLINE_S, Machines, block, until

LOOPBACK = "0100007F"
LISTENS = "0A"


class Bomb:
    """Whoever unpickles it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with Machines(tmp_path_factory.mktemp("strangers")) as machines:
        machines.node(1, "processes")
        machines.node(1, "threads")
        machines.wait_for(2)
        yield machines


def listeners(pids: list[int]) -> list[tuple[str, int]]:
    """Where these processes listen: address and port, as the kernel has them."""
    inodes = set()
    for pid in pids:
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            link = os.readlink(fd)
            if link.startswith("socket:"):
                inodes.add(link[8:-1])
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and (fields[3] == LISTENS or table.startswith("udp")):
                address, port = fields[1].split(":")
                found.append((address, int(port, 16)))
    return found


def ports(machines: Machines) -> list[int]:
    return sorted({port for _, port in listeners([process.pid for process in machines.processes])})


def test_a_default_cluster_is_on_the_loopback_alone(machines: Machines):
    found = listeners([process.pid for process in machines.processes])
    assert len(found) == 5, "the store, and two doors of each node"
    assert {address for address, _ in found} == {LOOPBACK}


def test_without_keys_nobody_gets_an_answer_or_anything_done(machines: Machines, tmp_path: Path):
    """Nothing is read, nothing unpickled, and those with keys are served as before."""
    other = tmp_path / "other"
    init_cluster(other, ClusterConfig(name="tests"))  # the same name, another authority
    mine = machines.folder
    bomb = tmp_path / "exploded"
    load = pickle.dumps(Bomb(bomb))
    frame = msgpack.encode([AskCluster(), load])
    framed = len(frame).to_bytes(4, "little") + frame
    asks = (1).to_bytes(4, "little") + (0).to_bytes(8, "little")  # for an object, as nodes do
    client, node = Hello("tests", "client"), Hello("tests", "node", 1)
    recorded = attacks.recorded(client, node)
    stolen = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stolen.check_hostname, stolen.verify_mode = False, ssl.CERT_NONE
    with machines.connect() as cluster:
        kept = cluster.submit(block, 5)
        assert kept.result(DEADLINE_S) == block(5)
        for port in ports(machines):
            address = f"127.0.0.1:{port}"
            for words_ in ((load,), (framed,), (asks,), (recorded, framed), (attacks.noise(port),), (b"",)):
                assert _answer(None, address, *words_) in (b"", None)
                assert _answer(stolen, address, *words_) in (b"", None)
                for role in ("client", "node"):
                    assert _answer(attacks.careless(other, role), address, *words_) in (b"", None)
            # With the keys of this cluster, but without a handshake that is fresh: at most a greeting and a refusal.
            for words_ in ((load,), (framed,), (recorded, framed), (recorded, asks), (attacks.noise(port),)):
                answer = _answer(attacks.careless(mine), address, *words_, bytes(400))
                assert answer is None or len(answer) <= 2 * (113 + 256)
        assert cluster.submit(block, 6).result(DEADLINE_S) == block(6)
    assert not bomb.exists()
    assert len(machines.members()) == 2


def _answer(context: ssl.SSLContext | None, address: str, *said: bytes) -> bytes | None:
    """What a door says to somebody; None if it does not even talk."""
    try:
        sock = attacks.plain(address)
        if context is not None:
            sock = context.wrap_socket(sock)
        with sock:
            for word in said:
                sock.sendall(word)
            if context is None:
                sock.shutdown(socket.SHUT_WR)
            came = attacks.outlast(sock)
    except (OSError, ssl.SSLError):
        return None
    # TLS says that something is wrong before it hangs up; that is no answer of ours.
    return None if context is None and came[:1] == b"\x15" else came


def test_a_certificate_of_ones_own_making_is_none(machines: Machines, tmp_path: Path):
    folder = tmp_path / "forged"
    init_cluster(folder, ClusterConfig.load(machines.folder))
    (folder / "ca.pem").write_bytes((machines.folder / "ca.pem").read_bytes())
    with pytest.raises(DawsError, match=r"closed the connection during the handshake|certificate"):
        ask(folder, asking.members)


def test_a_store_of_another_cluster_on_our_port_is_named_with_its_cure(machines: Machines, tmp_path: Path):
    init_cluster(tmp_path / "other", ClusterConfig.load(machines.folder))
    with pytest.raises(DawsError, match=r"not one of this cluster's.*a 'port' of its own in cluster\.toml$"):
        ask(tmp_path / "other", asking.members)
    with pytest.raises(DawsError, match=r"a 'port' of its own in cluster\.toml$") as raised:
        daws.connect(tmp_path / "other")
    assert raised.value.__cause__ is None and raised.value.__suppress_context__  # one traceback


def test_a_client_that_vanishes_takes_its_session_with_it(machines: Machines, tmp_path: Path):
    script = textwrap.dedent(
        """
        import sys, time, daws
        from tests.unit.runtime.cluster.machines import wait_for_file
        cluster = daws.connect(sys.argv[1], session="mayfly", modules=False)
        futures = [cluster.submit(wait_for_file, sys.argv[2]) for _ in range(4)]
        print("submitted", flush=True)
        time.sleep(600)
        """
    )
    gate = tmp_path / "gate"
    command = [sys.executable, "-c", script, str(machines.folder), str(gate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None and client.stdout.readline() == "submitted\n"
        until(lambda: len([*tmp_path.glob("gate.*")]) == 2)  # both nodes are on it
        client.send_signal(signal.SIGKILL)
    until(lambda: not _sessions(machines))
    with machines.connect() as cluster:  # and nothing of it is in the way: its runs were stopped
        assert cluster.gather([cluster.submit(pow, 2, at) for at in range(8)], timeout=DEADLINE_S)[-1] == 128
    gate.touch()  # for the thread that cannot be stopped


def _sessions(machines: Machines) -> list[str]:
    return [one.name for one in ask(machines.folder, asking.sessions)]


def test_a_task_that_kills_its_worker_is_given_up_and_harms_nobody(tmp_path: Path):
    with Machines(tmp_path) as machines:
        machines.node(2, "processes")
        machines.wait_for(1)
        with machines.connect() as cluster:
            poison = [cluster.options(retries=2).submit(os._exit, 7) for _ in range(3)]
            others = [cluster.submit(pow, at, 2) for at in range(200)]
            assert cluster.gather(others, timeout=DEADLINE_S) == [at * at for at in range(200)]
            for future in poison:
                error = future.exception(DEADLINE_S)
                assert isinstance(error, TaskKilledError) and "code 7" in str(error) and "attempt 4" in str(error)
        assert len(machines.members()) == 1


def flip_stream(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[ALIGN_BYTES + 30] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, 1000)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with Machines(tmp_path_factory.mktemp("four")) as machines:
        for _ in range(4):
            machines.node(1, "threads")
        machines.wait_for(4)
        yield machines


def files_of(machines: Machines, future: "Future[Any]") -> list[Path]:
    """Where the nodes keep an object."""
    pids = [process.pid for process in machines.processes]
    roots = [Path("/dev/shm"), default_scratch()]
    return [
        path
        for root in roots
        for pid in pids
        for path in root.glob(f"daws-*-{pid}-*/node-*/objects/{future.object:x}")
        if path.is_file()
    ]


@pytest.mark.parametrize("damage", [cut, flip_stream, Path.unlink])
def test_a_damaged_object_is_made_again(four: Machines, damage: Callable[[Path], None]):
    """Under the hands of its node, for a task and for the client."""
    with four.connect() as cluster:
        # Too large to do without files.
        made: list[Future[Any]] = [cluster.submit(list, range(number, 150_000)) for number in range(6)]
        until(lambda: all(future.done() for future in made))
        for future in made:
            [path] = files_of(four, future)
            damage(path)
        sizes = [cluster.submit(len, future) for future in made[:3]]
        assert cluster.gather(sizes, timeout=DEADLINE_S) == [150_000 - number for number in range(3)]
        assert [future.result(DEADLINE_S) for future in made] == [[*range(number, 150_000)] for number in range(6)]
    assert len(four.members()) == 4


def test_what_was_put_in_is_read_from_its_second_copy(four: Machines):
    """Also by nodes that have not heard of each other yet: they have joined a moment ago."""
    with four.connect() as cluster:
        value = cluster.put([*range(100_000)])
        flip_stream(files_of(four, value)[0])
        readers = [cluster.submit(len, value) for _ in range(8)]
        assert cluster.gather(readers, timeout=DEADLINE_S) == [100_000] * 8
        assert value.result(DEADLINE_S) == [*range(100_000)]


def test_what_was_put_in_and_is_damaged_wherever_it_lies_is_lost(four: Machines):
    with four.connect() as cluster:
        value = cluster.put([*range(100_000)])
        first, second = files_of(four, value)
        assert first.name == second.name
        cut(first)
        flip_stream(second)
        with pytest.raises(TaskFailedError, match=r"ObjectLost: task \d+ reads what task \d+ made, .* put it in again"):
            cluster.submit(sum, value).result(DEADLINE_S)
        assert cluster.submit(pow, 2, 5).result(DEADLINE_S) == 32


def test_what_a_peer_says_wrongly_ends_its_link_and_nothing_else(machines: Machines):
    """With good keys and a good handshake: frames that are nonsense, and words that nobody could mean."""
    reach = Reach(machines.folder, "client")
    for word in (b"nonsense", ["no", "word"], {"a": 1}, CallStore(1, 99, [Lease(1, 0, None)])):
        asyncio.run(said(reach, reach.store_address, word))
    assert len(machines.members()) == 2


async def said(reach: Reach, address: str, *words_: object) -> None:
    """Say words until the other side has enough, which it must have at the last of them."""
    lost = asyncio.Event()
    link = await reach.dial(address, FROM_STORE, lambda said: None, lost.set)
    for word in words_:
        link.send(word)
    async with asyncio.timeout(DEADLINE_S):
        await lost.wait()


def test_mutated_words_with_good_keys_by_seed(machines: Machines):
    """To the store and to a node: good words of which something was changed, each on a link of its own, and then one
    that is surely none. Whatever they do with the first, they are there afterwards."""
    reach = Reach(machines.folder, "client")
    good: list[Any] = [AskCluster(), AskEnds([1]), CallStore(1, 0, [Lease(1, 0, None)])]
    members = machines.members()
    addresses = [reach.store_address, *[info.addresses[0] for info in members.infos]]
    for seed in range(60):
        random = Random(seed)
        word = mutated(msgpack.decode(msgpack.encode(random.choice(good))), random)
        asyncio.run(said(reach, random.choice(addresses), word, b"nonsense"))
    assert len(machines.members()) == 2
    with machines.connect() as cluster:
        assert cluster.submit(pow, 2, 5).result(DEADLINE_S) == 32


def mutated(word: Any, random: Random) -> Any:
    """The same with something else somewhere in it."""
    if isinstance(word, list) and word and random.random() < 0.8:
        at = random.randrange(len(word))
        return [*word[:at], mutated(word[at], random), *word[at + 1 :]]
    strange: list[Any] = [None, -1, 1 << 63, "", b"\0" * 50, [], [[]] * 9, {"a": [1]}, True, 1.5, "AskMembers", word]
    return random.choice(strange)
