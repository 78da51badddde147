"""Order by the length of the path that depends on a task."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from daws.model.task import INLINE_BYTES, RAISED, Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View
from daws.strategy.order.finishing import finishing_ranks
from daws.strategy.order.priority import STEP

if TYPE_CHECKING:
    import numpy as np

    from daws.model.cluster import Members
    from daws.model.graph import Graph


class OrderCriticalPath(ParameterizedAnswer, frozen=True):
    """The task with the longest path to the end of the graph (its upward rank) first.

    ADAGE (2021), section III-A, takes the least slack first, which is the same. Ranks add up the estimates that a graph
    gives, or the true lengths if it gives none at all, as the paper supposes. Helps graphs with long chains. Hurts
    nothing but the client, which computes the ranks when it submits; tasks added later have rank 0.

    `patience` lets an executor wait while a more critical task is about to be ready: its last inputs are on their way,
    or its parent has just ended here. The executor waits no longer than this part of the time that the available task
    would take. With two long tasks per core that is worth some percent. Without a plan the next tasks are unknown, and
    nothing waits.

    `room-mb` limits the objects that tasks hold: work that was begun is finished before new work begins, if that costs
    little time. It applies if the order by upward rank would hold more than this per core. Then the ranks are those of
    a depth-first run that was simulated backwards, except for the last tasks (`daws.strategy.order.finishing`). No
    executor waits for a task that such a rank raises. Chains that are joined at the end then hold some objects per core
    instead of one each. If no graph is known and no rank is given, tasks that read something large come before all
    others, the latest first. Hurts when lengths are far off, and then the last tasks; ADAGE has nothing like it.
    """

    patience: Annotated[
        float, Meta(ge=0, le=1, description="part of a task's length for which a more critical one is waited for")
    ] = 0.0

    room_mb: Annotated[
        float, Meta(ge=0, description="objects per core, beyond which begun work is finished first; 0 to inf")
    ] = inf

    needs_ranks: ClassVar[bool] = True
    plain_is_neutral: ClassVar[bool] = True
    small_is_neutral: ClassVar[bool] = True

    @property
    def finishes(self) -> bool:
        """Whether work that was begun comes before new work."""
        return self.room_mb != inf

    def key(self, view: View, ready: Ready) -> float:
        spec = ready.spec
        rank = spec.rank
        if rank >= RAISED:
            rank -= RAISED
        elif not rank and ready.inputs and self.room_mb != inf:
            rank = _begun(view, ready)
        return -rank - spec.priority * STEP if spec.priority else -rank

    def raised(self, graph: Graph, ranks: np.ndarray, members: Members) -> np.ndarray:
        """The ranks that nodes use, from those of the plan."""
        return ranks if self.room_mb == inf else finishing_ranks(graph, ranks, members, self.room_mb * 1e6)

    def explain(self, view: View, ready: Ready) -> Reasons:
        rank = ready.spec.rank
        reasons: Reasons = {"rank": rank % RAISED, "priority": ready.spec.priority, "choice": self.key(view, ready)}
        if rank >= RAISED:
            reasons["raised"] = True
        if not rank and self.room_mb != inf:
            reasons["begun"] = _begun(view, ready)
        return reasons


def _begun(view: View, ready: Ready) -> int:
    """A substitute for an unknown rank: 0 for a task that reads nothing large, which may begin something new. Other
    tasks continue work that was begun, the latest of them first."""
    for one in ready.inputs:
        if one.size_bytes > INLINE_BYTES:
            return 1 + view.done_count
    return 0
