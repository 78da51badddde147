"""The read-only view of a node for drivers, checkers and explanations.

Drivers act on effects alone. Counters, checkers and explanations look at a node from outside; all that they may see is
here, so the parts of the core can change without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from daws.core.config import Phase
from daws.core.places import places

if TYPE_CHECKING:
    from daws.core.executors import Run
    from daws.core.node import NodeCore
    from daws.model.cluster import Members
    from daws.model.task import Ready


class NodeCounts(Struct, frozen=True):
    """The counts of a node so far."""

    done_count: int
    read_bytes: int
    moved_bytes: int
    local_hits: int
    cache_hits: int
    pushes: int
    steals: int
    failed_steals_total: int
    gives: int
    replicas: int


def counts(core: NodeCore) -> NodeCounts:
    objects = core.objects
    return NodeCounts(
        done_count=core.lengths.done_count,
        read_bytes=objects.read_bytes,
        moved_bytes=objects.moved_bytes,
        local_hits=objects.local_hits,
        cache_hits=objects.cache_hits,
        pushes=core.transfer.pushes,
        steals=core.transfer.steals,
        failed_steals_total=core.search.failed_steals_total,
        gives=core.transfer.gives,
        replicas=core.replicas.count,
    )


def progress(core: NodeCore) -> tuple[int, int, int, int]:
    """The tasks that have ended here, those that were stolen, and the bytes that were read and moved."""
    return core.lengths.done_count, core.transfer.steals, core.objects.read_bytes, core.objects.moved_bytes


def members(core: NodeCore) -> Members:
    return core.members


def is_restarting(core: NodeCore) -> bool:
    """Nothing that this incarnation does counts any more."""
    return core.phase == Phase.RESTARTING


def may_start(core: NodeCore, now_ns: int) -> bool:
    """Is its lease long enough to start tasks?"""
    return now_ns < core.membership.leased_until_ns


def runs(core: NodeCore) -> Mapping[int, Run]:
    """The runs that were started here and have not ended, by task."""
    return core.executors.running


def tasks(core: NodeCore) -> Iterator[tuple[str, Ready]]:
    """Every task that is to run, runs or waits here, and the place where it is."""
    return places(core)


def stranded(core: NodeCore) -> Sequence[Ready]:
    """Tasks that no member can run."""
    return core.queues.stranded or ()


def objects(core: NodeCore) -> Mapping[int, int]:
    """The objects that the node believes to have, and their sizes."""
    return core.objects.sizes


def made(core: NodeCore) -> Iterator[tuple[int, Sequence[int], tuple[int, ...]]]:
    """The tasks that ran here, each with the readers that it waits for and its objects."""
    for task, entry in core.objects.made.items():
        yield task, tuple(entry.readers), entry.objects


def last_token(core: NodeCore) -> int:
    """The highest number that the node has given to a run or a call."""
    return core.executors.token


def unsafe_count(core: NodeCore) -> int:
    """How many things wait until what a store has acknowledged is safe."""
    keeping = core.keeping
    return 0 if keeping is None else len(keeping.later) + len(keeping.resending)
