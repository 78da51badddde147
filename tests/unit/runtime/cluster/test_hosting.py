"""A node in a process of its own."""

import asyncio
from typing import Any, cast

import pytest
import uvloop

from daws.model.errors import UnavailableError
from daws.runtime.cluster import hosting
from daws.runtime.cluster.hosting import STRUCK, NodeHost
from daws.runtime.crew import Crew


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
    longest_s: float, said: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """The first node of a cluster starts the store: it does not answer yet."""

    async def refuse(*_: Any) -> None:
        raise UnavailableError("Connection refused", retry=True)

    monkeypatch.setattr(hosting, "open_store", refuse)
    monkeypatch.setattr(hosting, "DIAL_AGAIN_S_MAX", longest_s)

    async def main() -> None:
        host = NodeHost(asyncio.get_running_loop(), cast(Any, None), Crew(1), "127.0.0.1:0")
        monkeypatch.setattr(host, "_store_is_away", lambda: None)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(host._stay_connected(), 1.0)

    uvloop.run(main())
    assert len(caplog.records) == said
