"""A node in a process of its own."""

import asyncio
from typing import Any, cast

import uvloop

from daws.runtime.cluster.hosting import STRUCK, NodeCrew, NodeHost


def test_devices_are_those_of_the_machine_whatever_the_number_of_the_node():
    crew = NodeCrew(2, devices=(("gpu", 2), ("fpga", 1)))
    assert [crew.device_of(17, slot) for slot in range(5)] == [-1, -1, 0, 1, 0]


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
        host = Host(asyncio.get_running_loop(), cast(Any, None), NodeCrew(1), "127.0.0.1:0")
        assert await host.run() == STRUCK
        assert host.lives == 2

    uvloop.run(main())
