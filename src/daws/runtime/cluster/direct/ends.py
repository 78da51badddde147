"""What has ended, for those who wait for it: read from the store's log, and from the records of tasks.

Nodes tell clients of ends at once where they can; what is read here is what was not told.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable

from daws.model.states import CANCELLED, DONE, FAILED
from daws.runtime.cluster.ends import LOST, has_ended
from daws.runtime.ports import Outcome
from daws.store.memory.record import Record
from daws.store.valkey.looking import Looking, log_row
from daws.store.valkey.notes import FAILURES, Notes

PERIOD_S, IDLE_S, PERIOD_S_MAX = 0.005, 0.1, 0.2


class Ends:
    """Of one shard."""

    def __init__(self, looking: Looking, notes: Notes) -> None:
        self._looking = looking
        self._notes = notes
        self._start = -1  # up to where the log was read; -1 before the first time
        self._last = b""  # the entry before that

    async def of(self, tasks: Iterable[int], unknown_are_lost: bool) -> list[Outcome]:
        """Those of these tasks that have ended, or that nobody will ever hear of."""
        ended: list[tuple[int, Record]] = []
        outcomes: list[Outcome] = []
        for task, record in (await self._looking.records(list(tasks))).items():
            if record is None:
                if unknown_are_lost:
                    outcomes.append(Outcome(task, (), FAILED, LOST.format(task)))
            elif has_ended(record):
                ended.append((task, record))
        return outcomes + await self._outcomes(ended)

    async def _outcomes(self, ended: list[tuple[int, Record]]) -> list[Outcome]:
        bad = [task for task, record in ended if record.state in (FAILED, CANCELLED)]
        failures = dict(zip(bad, await self._notes.get(FAILURES, bad), strict=True))
        return [
            Outcome(task, (), record.state, record.rare.error if record.rare is not None else "", failures[task])
            if task in failures
            else Outcome(task, record.outputs)
            for task, record in ended
        ]

    def begin_anew(self) -> None:
        """The log may be another one: all is looked up that somebody waits for."""
        self._start = -1

    async def news(self, wanted: Collection[int]) -> list[Outcome]:
        """Which of these tasks have ended since the last time."""
        if self._start < 0:
            start = await self._looking.log_length()
            outcomes = await self.of(wanted, unknown_are_lost=False)
            self._start, self._last = start, b""
            return outcomes
        back = 1 if self._last else 0
        entries = await self._looking.log(self._start - back)
        if back and (not entries or entries[0] != self._last):
            self.begin_anew()
            return await self.news(wanted)
        entries = entries[back:]
        if not entries:
            return []
        self._start += len(entries)
        self._last = entries[-1]
        return await self._ended_in(entries, wanted)

    async def _ended_in(self, entries: list[bytes], wanted: Collection[int]) -> list[Outcome]:
        errors: dict[int, tuple[int, str]] = {}
        for entry in entries:
            row = log_row(entry)
            task, state, error = (row, DONE, "") if isinstance(row, int) else row[:3]
            if task in wanted:
                errors[task] = (state, error)
        if not errors:
            return []
        records = await self._looking.records(list(errors))
        outcomes = await self._outcomes([(task, one) for task, one in records.items() if one is not None])
        gone = [(task, *errors[task]) for task, record in records.items() if record is None]
        return outcomes + [Outcome(task, (), state, error) for task, state, error in gone if state != DONE]

    async def follow(self, wanted: Callable[[], Collection[int]], told: Callable[[list[Outcome]], None]) -> None:
        """For ever: tell of each end that somebody waits for, rarely while there are none."""
        period_s = PERIOD_S
        while True:
            await asyncio.sleep(period_s)
            tasks = wanted()
            if not tasks:
                self.begin_anew()
                period_s = min(2 * period_s, IDLE_S)
                continue
            outcomes = await self.news(tasks)
            period_s = PERIOD_S if outcomes else min(2 * period_s, PERIOD_S_MAX)
            if outcomes:
                told(outcomes)
