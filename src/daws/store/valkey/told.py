"""Stamps of written cells that callers tell each other, so that the cells need not be fetched.

A client tells the owner of a new task its cell's stamp; the owner tells the client the stamp under which it was
finished. Either side makes the record itself from what it knows of the task anyway. That is only done where the whole
record follows from it, which both sides check: the same function makes the record that one side compares with and the
other side caches. A stamp belongs to one content for ever. A message that comes late, or after a failover, is merely
outdated, and the server refuses a write on top of it.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from daws.model.states import DONE, READY
from daws.model.task import Input, NodeId, Ready, TaskSpec
from daws.store.memory.record import Record
from daws.store.valkey.view import Cache, CachedRecord

Runs = tuple[tuple[int, bytes], ...]
"""Stamps of tasks in order, each with the number of tasks that share it; b"" if unknown."""


CacheOf = Callable[[int], Cache]
"""A function that gives the cache of a task's shard."""
Seal = tuple[bytes, bytes]
"""The stamp of a task's cell before it was finished, and after."""


def _handed_out(ready: Ready, node: NodeId) -> Record:
    """A task as its client has just made it for its owner."""
    return Record(ready.spec, READY, node, (), None, ready.inputs, (), ready.move, ready.attempt, False, True)


def _new(spec: TaskSpec, node: NodeId) -> Record:
    return Record(spec, READY, node, (), None, (), (), 0, 0, False, True)


def _ended(spec: TaskSpec, node: NodeId, outputs: tuple[Input, ...]) -> Record:
    """The record of a new task that reads nothing, after its first owner has run it."""
    return Record(spec, DONE, node, (), None, (), outputs, 0, 0, False, True)


def stamps_of(cache_of: CacheOf, tasks: Iterable[Ready], node: NodeId) -> Runs:
    """The stamps of tasks that were just submitted, for their owner."""
    stamps = []
    for task in tasks:
        cell = cache_of(task.spec.id).get(task.spec.id)
        is_so = isinstance(cell, CachedRecord) and cell.record == _handed_out(task, node)
        stamps.append(cell.stamp if is_so else b"")  # type: ignore[union-attr]
    return tuple([(len(list(some)), stamp) for stamp, some in groupby(stamps)])


def learn_stamps(cache_of: CacheOf, tasks: Sequence[Ready], node: NodeId, runs: Runs) -> None:
    """Cache the stamps that the owner received. Cells that it has cached already are newer."""
    start = 0
    for count, stamp in runs:
        if stamp:
            for task in tasks[start : start + count]:
                cache = cache_of(task.spec.id)
                if task.spec.id not in cache:
                    cache[task.spec.id] = CachedRecord(stamp, _handed_out(task, node))
        start += count


def seal_of(cache: Cache, task: int, node: NodeId, outputs: tuple[Input, ...]) -> Seal | None:
    """The stamps of a task that this owner has just finished, for its client; the owner itself drops the cell."""
    cell = cache.get(task)
    if not isinstance(cell, CachedRecord) or not cell.before or (record := cell.record) is None:
        return None
    if record != _ended(record.spec, node, outputs):
        return None
    del cache[task]
    return cell.before, cell.stamp


def learn_end(cache: Cache, task: int, node: NodeId, outputs: tuple[Input, ...], seal: Seal) -> None:
    """Cache the end of a task that the client was told of."""
    cell = cache.get(task)
    if isinstance(cell, CachedRecord) and cell.stamp == seal[0] and cell.record is not None:
        spec = cell.record.spec
        if cell.record == _new(spec, node):
            cache[task] = CachedRecord(seal[1], _ended(spec, node, outputs))


def forget_unended(cache_of: CacheOf, tasks: Iterable[int]) -> None:
    """Drop cached cells of tasks that other nodes have finished."""
    for task in tasks:
        cache = cache_of(task)
        cell = cache.get(task)
        if not (isinstance(cell, CachedRecord) and cell.record is not None and cell.record.state == DONE):
            cache.pop(task, None)
