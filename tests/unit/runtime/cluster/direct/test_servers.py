"""Live clusters whose Valkey server is killed, replaced by a replica that lags, or not to be had at all."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daws.cli import main
from daws.client.cancelled import TaskCancelledError
from daws.client.connect import ConnectedCluster, connect
from daws.client.gathering import gather
from daws.model.errors import UnavailableError
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from tests.chaos.servers import PASSWORD, Pair
from tests.unit.client.inner_jobs import fibonacci, total
from tests.unit.runtime.cluster.machines import DEADLINE_S, Machines, block, free_port, mixed, until, wait_for_file
from tests.valkey import LocalServer, a_cluster, make_certificate, tls_binary

SECRET = "never-to-be-seen"
STILL_S = 30.0
"""Half as long as a primary waits for a replica that says nothing."""


def launch(name: str, command: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path, "127.0.0.1", launch)
    yield made
    for process in made.processes.values():
        process.kill()
        process.wait()


@pytest.mark.parametrize("shards", [1, 5])
@pytest.mark.parametrize("blow", ["restart", "failover"])
def test_a_server_that_dies_in_the_middle_costs_no_task(
    tmp_path: Path, pair: Pair, blow: str, shards: int, caplog: pytest.LogCaptureFixture
):
    with Machines(tmp_path, store=pair.url, store_shards=shards) as machines:
        for _ in range(2):
            machines.node()
        machines.wait_for(2)
        with machines.connect() as cluster:
            blocks = [cluster.submit(block, number, 80_000, 0.01) for number in range(80)]
            gather(blocks[:20], timeout=DEADLINE_S)
            if blow == "restart":
                pair.kill()
                sums = [cluster.submit(mixed, *blocks[low : low + 5]) for low in range(50)]
                pair.come_back()
            else:
                end_s = time.monotonic() + DEADLINE_S
                while not pair.has_replica():
                    assert time.monotonic() < end_s
                sums = [cluster.submit(mixed, *blocks[low : low + 5]) for low in range(50)]
                pair.promote_lagging(0.3)
            assert [one[0] for one in gather(sums, timeout=DEADLINE_S)] == [(5 * low + 10) % 251 for low in range(50)]
            assert gather(blocks, timeout=DEADLINE_S) == [block(number) for number in range(80)]
            # Some ends were told whose commits went with the old server: nodes say those again, now or soon.
            until(lambda: len(pair.committed("tests")) >= 130)
            assert set(pair.committed("tests").values()) == {1}
    said = [record.message for record in caplog.records if record.name.startswith("daws")]
    assert sum("does not answer" in one for one in said) == sum("answers again" in one for one in said) == 1
    assert not any(PASSWORD in one for one in said)


def test_a_task_whose_tasks_have_ended_does_not_wait_until_they_are_safe(tmp_path: Path, pair: Pair):
    until(pair.has_replica)
    pair.processes[1].send_signal(signal.SIGSTOP)  # nothing is safe that it does not have
    primary, _ = pair.url.split(",")
    with Machines(tmp_path, store=primary, store_shards=5) as machines:
        for _ in range(2):
            machines.node()
        machines.wait_for(2)
        with machines.connect() as cluster:
            nested = [cluster.submit(fibonacci, 5), cluster.submit(total, 9)]
            assert gather(nested, timeout=STILL_S) == [5, 45]


@pytest.mark.slow
def test_a_session_spreads_over_a_cluster_of_servers_and_one_that_dies_costs_no_task(tmp_path: Path):
    servers: list[LocalServer] = []

    def start(*options: str, **more: Any) -> LocalServer:
        servers.append(LocalServer(tmp_path / f"server-{len(servers)}", *options, **more))
        return servers[-1]

    try:
        a_cluster(start)
        url = ",".join(one.url for one in servers[:3])
        with Machines(tmp_path, store=url, lease_s=6.0) as machines:
            for _ in range(2):
                machines.node()
            machines.wait_for(2)
            with machines.connect() as cluster:
                blocks = [cluster.submit(block, number, 30_000, 0.005) for number in range(300)]
                gather(blocks[:100], timeout=DEADLINE_S)
                assert all(one.ask("KEYS", "{daws:tests:*}:cells") for one in servers[:3]), "each has a part"
                servers[0].kill()
                sums = [cluster.submit(mixed, *blocks[low::100]) for low in range(100)]
                assert [one[0] for one in gather(sums, timeout=DEADLINE_S)] == [
                    sum(range(low, 300, 100)) % 251 for low in range(100)
                ]
    finally:
        for server in servers:
            server.kill()


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[ConnectedCluster]:
    """A cluster of one node whose store is in eight shards."""
    server = LocalServer(tmp_path / "server")
    try:
        with Machines(tmp_path, store=server.url, store_shards=8) as machines:
            machines.node(2)
            machines.wait_for(1)
            with machines.connect() as cluster:
                yield cluster
    finally:
        server.kill()


def fill(cluster: ConnectedCluster) -> None:
    """What is submitted after this is in another shard than what was before."""
    gather([cluster.submit(abs, -number) for number in range(64)], timeout=DEADLINE_S)


def test_what_needs_a_task_of_another_shard_ends_as_that_has(apart: ConnectedCluster, tmp_path: Path):
    broken = apart.submit(int, "no number")
    held_up = apart.submit(wait_for_file, str(tmp_path / "never"))
    fill(apart)
    with pytest.raises(ValueError, match="no number"):
        broken.result(DEADLINE_S)
    late = apart.submit(abs, broken)  # it has failed before this is said
    waits = apart.submit(abs, held_up)
    fill(apart)
    later = apart.submit(abs, late)
    for one in (late, later):
        with pytest.raises(ValueError, match="no number") as raised:
            one.result(DEADLINE_S)
        assert f"task {one.task} (abs) was not run: it needs" in raised.value.__notes__[0]
    held_up.cancel()
    with pytest.raises(TaskCancelledError):
        held_up.result(DEADLINE_S)
    late = apart.submit(abs, waits)
    fill(apart)
    for one in (waits, late, apart.submit(abs, late)):
        with pytest.raises(TaskCancelledError):
            one.result(DEADLINE_S)


def works(machines: Machines) -> None:
    machines.node()
    machines.wait_for(1)
    with machines.connect() as cluster:
        numbers = [cluster.submit(abs, -number) for number in range(100)]
        assert cluster.submit(sum, numbers).result(timeout=DEADLINE_S) == 4950


def test_a_server_that_is_reached_by_tls_and_a_password(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """And asks who we are."""
    port = free_port()
    certificate, key = make_certificate(tmp_path, "ours")
    files = ("--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--tls-ca-cert-file", str(certificate))
    options = ("--tls-port", str(port), *files, "--tls-auth-clients", "yes")
    server = LocalServer(tmp_path / "server", *options, password=SECRET, program=tls_binary())
    url = f"rediss://:{SECRET}@127.0.0.1:{port}"
    try:
        with Machines(
            tmp_path, store=url, store_ca="server.pem", store_cert="server.pem", store_key="server.key"
        ) as machines:
            with pytest.raises(UnavailableError, match=r"cannot read .*server\.pem"):
                connect(machines.folder, timeout=DEADLINE_S)
            shutil.copy(certificate, machines.folder / "server.pem")
            shutil.copy(key, machines.folder / "server.key")
            works(machines)
        stranger = tmp_path / "stranger"
        init_cluster(stranger, ClusterConfig(name="tests", store=url))
        with pytest.raises(UnavailableError, match="certificate that we do not trust"):
            connect(stranger, timeout=DEADLINE_S)
    finally:
        server.kill()
    assert SECRET not in caplog.text


def test_a_server_behind_a_socket_and_a_password(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    server = LocalServer(tmp_path / "server", password=SECRET)
    try:
        with Machines(tmp_path, store=f"unix://:{SECRET}@{server.socket}") as machines:
            works(machines)
    finally:
        server.kill()
    assert SECRET not in caplog.text


def test_a_wrong_password_is_said_in_one_line_without_it(tmp_path: Path):
    server = LocalServer(tmp_path / "server", port=free_port(), password="right")
    try:
        folder = tmp_path / "cluster"
        init_cluster(folder, ClusterConfig(name="tests", store=f"redis://:{SECRET}@127.0.0.1:{server.port}"))
        with pytest.raises(UnavailableError, match=r"refuses us.*check user name and password") as caught:
            connect(folder, timeout=DEADLINE_S)
        assert SECRET not in str(caught.value)
        command = [sys.executable, "-m", "daws", "node", "--cluster", str(folder), "--kind", "threads"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
        assert ended.returncode and not ended.stdout
        (line,) = ended.stderr.splitlines()
        assert "refuses us" in line and SECRET not in line
    finally:
        server.kill()


def test_no_server_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "cluster"
    init_cluster(folder, ClusterConfig(name="tests", store=f"redis://:{SECRET}@127.0.0.1:{free_port()}"))
    with pytest.raises(UnavailableError, match=r"does not answer at redis://:.*is its server running") as caught:
        connect(folder, timeout=0.2)
    assert SECRET not in str(caught.value)
    for words in (["nodes"], ["sessions"], ["store"]):
        assert main([*words, "--cluster", str(folder)])
        (line,) = capsys.readouterr().err.splitlines()
        assert SECRET not in line and "127.0.0.1" in line
