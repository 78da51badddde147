"""Settings stay as they are."""

from typing import ClassVar

from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Changes, Reasons, View


class AdaptNothing(ParameterizedAnswer, frozen=True):
    """The threshold of `place` stays what it was, and `relax` may always act.

    Helps when the right settings are known, and in studies that compare settings. Hurts when a workload changes its
    nature.
    """

    period: ClassVar[int] = 0

    def start(self, threshold: float) -> Changes:
        return Changes(threshold=threshold, relaxing=True)

    def adjust(self, view: View) -> Changes | None:
        return None

    def explain(self, view: View) -> Reasons:
        return {"threshold": view.threshold, "choice": None}
