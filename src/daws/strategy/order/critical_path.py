"""Order by what hangs on a task."""

from typing import ClassVar

from daws.model.task import Ready
from daws.strategy.answer import Answer
from daws.strategy.decisions import Reasons, View
from daws.strategy.order.priority import STEP


class OrderCriticalPath(Answer, frozen=True):
    """The task with the longest way to the end of the graph (its upward rank) first.

    ADAGE (2021), section III-A, where the least slack goes first, which is the same. Ranks add up the estimates that a
    graph gives; where it gives none at all, the true lengths, as the paper supposes. Helps graphs with long chains.
    Hurts nothing but the client, which computes the ranks when it submits; tasks added later have rank 0.
    """

    needs_ranks: ClassVar[bool] = True
    plain_is_neutral: ClassVar[bool] = True
    small_is_neutral: ClassVar[bool] = True

    def key(self, view: View, ready: Ready) -> float:
        spec = ready.spec
        return -spec.rank - spec.priority * STEP if spec.priority else -spec.rank

    def explain(self, view: View, ready: Ready) -> Reasons:
        return {"rank": ready.spec.rank, "priority": ready.spec.priority, "choice": self.key(view, ready)}
