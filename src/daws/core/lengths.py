"""How long tasks take: learnt by kind from the runs that have ended here."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec import Struct

from daws.core.empty import shared_part
from daws.core.tuning import adapt, stay_calm

if TYPE_CHECKING:
    from daws.core.node import NodeCore

# How long tasks of a kind take is learnt from every run at first, later from every eighth.
SAMPLE_ALL = 16
SAMPLE_MASK = 7
LENGTHS_MAX = 64
"""The number of lengths of each kind of task that are kept, the latest ones."""
KINDS_MAX = 10_000
"""The largest number of kinds of tasks whose lengths are remembered."""


class KindLength(Struct, gc=False):
    """The runs of one kind of task: how many were timed, and how long they took. `made_bytes` is the size of the large
    objects that the last of them made."""

    count: int
    total_ns: int
    mean_ns: int
    made_bytes: int = 0


class Lengths:
    """The runs that have ended on a node: how many, and how long they took."""

    __slots__ = ("done_count", "has_short", "kinds", "last", "mean_run_ns", "sampled_count", "sampled_ns")

    def __init__(self) -> None:
        self.done_count = 0
        self.sampled_count = 0  # how many runs were timed, and how long they took in all
        self.sampled_ns = 0
        self.mean_run_ns = 0
        self.has_short = False  # some kind of task is short enough to be sent ahead
        self.kinds: dict[int, KindLength] = {}
        self.last: dict[int, deque[int]] | None = None  # the last runs of each kind, under strategies that look at them

    def count_ends(self, count: int) -> None:
        """Count runs that have ended and are not timed."""
        self.done_count += count


NO_LENGTHS = shared_part(Lengths())
"""Shared by all nodes on which no run has ended. `own_lengths` creates a node's own."""


def own_lengths(core: NodeCore) -> Lengths:
    """The `Lengths` of this node, to change something."""
    if core.lengths is NO_LENGTHS:
        core.lengths = Lengths()
    return core.lengths


def watch_lengths(core: NodeCore, watches: bool) -> None:
    """Begin, or cease, to keep the last lengths of each kind."""
    if watches or core.lengths.last is not None:
        own_lengths(core).last = {} if watches else None


def count_end(core: NodeCore, kind: int, duration_ns: int) -> None:
    """A run has ended, which may be one that is timed."""
    lengths = core.lengths
    if lengths is NO_LENGTHS:
        lengths = own_lengths(core)
    lengths.done_count = done = lengths.done_count + 1
    if done < SAMPLE_ALL or not done & SAMPLE_MASK:
        learn_length(core, kind, duration_ns)
    if done == core.tuning.adapt_at:
        adapt(core)


def learn_length(core: NodeCore, kind: int, duration_ns: int, count: int = 1) -> None:
    """Note that `count` runs of this kind took this long in all."""
    lengths = own_lengths(core)
    seen = lengths.kinds.get(kind)
    if seen is None:
        if len(lengths.kinds) >= KINDS_MAX:
            _forget_kinds(lengths)
        lengths.kinds[kind] = seen = KindLength(count, duration_ns, duration_ns // count or 1)
    else:
        seen.count += count
        seen.total_ns += duration_ns
        seen.mean_ns = seen.total_ns // seen.count or 1
    lengths.sampled_count += count
    lengths.sampled_ns += duration_ns
    lengths.mean_run_ns = lengths.sampled_ns // lengths.sampled_count or 1
    stay_calm(core, 0)
    if lengths.last is not None:
        lengths.last.setdefault(kind, deque(maxlen=LENGTHS_MAX)).append(duration_ns)
    if seen.total_ns < core.config.short_ns * seen.count:
        lengths.has_short = True


def learn_size(core: NodeCore, kind: int, size_bytes: int) -> None:
    """Note how many bytes of large objects a run of this kind has made. Objects that travel inside records do not
    count."""
    seen = core.lengths.kinds.get(kind)
    if seen is not None:
        seen.made_bytes = size_bytes


def _forget_kinds(lengths: Lengths) -> None:
    """Every session has kinds of its own: those that were new first go, and are learnt again if they come again."""
    for kind in [*lengths.kinds][: KINDS_MAX // 2]:
        del lengths.kinds[kind]
        if lengths.last is not None:
            lengths.last.pop(kind, None)
