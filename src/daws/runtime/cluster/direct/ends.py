"""Ends of tasks, read from the logs of all shards: those of tasks that runs of this node wait for.

Nodes tell clients of ends at once if they can. The ends that are read here are those that no node has told.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import cast

from daws.runtime.cluster.front import StoreFront
from daws.wire.ends import Outcome
from daws.wire.store import DONE, LOG_END, Log, LoggedEnd, ReadLog

PERIOD_S, IDLE_S, PERIOD_S_MAX = 0.005, 0.1, 0.2


class LogEnds:
    """The place up to which the log of each shard was read."""

    def __init__(self, front: StoreFront, shard_count: int) -> None:
        self._front = front
        self._shard_count = shard_count
        self.begin_anew()

    def begin_anew(self) -> None:
        """Start again, because the logs may be new ones: look up all tasks that are waited for."""
        self._starts = [LOG_END] * self._shard_count

    async def news(self, wanted: Callable[[], Collection[int]]) -> list[Outcome]:
        """The outcomes of `wanted` tasks that have ended since the last call. `wanted` is called after the logs were
        read: a task that becomes wanted and ends meanwhile would otherwise be missed."""
        starts = self._starts
        answers = await asyncio.gather(*[self._front.rows(shard, [ReadLog(one)]) for shard, one in enumerate(starts)])
        logs = [cast(Log, one) for (one,) in answers]
        if starts is not self._starts:  # these are other logs
            return await self.news(wanted)
        self._starts = [one.next for one in logs]
        if LOG_END in starts or any(one.trimmed for one in logs):
            return await self._front.outcomes(await self._front.records([*wanted()]))
        tasks = wanted()
        ended = {}
        for row in [row for one in logs for row in one.rows]:
            end = LoggedEnd(row, DONE, "", ()) if isinstance(row, int) else row
            if end.task in tasks:
                ended[end.task] = Outcome(end.task, (), end.state, end.error)
        found = await self._front.records([*ended]) if ended else {}
        gone = [ended[task] for task, record in found.items() if record is None]  # nobody holds them
        return await self._front.outcomes(found) + [one for one in gone if one.state != DONE]

    async def follow(self, wanted: Callable[[], Collection[int]], told: Callable[[list[Outcome]], None]) -> None:
        """Call `told` with the ends of wanted tasks, for ever. Poll more rarely while there are none."""
        period_s = PERIOD_S
        while True:
            await asyncio.sleep(period_s)
            if not wanted():
                self.begin_anew()
                period_s = min(2 * period_s, IDLE_S)
                continue
            outcomes = await self.news(wanted)
            period_s = PERIOD_S if outcomes else min(2 * period_s, PERIOD_S_MAX)
            if outcomes:
                told(outcomes)
