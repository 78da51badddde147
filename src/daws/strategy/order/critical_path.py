"""Order by what hangs on a task."""

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
    """The task with the longest way to the end of the graph (its upward rank) first.

    ADAGE (2021), section III-A, where the least slack goes first, which is the same. Ranks add up the estimates that a
    graph gives; where it gives none at all, the true lengths, as the paper supposes. Helps graphs with long chains.
    Hurts nothing but the client, which computes the ranks when it submits; tasks added later have rank 0.

    With `patience` an executor does not start a task while one that is more critical is about to be ready: its last
    inputs are on their way, or its parent has just ended here. It waits no longer than that part of the time that
    the task would take. With two long tasks per core that is worth some percent; without a plan nothing is known of
    what is about to come.

    With `room-mb` what was begun is finished before something new begins, as long as that costs little time: where
    tasks would hold more than that per core by upward rank, the ranks are those of a depth-first run that was played
    backwards, but for the last tasks (`daws.strategy.order.finishing`). Nobody waits for tasks that such a rank raises.
    Chains that are joined at the end then hold some objects per core instead of one each. Where no graph is known and
    no rank is given, tasks that read something large come before all others, the latest first. Hurts when lengths are
    far off, and then the last tasks; ADAGE has nothing like it.
    """

    patience: Annotated[
        float, Meta(ge=0, le=1, description="part of a task's length for which a more critical one is waited for")
    ] = 0.0

    room_mb: Annotated[
        float, Meta(ge=0, description="objects per core, beyond which what was begun is finished first; 0 to inf")
    ] = inf

    needs_ranks: ClassVar[bool] = True
    plain_is_neutral: ClassVar[bool] = True
    small_is_neutral: ClassVar[bool] = True

    @property
    def finishes(self) -> bool:
        """Does what was begun come before what is new?"""
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
        """The ranks by which nodes go, from those of the plan."""
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
    """In place of a rank that nobody knows: 0 for a task that reads nothing large, which may begin something new. The
    others go on with what was begun, the latest of them first."""
    for one in ready.inputs:
        if one[1] > INLINE_BYTES:
            return 1 + view.done_count
    return 0
