"""Executors that stay idle for a moment, because a more critical task is about to be ready.

A plan puts tasks one behind the other to the microsecond. Without this module a node would begin a long task because
the task that was planned before it is late, by a small transfer or by the commit of its parent. Then the late task, on
which more depends, would wait for all of the long one. An executor waits only for a small part of the length of the
task that it could start instead (`patience` of `order`). Little is lost if it waited in vain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.effects import PATIENCE, SetTimer
from daws.core.handlers import fires
from daws.model.task import RAISED, Ready, TaskSpec

if TYPE_CHECKING:
    from daws.core.node import NodeCore

COMMIT_NS = 300_000
"""The time from the end of a task until the tasks that follow it are ready."""


def expected_ns(core: NodeCore, spec: TaskSpec) -> int:
    """How long a task takes, as far as that is known; else how long it and all that follows it take."""
    seen = core.lengths.kinds.get(spec.kind)
    return seen.mean_ns if seen is not None else spec.estimate_ns or spec.rank % RAISED


def waits_for_better(core: NodeCore, ready: Ready) -> bool:
    """Everything that this task reads is here, and executors are idle: are they rather kept for others?"""
    patience_ns = int(core.patience * expected_ns(core, ready.spec))
    if not core.executors.one_group or _coming_count(core, ready.spec, patience_ns) < len(core.executors.plain_free):
        core.executors.wait_until(0)  # there are executors for all of them
        return False
    if not core.executors.waits_until_ns:
        core.close_lane()
        core.executors.wait_until(core.now_ns + patience_ns)
        core.out.append(SetTimer(PATIENCE, core.executors.waits_until_ns))
    if core.now_ns < core.executors.waits_until_ns:
        return True
    core.executors.wait_until(0)
    return False


@fires(PATIENCE)
def patience_is_over(core: NodeCore) -> None:
    """Perhaps: timers of a real clock may be early by a part of a millisecond."""
    if core.now_ns < core.executors.waits_until_ns:
        core.out.append(SetTimer(PATIENCE, core.executors.waits_until_ns))
    else:
        core.schedule_soon()


def _coming_count(core: NodeCore, spec: TaskSpec, patience_ns: int) -> int:
    """How many tasks are more critical than this one and will be ready within that time? Their inputs are on the way,
    or a task that read something and has ended here is being committed. Tasks that were raised are not critical."""
    rank, priority, count = spec.rank % RAISED, spec.priority, 0
    if core.fetching.waiting:
        most_bytes = patience_ns * core.net_bytes_per_s * 1e-9
        for other in core.fetching.waiting.values():
            spec = other.ready.spec
            if RAISED > spec.rank > rank and spec.priority >= priority:
                lacking = [one.size_bytes for one in other.ready.inputs if one.object in other.lacks]
                count += sum(lacking) <= most_bytes
    if core.objects.finishing and patience_ns >= COMMIT_NS:
        for done in core.objects.finishing.values():
            before = done.spec
            if RAISED > before.rank > rank and before.priority >= priority and not before.leaf:
                count += before.rank - expected_ns(core, before) > rank
    return count
