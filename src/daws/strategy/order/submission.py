"""First come, first served."""

from typing import ClassVar

from daws.model.task import Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View
from daws.strategy.order.priority import STEP


class OrderSubmission(ParameterizedAnswer, frozen=True):
    """Tasks run in the order in which they became ready here; only priorities come before.

    Helps fairness, and when nothing is known of the tasks. Hurts when lengths or sizes are known.
    """

    needs_ranks: ClassVar[bool] = False
    plain_is_neutral: ClassVar[bool] = True
    small_is_neutral: ClassVar[bool] = True

    def key(self, view: View, ready: Ready) -> float:
        priority = ready.spec.priority
        return -priority * STEP if priority else 0

    def explain(self, view: View, ready: Ready) -> Reasons:
        return {"priority": ready.spec.priority, "choice": self.key(view, ready)}
