"""Runs that take longer than they should: an idle node that asks for work may run a copy; whichever ends first counts.

Only under strategies that want it (`overdue_ns` of `replicate`), where `lengths` keeps the last lengths of each kind of
task. There is no timer: a node looks at its runs when another node asks it for work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.effects import VALIDATE, SetTimer
from daws.core.empty import shared_part
from daws.core.executors import Run
from daws.core.transfer import offer
from daws.model.task import REPLICA, SUSPECT, NodeId
from daws.wire.messages import COPY

if TYPE_CHECKING:
    from daws.core.node import NodeCore

COPIED_MAX = 4096
"""The number of tasks of which copies were offered that are remembered, beside those that are still queued."""


class NodeReplicas:
    """The copies that this node has offered to others, and those that it runs itself."""

    __slots__ = ("armed", "copied", "count")

    def __init__(self) -> None:
        self.copied: dict[int, int] = {}  # by task: how many copies of it were offered
        self.count = 0  # copies of other nodes' tasks that this node has got so far
        self.armed = False  # the timer after which the store is asked about them is set


NO_REPLICAS = shared_part(NodeReplicas())
"""Shared by all nodes that have nothing to do with copies. `own_replicas` creates a node's own."""


def own_replicas(core: NodeCore) -> NodeReplicas:
    if core.replicas is NO_REPLICAS:
        core.replicas = NodeReplicas()
    return core.replicas


def got_copy(core: NodeCore) -> None:
    """This node may run a copy of another node's task."""
    own_replicas(core).count += 1
    if not core.replicas.armed:
        validate_later(core)


def overdue_runs(core: NodeCore) -> list[Run]:
    """The runs that have taken too long and of which another copy may run, the longest over time first."""
    copies_max, overdue_ns = core.strategy.replicate.copies_max, core.strategy.traits.replicate.overdue_ns
    assert overdue_ns is not None
    found: list[tuple[int, int, Run]] = []
    for task, run in core.executors.running.items():
        ready = run.ready
        if not run.since_ns or ready.mode & (REPLICA | SUSPECT) or run.suspended or run.spawned:
            continue
        if core.replicas.copied.get(task, 0) >= copies_max:
            continue
        limit_ns = overdue_ns(core, ready.spec)
        over_ns = core.now_ns - run.since_ns - limit_ns
        if limit_ns and over_ns > 0:
            found.append((-over_ns, run.number, run))
    return [run for _, _, run in sorted(found)]


def offer_copy(core: NodeCore, idle: NodeId) -> bool:
    """Let an idle node run a copy of the run that is longest over its time, of those that it can run."""
    info = core.members.info(idle)
    if info is None:
        return False
    for run in overdue_runs(core):
        ready = run.ready
        if info.can_run(ready.spec.needs):
            note_copy(core, ready.spec.id)
            offer(core, idle, COPY, ready)
            return True
    return False


def note_copy(core: NodeCore, task: int) -> None:
    """A copy of this task was offered to somebody."""
    replicas = own_replicas(core)
    if len(replicas.copied) >= COPIED_MAX + core.queues.shared.count:
        here = {ready.spec.id for ready in core.queues.shared.all()}.union(core.executors.running)
        replicas.copied = {one: count for one, count in replicas.copied.items() if one in here}
    replicas.copied[task] = replicas.copied.get(task, 0) + 1


def validate_later(core: NodeCore) -> None:
    """This node has copies of tasks: set the timer after which it asks the store about them, if `replicate` says so."""
    every_ns = core.strategy.traits.replicate.validate_ns
    if every_ns:
        own_replicas(core).armed = True
        core.out.append(SetTimer(VALIDATE, core.now_ns + every_ns))


def timer_fired(core: NodeCore) -> None:
    """The timer that asks the store about copies is not set any more."""
    own_replicas(core).armed = False
