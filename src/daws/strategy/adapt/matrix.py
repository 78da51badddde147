"""Switching between MDL, FLDS and MLB while running, by the data that moves."""

from math import inf
from typing import Annotated

from msgspec import Meta

from daws.model.errors import StrategyError
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Changes, Lately, Reasons, View

HYSTERESIS = 2.0
"""A policy is left only when the number that led to it has changed by this factor."""


class AdaptMatrix(ParameterizedAnswer, frozen=True):
    """The policy starts as FLDS with threshold `t`. It becomes MDL when moving data takes too long, MLB when data is
    small.

    MATRIX (2015), section 4.4, says "too much" and "few" without numbers. Every `period` finished tasks a node computes
    two ratios over these tasks:

    - Time to move the bytes that were moved / run time. Above `much` the node turns to MDL (threshold 0), because it
      spends more time on transfers than on tasks.
    - Time to move all bytes that were read / run time. Up to `little` the node turns to MLB (threshold inf), because
      data does not matter. The bytes that were really moved are of no use here: under FLDS they are few exactly when
      locality works. A node that has read nothing does not change either, since tasks that read may still come (a
      fan-in begins so).

    Between the two limits the policy is FLDS.

    MDL must not starve the cluster: dedicated tasks are withheld from other nodes only while their queue is done sooner
    than one of them could be moved. Every policy can be left again, at half of `much` and at twice `little`.

    Helps when a workload's nature is unknown or changes. Hurts by at most `period` tasks of delay per change.
    """

    t: Annotated[float, Meta(ge=0, description="threshold to return to; the same as that of place")] = 0.05
    period: Annotated[int, Meta(ge=1, le=1_000_000, description="look after this many finished tasks")] = 64
    much: Annotated[float, Meta(gt=0, description="seconds moved per second of run time that lead to MDL")] = 1.0
    little: Annotated[float, Meta(ge=0, description="seconds of data read per second of run time that allow MLB")] = (
        0.02
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.much <= HYSTERESIS * self.little:
            raise StrategyError(f"much={self.much:g} must be more than {HYSTERESIS:g} times little={self.little:g}")

    def start(self, threshold: float) -> Changes:
        return Changes(threshold=threshold, relaxing=True)

    def adjust(self, view: View) -> Changes | None:
        lately = view.lately
        if not lately.run_ns:
            return None
        threshold = self._threshold(view, lately)
        relaxing = threshold > 0 or self._queue_ns(view, lately) > self._transfer_ns(view, lately)
        if threshold == view.threshold and relaxing == view.relaxing:
            return None
        return Changes(threshold=threshold, relaxing=relaxing)

    def explain(self, view: View) -> Reasons:
        lately = view.lately
        return {
            "done_count": lately.done_count,
            "moved_ratio": _ratio(view, lately.moved_bytes, lately.run_ns),
            "read_ratio": _ratio(view, lately.read_bytes, lately.run_ns),
            "queue_ns": self._queue_ns(view, lately),
            "transfer_ns": self._transfer_ns(view, lately),
            "threshold": view.threshold,
            "relaxing": view.relaxing,
            "choice": self.adjust(view),
        }

    def _threshold(self, view: View, lately: Lately) -> float:
        much = self.much / HYSTERESIS if view.threshold == 0 else self.much
        little = self.little * HYSTERESIS if view.threshold == inf else self.little
        if _ratio(view, lately.moved_bytes, lately.run_ns) > much:
            return 0.0
        return inf if 0 < _ratio(view, lately.read_bytes, lately.run_ns) <= little else self.t

    def _queue_ns(self, view: View, lately: Lately) -> float:
        """The time that this node needs for its dedicated tasks, if they run like the tasks before them."""
        return view.dedicated_count * lately.run_ns / max(1, lately.done_count) / view.cores

    def _transfer_ns(self, view: View, lately: Lately) -> float:
        """The mean time that it took to move the data of one task."""
        return lately.moved_bytes * 1e9 / view.net_bytes_per_s / max(1, lately.done_count)


def _ratio(view: View, size_bytes: int, run_ns: int) -> float:
    """The time to move this many bytes over the time that tasks ran."""
    return size_bytes * 1e9 / view.net_bytes_per_s / run_ns if run_ns else 0.0
