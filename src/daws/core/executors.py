"""Starting a run on an executor of this node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from daws.core.effects import StartRun
from daws.core.empty import EMPTY
from daws.model.task import Ready

if TYPE_CHECKING:
    from daws.core.node import NodeCore


class Run(Struct, gc=False):
    """A task on an executor (or suspended, or sent ahead behind another)."""

    number: int
    ready: Ready
    slot: int
    more_slots: Sequence[int] = ()  # of a task that needs several cores
    since_ns: int = 0  # when it was started, under strategies that look at that
    suspended: bool = False
    recalled: bool = False  # it was sent ahead and asked for again
    spawned: int = 0
    holds: bool = False  # they are its own, and it may ask for what they have made
    growing: int = 0  # spawned tasks that are not yet safely in the store
    outcome: Any = None  # the RunEnded that waits for them

    def widen(self, group: Group, cores: int) -> None:
        """Take as many executors of the group as the task needs beside its first."""
        first = len(group.free) - (cores - 1)
        self.more_slots = group.free[first:]
        del group.free[first:]


class Group:
    """Executors of this node that offer the same context."""

    __slots__ = ("context", "count", "free")

    def __init__(self, context: Any, slots: range) -> None:
        self.context = context
        self.count = len(slots)
        self.free = list(reversed(slots))


def start(core: NodeCore, ready: Ready, slot: int) -> Run:
    """Everything it reads is here."""
    core.token = number = core.token + 1
    if core.running is EMPTY:
        core.running = {}
    core.running[ready.spec.id] = run = Run(number, ready, slot)
    if core.lengths is not None:
        run.since_ns = core.now_ns
    core.out.append(StartRun(number, slot, ready))
    return run
