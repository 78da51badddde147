"""Numbers that a strategy tunes while a node runs, and how `adapt` and `relax` change them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daws.core.node import NodeCore
    from daws.strategy.decisions import Strategy


class Tuning:
    """The tuned numbers of a node. Those of nodes that have changed none yet are one shared object."""

    __slots__ = (
        *("adapt_at", "adapted", "calm_count", "is_shared", "relaxing", "stall_armed", "stall_since", "stalled_ns"),
        *("threshold", "tt_ns"),
    )

    def __init__(self, threshold: float, relaxing: bool, tt_ns: int, never_stalls: bool, adapt_at: int) -> None:
        self.is_shared = False
        self.threshold = threshold  # of `place`
        self.relaxing = relaxing
        self.tt_ns = tt_ns
        self.adapt_at = adapt_at  # `adapt` is asked when so many tasks have ended here
        self.adapted = (0, 0, 0, 0, 0)  # what had been seen when it was last asked
        self.calm_count = 0  # so many dedicated tasks are not too many
        self.stall_armed = never_stalls  # the timer is set, or is never needed
        self.stall_since = (0, 0)  # when the timer was set, and how many tasks had ended here by then
        self.stalled_ns = 0  # no run has ended for so long


@lru_cache(maxsize=64)
def _first_tuning(threshold: float, relaxing: bool, tt_ns: int, never_stalls: bool, adapt_at: int) -> Tuning:
    tuning = Tuning(threshold, relaxing, tt_ns, never_stalls, adapt_at)
    tuning.is_shared = True
    return tuning


def first_tuning(strategy: Strategy, done_count: int, stall_since: tuple[int, int] = (0, 0)) -> Tuning:
    """The numbers with which a node begins under this strategy, when so many tasks have ended there. (The timer that
    looks for a stall may have been set under the strategy before.)"""
    traits = strategy.traits
    start = strategy.adapt.start(traits.place.t)
    threshold = 0.5 if start.threshold is None else start.threshold
    relaxing = True if start.relaxing is None else start.relaxing
    adapt_at = done_count + strategy.adapt.period
    numbers = (threshold, relaxing, strategy.relax.start_tt_ns(), traits.relax.stall_ns is None, adapt_at)
    if stall_since == (0, 0):
        return _first_tuning(*numbers)
    tuning = Tuning(*numbers)
    tuning.stall_since = stall_since
    return tuning


def own_tuning(core: NodeCore) -> Tuning:
    """The numbers of this node, to change something."""
    old = core.tuning
    if not old.is_shared:
        return old
    core.tuning = Tuning(old.threshold, old.relaxing, old.tt_ns, old.stall_armed, old.adapt_at)
    return core.tuning


def set_tt(core: NodeCore, tt_ns: int) -> None:
    """How long dedicated tasks may wait, says `relax`."""
    if tt_ns != core.tuning.tt_ns:
        own_tuning(core).tt_ns = tt_ns


def stay_calm(core: NodeCore, count: int) -> None:
    """`relax` need not be asked before there are more dedicated tasks than that."""
    if count != core.tuning.calm_count:
        own_tuning(core).calm_count = count


def arm_stall(core: NodeCore, since: tuple[int, int] | None = None) -> None:
    """The timer that looks for a stall is set; `since` begins anew."""
    tuning = own_tuning(core)
    tuning.stall_armed = True
    if since is not None:
        tuning.stall_since = since


def disarm_stall(core: NodeCore, never_stalls: bool) -> None:
    """The timer has fired; under some strategies it is never set again."""
    own_tuning(core).stall_armed = never_stalls


def note_stall(core: NodeCore, stalled_ns: int) -> None:
    """No run has ended for so long (0: that is over)."""
    own_tuning(core).stalled_ns = stalled_ns


def adapt(core: NodeCore) -> None:
    """Ask `adapt`: enough tasks have ended since it was last asked."""
    own_tuning(core).adapt_at += core.strategy.adapt.period
    changes = core.strategy.adapt.adjust(core)
    begin_period(core)
    if changes is None:
        return
    tuning = core.tuning
    if changes.threshold is not None:
        tuning.threshold = changes.threshold
    if changes.relaxing is not None:
        tuning.relaxing = changes.relaxing
    if changes.tt_ns is not None:
        tuning.tt_ns = changes.tt_ns


def begin_period(core: NodeCore) -> None:
    """Begin the period that `adapt` will be asked about next."""
    seen = core.lengths
    own_tuning(core).adapted = (seen.done_count, seen.sampled_count, seen.sampled_ns, core.moved_bytes, core.read_bytes)
