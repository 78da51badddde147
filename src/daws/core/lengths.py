"""How long tasks take: learnt by kind from the runs that have ended here; and what `adapt` makes of it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from daws.core.empty import EMPTY

if TYPE_CHECKING:
    from daws.core.node import NodeCore

# How long tasks of a kind take is learnt from every run at first, later from every eighth.
SAMPLE_ALL = 16
SAMPLE_MASK = 7
LENGTHS_MAX = 64
"""The number of lengths of each kind of task that are kept, the latest ones."""
KINDS_MAX = 10_000
"""The largest number of kinds of tasks whose lengths are remembered."""


def is_sampled(done: int) -> bool:
    """Is the length of that run looked at?"""
    return done < SAMPLE_ALL or not done & SAMPLE_MASK


def learn_length(core: NodeCore, kind: int, duration_ns: int, count: int = 1) -> None:
    """Note that `count` runs of this kind took this long in all."""
    seen = core.kinds.get(kind)
    if seen is None:
        if core.kinds is EMPTY:
            core.kinds = {}
        elif len(core.kinds) >= KINDS_MAX:
            _forget_kinds(core)
        core.kinds[kind] = seen = [count, duration_ns, duration_ns // count or 1, 0]
    else:
        seen[0] += count
        seen[1] += duration_ns
        seen[2] = seen[1] // seen[0] or 1
    core.sampled_count += count
    core.sampled_ns += duration_ns
    core.mean_run_ns = core.sampled_ns // core.sampled_count or 1
    core.calm_count = 0
    if core.lengths is not None:
        note_length(core, kind, duration_ns)
    if seen[1] < core.config.short_ns * seen[0]:
        core.has_short = True
        core.end_plain()  # such short tasks are sent ahead


def _forget_kinds(core: NodeCore) -> None:
    """Every session has kinds of its own: those that were new first go, and are learnt again if they come again."""
    old = [*core.kinds][: KINDS_MAX // 2]
    for kind in old:
        del core.kinds[kind]
        if core.lengths is not None:
            core.lengths.pop(kind, None)


def adapt(core: NodeCore) -> None:
    core.adapt_at += core.strategy.adapt.period
    changes = core.strategy.adapt.adjust(core)
    begin_period(core)
    if changes is None:
        return
    if changes.threshold is not None:
        core.threshold = changes.threshold
    if changes.relaxing is not None:
        core.relaxing = changes.relaxing
    if changes.tt_ns is not None:
        core.tt_ns = changes.tt_ns


def begin_period(core: NodeCore) -> None:
    """Begin the period that `adapt` will be asked about next."""
    core.adapted = (core.done_count, core.sampled_count, core.sampled_ns, core.moved_bytes, core.read_bytes)


def note_length(core: NodeCore, kind: int, duration_ns: int) -> None:
    """A run has ended."""
    assert core.lengths is not None
    core.lengths.setdefault(kind, deque(maxlen=LENGTHS_MAX)).append(duration_ns)
