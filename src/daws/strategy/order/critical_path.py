"""Order by what hangs on a task."""

from typing import Annotated, ClassVar

from msgspec import Meta

from daws.model.task import Ready
from daws.strategy.answer import Answer
from daws.strategy.decisions import Reasons, View
from daws.strategy.order.priority import STEP


class OrderCriticalPath(Answer, frozen=True):
    """The task with the longest way to the end of the graph (its upward rank) first.

    ADAGE (2021), section III-A, where the least slack goes first, which is the same. Ranks add up the estimates that a
    graph gives; where it gives none at all, the true lengths, as the paper supposes. Helps graphs with long chains.
    Hurts nothing but the client, which computes the ranks when it submits; tasks added later have rank 0.

    With `patience` an executor does not start a task while one that is more critical is about to be ready: its last
    inputs are on their way, or its parent has just ended here. It waits no longer than that part of the time that
    the task would take. With two long tasks per core that is worth some percent; without a plan nothing is known of
    what is about to come.
    """

    patience: Annotated[
        float, Meta(ge=0, le=1, description="part of a task's length for which a more critical one is waited for")
    ] = 0.0

    needs_ranks: ClassVar[bool] = True
    plain_is_neutral: ClassVar[bool] = True
    small_is_neutral: ClassVar[bool] = True

    def key(self, view: View, ready: Ready) -> float:
        spec = ready.spec
        return -spec.rank - spec.priority * STEP if spec.priority else -spec.rank

    def explain(self, view: View, ready: Ready) -> Reasons:
        return {"rank": ready.spec.rank, "priority": ready.spec.priority, "choice": self.key(view, ready)}
