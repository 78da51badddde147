"""Rows of a client, written to the shards where their tasks live.

A task whose parents are in its own shard is one row of one update. Any other task is added as graphs grow (rule 7). It
is written with an edge to itself, and is registered with each parent. Parents that are done already answer with their
outputs. Then the task loses the edge to itself.

Every step may be repeated. A client that is killed between two steps leaves a task that waits for itself, or for a
parent that does not know of it. The next client of the session finds such tasks (`unfinished_of` of the store in
memory) and carries out the missing steps (`complete`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from daws.core.unsafe import tasks_of
from daws.model.task import NodeId, Ready
from daws.wire.store import (
    OK,
    STRUCK,
    UNKNOWN,
    AnswerType,
    Available,
    Create,
    Open,
    Register,
    Release,
    Row,
    RowType,
    Satisfy,
    Submit,
    shard_of,
)

Call: TypeAlias = Callable[[int, Sequence[Row]], Awaitable[list[AnswerType]]]


class Written(Struct, frozen=True):
    """`answers` are to the rows, as if all were in one shard. `doomed` are tasks that can never start, and by which of
    their parents: somebody has to stop them, and what needs them. Those parents that are `missing` were never there."""

    answers: list[AnswerType]
    doomed: dict[int, int] = {}
    missing: frozenset[int] = frozenset()


Write: TypeAlias = Callable[[Call, int, Sequence[RowType]], Awaitable[Written]]


async def write(call: Call, shard_count: int, rows: Sequence[RowType]) -> Written:
    """Write rows to their shards. An error of `call` is raised when all calls that are under way have ended."""
    if shard_count == 1:
        return Written(await call(0, rows))
    writer = _Writer(call, shard_count, rows)
    await writer.write()
    return Written(writer.answers, writer.doomed)


async def complete(call: Call, shard_count: int, rows: Sequence[RowType]) -> Written:
    """Carry out the missing steps of tasks that are `unfinished`."""
    writer = _Writer(call, shard_count, rows)
    await writer.complete()
    return Written(writer.answers, writer.doomed, frozenset(writer.unknown.values()))


class _Writer:
    def __init__(self, call: Call, shard_count: int, rows: Sequence[RowType]) -> None:
        self.answers: list[AnswerType] = [None] * len(rows)
        self.doomed: dict[int, int] = {}
        self.unknown: dict[int, int] = {}  # by place: a parent that is not there
        self._call = call
        self._shard_count = shard_count
        self._rows = rows

    async def write(self) -> None:
        """Tasks first, then their edges to parents in other shards; what is let go of last, since it may be among
        those parents."""
        new: list[tuple[int, Row]] = []
        gone: list[tuple[int, Row]] = []
        grown: list[tuple[int, Submit]] = []
        for place, row in enumerate(self._rows):
            if isinstance(row, Release):
                gone.append((place, row))
            elif isinstance(row, Submit) and self._is_apart(row):
                grown.append((place, row))
                new.append((place, Create(row.spec, row.parents, guarded=True, held=True)))
            else:
                new.append((place, row))
        await self._say(new)
        # Those that were there before and have ended are forgotten, or another's.
        await self._open(await self._register([(place, row) for place, row in grown if self.answers[place] == OK]))
        await self._say(gone)

    async def complete(self) -> None:
        """Carry out the missing steps. A parent that is not in the store now never will be: the client that was to
        write it was killed."""
        rows = [(place, row) for place, row in enumerate(self._rows) if isinstance(row, Submit)]
        left = await self._register(rows)
        for place, row in rows:
            if self.answers[place] == UNKNOWN:
                self.answers[place] = None
                self.doomed.setdefault(row.spec.id, self.unknown[place])
        await self._open(left)

    def _is_apart(self, row: Submit) -> bool:
        """Does a parent of this task live in another shard?"""
        count = self._shard_count
        home = shard_of(row.spec.id, count)
        return any(shard_of(parent, count) != home for parent in row.parents)

    async def _register(self, grown: Sequence[tuple[int, Submit]]) -> dict[int, list[Row]]:
        """Register new tasks with their parents. Return the rows that are left to send for each task, by the place of
        its row."""
        nodes: dict[int, NodeId] = {}
        left: dict[int, list[Row]] = {}
        asked: list[tuple[int, Register]] = []
        for place, submit in grown:
            self.answers[place] = None
            nodes[place], left[place] = submit.node, []
            asked += [(place, Register(parent, submit.spec.id)) for parent in dict.fromkeys(submit.parents)]
        for (place, row), answer in zip(asked, await self._ask(asked), strict=True):
            if isinstance(answer, Available):
                if place in left:
                    left[place].append(Satisfy(row.child, row.task, nodes[place], answer.inputs))
            elif answer == UNKNOWN:
                self.answers[place] = UNKNOWN
                self.unknown[place] = row.task
                left.pop(place, None)
            elif answer != OK:
                self.doomed.setdefault(row.child, row.task)
                left.pop(place, None)
        for place, submit in grown:
            if place in left:
                left[place].append(Open(submit.spec.id, submit.node))
        return left

    async def _open(self, left: dict[int, list[Row]]) -> None:
        asked = [(place, row) for place, rows in left.items() for row in rows]
        for (place, _), answer in zip(asked, await self._ask(asked), strict=True):
            if isinstance(answer, Ready) or answer == STRUCK:
                self.answers[place] = answer

    async def _say(self, asked: list[tuple[int, Row]]) -> None:
        for (place, _), answer in zip(asked, await self._ask(asked), strict=True):
            self.answers[place] = answer

    async def _ask(self, asked: Sequence[tuple[int, Row]]) -> list[AnswerType]:
        """All shards at once, and the rows of each in their order."""
        by_shard: dict[int, list[int]] = {}
        for number, (_, row) in enumerate(asked):
            by_shard.setdefault(shard_of(tasks_of(row)[0], self._shard_count), []).append(number)
        calls = [self._call(shard, [asked[number][1] for number in some]) for shard, some in by_shard.items()]
        answers: list[AnswerType] = [None] * len(asked)
        ended = await asyncio.gather(*calls, return_exceptions=True)
        for some, answered in zip(by_shard.values(), ended, strict=True):
            if isinstance(answered, BaseException):
                raise answered
            for number, answer in zip(some, answered, strict=True):
                answers[number] = answer
        return answers
