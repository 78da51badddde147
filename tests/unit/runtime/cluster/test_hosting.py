"""A node in a process of its own."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
import uvloop

from daws.model.errors import PeerError, UnavailableError
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.runtime.cluster import access
from daws.runtime.cluster.hosting import STRUCK, NodeHost
from daws.runtime.cluster.reach import Reach
from daws.wire.crew import Crew


def test_devices_are_those_of_the_machine_whatever_the_number_of_the_node():
    crew = Crew(2, devices=(("gpu", 2), ("fpga", 1)))
    assert [crew.device_of(slot) for slot in range(5)] == [-1, -1, 0, 1, 0]


def test_who_is_told_to_leave_between_two_lives_does_not_begin_another():
    class Host(NodeHost):
        lives = 0

        async def _stay_connected(self) -> None:
            await asyncio.sleep(60)

        async def _live(self) -> str:
            self.lives += 1
            if self.lives == 2:
                self.leave(60.0)
            assert self.lives < 3
            return STRUCK

    async def main() -> None:
        host = Host(asyncio.get_running_loop(), cast(Any, None), Crew(1), "127.0.0.1:0")
        assert await host.run() == STRUCK
        assert host.lives == 2

    uvloop.run(main())


@pytest.mark.parametrize(("longest_s", "said"), [(0.2, 1), (2.0, 0)])
def test_a_store_that_is_being_started_is_no_reason_to_warn(
    longest_s: float, said: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """The first node of a cluster starts the store: it does not answer yet."""

    init_cluster(tmp_path / "lab", ClusterConfig(name="lab"))

    async def refuse(*_: Any) -> None:
        raise UnavailableError("Connection refused", retry=True)

    monkeypatch.setattr(access, "open_store", refuse)
    monkeypatch.setattr(access, "DIAL_AGAIN_S_MAX", longest_s)

    async def main() -> None:
        host = NodeHost(asyncio.get_running_loop(), Reach(tmp_path / "lab", "node"), Crew(1), "127.0.0.1:0")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(host._store.stay(), 1.0)

    uvloop.run(main())
    assert len(caplog.records) == said


@pytest.mark.parametrize("was_connected", [False, True])
def test_a_node_that_was_connected_outlives_somebody_else_at_the_port_of_the_store(
    was_connected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whoever takes the port for a while, without keys, must not end all nodes."""
    init_cluster(tmp_path / "lab", ClusterConfig(name="lab"))
    tries = 0

    async def open_store(reach: Reach, peer: object, lost: Callable[[], None]) -> Any:
        nonlocal tries
        tries += 1
        if tries == 1 and was_connected:
            asyncio.get_running_loop().call_soon(lost)
            return Mock()
        if tries < 4:
            error = UnavailableError("it does not speak TLS", retry=False)
            raise error from ssl.SSLError("WRONG_VERSION_NUMBER")
        raise UnavailableError("it refuses: another protocol", retry=False) from PeerError("it refuses")

    monkeypatch.setattr(access, "open_store", open_store)
    monkeypatch.setattr(access, "DIAL_AGAIN_S", 0.01)

    async def main() -> str:
        host = NodeHost(asyncio.get_running_loop(), Reach(tmp_path / "lab", "node"), Crew(1), "127.0.0.1:0")
        await asyncio.wait_for(host._store.stay(), 10.0)
        return str(host._over.exception())

    assert uvloop.run(main()) == ("it refuses: another protocol" if was_connected else "it does not speak TLS")
    assert tries == (4 if was_connected else 1)
