"""What callers tell each other of cells that they have written, so that nobody has to fetch them.

A client tells the owner of a new task its cell's stamp, the owner tells the client the stamp under which it was
finished. Either makes the record by itself from what it knows of the task anyway. That is only done where the whole
record follows from it, which both sides check: the same function makes the record that one compares with and the other
believes in. A stamp belongs to one content for ever, so what comes late, or after a failover, is no more than out of
date, and whoever writes on top of it is told so by the server.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from daws.model.states import DONE, READY
from daws.model.task import Input, NodeId, Ready, TaskSpec
from daws.store.memory.record import Record
from daws.store.valkey.view import Cache, CachedRecord

Runs = tuple[tuple[int, bytes], ...]
"""Stamps of tasks in their order, each with for how many it is; b"" where it is not known."""


CacheOf = Callable[[int], Cache]
"""Where a task's cell is remembered."""
Seal = tuple[bytes, bytes]
"""The stamp of a task's cell before it was finished, and after."""


def _handed_out(ready: Ready, node: NodeId) -> Record:
    """A task as its client has just made it for its owner."""
    return Record(ready.spec, READY, node, (), None, ready.inputs, (), ready.move, ready.attempt, False, True)


def _new(spec: TaskSpec, node: NodeId) -> Record:
    return Record(spec, READY, node, (), None, (), (), 0, 0, False, True)


def _ended(spec: TaskSpec, node: NodeId, outputs: tuple[Input, ...]) -> Record:
    """What becomes of a new task that reads nothing when its first owner has run it."""
    return Record(spec, DONE, node, (), None, (), outputs, 0, 0, False, True)


def stamps_of(cache_of: CacheOf, tasks: Iterable[Ready], node: NodeId) -> Runs:
    """For the owner of tasks that were just submitted."""
    stamps = []
    for task in tasks:
        cell = cache_of(task.spec.id).get(task.spec.id)
        is_so = isinstance(cell, CachedRecord) and cell.record == _handed_out(task, node)
        stamps.append(cell.stamp if is_so else b"")  # type: ignore[union-attr]
    return tuple([(len(list(some)), stamp) for stamp, some in groupby(stamps)])


def learn_stamps(cache_of: CacheOf, tasks: Sequence[Ready], node: NodeId, runs: Runs) -> None:
    """The owner hears of them. What it knows by itself is younger."""
    start = 0
    for count, stamp in runs:
        if stamp:
            for task in tasks[start : start + count]:
                cache = cache_of(task.spec.id)
                if task.spec.id not in cache:
                    cache[task.spec.id] = CachedRecord(stamp, _handed_out(task, node))
        start += count


def seal_of(cache: Cache, task: int, node: NodeId, outputs: tuple[Input, ...]) -> Seal | None:
    """For the client of a task that this owner has just finished; the owner itself needs it no more."""
    cell = cache.get(task)
    if not isinstance(cell, CachedRecord) or not cell.before or (record := cell.record) is None:
        return None
    if record != _ended(record.spec, node, outputs):
        return None
    del cache[task]
    return cell.before, cell.stamp


def learn_end(cache: Cache, task: int, node: NodeId, outputs: tuple[Input, ...], seal: Seal) -> None:
    """The client hears of it."""
    cell = cache.get(task)
    if isinstance(cell, CachedRecord) and cell.stamp == seal[0] and cell.record is not None:
        spec = cell.record.spec
        if cell.record == _new(spec, node):
            cache[task] = CachedRecord(seal[1], _ended(spec, node, outputs))


def forget_unended(cache_of: CacheOf, tasks: Iterable[int]) -> None:
    """Others have finished these: what is remembered of them from before is of no use."""
    for task in tasks:
        cache = cache_of(task)
        cell = cache.get(task)
        if not (isinstance(cell, CachedRecord) and cell.record is not None and cell.record.state == DONE):
            cache.pop(task, None)
