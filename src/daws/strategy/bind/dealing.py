"""Tasks dealt to shares in proportion to their cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daws.model.columns import Int64s


def dealt(task_count: int, cores: Sequence[int]) -> Int64s:
    """The share of each task. Shares alternate, so that each gets its part of every stage, not stages of its own."""
    import numpy as np

    owner = np.repeat(np.arange(len(cores)), cores)
    turn = np.concatenate([(np.arange(count) + 0.5) / count for count in cores])
    pattern = owner[np.argsort(turn, kind="stable")]
    return pattern[np.arange(task_count) % len(pattern)].astype(np.int64, copy=False)
