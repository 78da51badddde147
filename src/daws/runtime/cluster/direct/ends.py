"""Ends of tasks, read from the store's logs and from the records of tasks.

Nodes tell clients of ends at once if they can. The ends that are read here are those that no node has told.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable

from daws.model.states import CANCELLED, DONE, FAILED
from daws.runtime.blame import STEPS_MAX, blamed_by, path_of, raised_of
from daws.runtime.cluster.ends import LOST
from daws.store.memory.record import Record, has_ended
from daws.store.valkey.looking import Looking, log_row
from daws.wire.ends import Outcome

PERIOD_S, IDLE_S, PERIOD_S_MAX = 0.005, 0.1, 0.2


class _Reader:
    """The place up to which the log of a shard was read."""

    def __init__(self) -> None:
        self.start = 0
        self.last = b""  # the entry before that

    @property
    def first(self) -> int:
        """The place to read from. The last entry is read again, to check that it is still there."""
        return self.start - bool(self.last)

    def goes_on_with(self, entries: list[bytes]) -> bool:
        return not self.last or entries[:1] == [self.last]

    def take(self, entries: list[bytes]) -> list[bytes]:
        """Move on past the entries, and return the new ones."""
        new = entries[bool(self.last) :]
        if new:
            self.start += len(new)
            self.last = new[-1]
        return new


class LogEnds:
    """The ends of tasks in all shards."""

    def __init__(self, looking: Looking) -> None:
        self._looking = looking
        self.begin_anew()

    async def of(self, tasks: Iterable[int], unknown_are_lost: bool) -> list[Outcome]:
        """The outcomes of those tasks that have ended. With `unknown_are_lost`, a task that the store does not know has
        failed."""
        ended: list[tuple[int, Record]] = []
        outcomes: list[Outcome] = []
        for task, record in (await self._looking.records(list(tasks))).items():
            if record is None:
                if unknown_are_lost:
                    outcomes.append(Outcome(task, (), FAILED, LOST.format(task)))
            elif has_ended(record):
                ended.append((task, record))
        return outcomes + await self._outcomes(ended)

    async def forgotten(self, tasks: list[int]) -> list[int]:
        return [task for task, record in (await self._looking.records(tasks)).items() if record is None]

    async def _outcomes(self, ended: list[tuple[int, Record]]) -> list[Outcome]:
        known: dict[int, Record | None] = dict(ended)
        failed = [record for _, record in ended if record.state in (FAILED, CANCELLED)]
        for _ in range(STEPS_MAX if failed else 0):
            blamed = {one for record in known.values() if record is not None and (one := blamed_by(record)) >= 0}
            missing = [one for one in blamed if one not in known]
            if not missing:
                break
            known.update(await self._looking.records(missing))
        return [
            Outcome(
                task,
                (),
                record.state,
                record.rare.error if record.rare is not None else "",
                raised_of(record, known.get),
                path_of(record, known.get),
            )
            if record.state in (FAILED, CANCELLED)
            else Outcome(task, record.outputs)
            for task, record in ended
        ]

    def begin_anew(self) -> None:
        """Start again, because the logs may be new ones: look up all tasks that are waited for."""
        self._readers = [_Reader() for _ in range(self._looking.shard_count)]
        self._has_begun = False

    async def news(self, wanted: Callable[[], Collection[int]]) -> list[Outcome]:
        """The outcomes of `wanted` tasks that have ended since the last call. `wanted` is called after the logs were
        read: a task that becomes wanted and ends meanwhile would otherwise be missed."""
        readers = self._readers
        if not self._has_begun:
            lengths = await asyncio.gather(*map(self._looking.log_length, range(self._looking.shard_count)))
            outcomes = await self.of(wanted(), unknown_are_lost=False)
            if readers is self._readers:  # else all is to be looked up once more
                self._has_begun = True
                for reader, length in zip(readers, lengths, strict=True):
                    reader.start = length
            return outcomes
        found = await asyncio.gather(*[self._looking.log(shard, one.first) for shard, one in enumerate(readers)])
        entries: list[bytes] = []
        for reader, some in zip(readers, found, strict=True):
            if not reader.goes_on_with(some):
                self.begin_anew()
                return await self.news(wanted)
            entries += reader.take(some)
        return await self._ended_in(entries, wanted())

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
