"""Batch sampling with late binding as in Sparrow: work is announced, and bound to the first node that comes for it."""

from typing import Annotated, ClassVar

from msgspec import Meta

from daws.model.task import NodeId
from daws.strategy.balance.neighbours import draw
from daws.strategy.balance.none import BalanceNone
from daws.strategy.decisions import Reasons, Rng, View


class BalanceSample(BalanceNone, frozen=True):
    """A node with more tasks than it can run places `probes` reservations per task at random nodes. A node that gets to
    its reservation has time and fetches a task, or learns that there is none left.

    Sparrow (2013), sections 3.2 and 3.3. Batch sampling: tasks that became ready together share their probes. Late
    binding: a probe reserves a place in a queue, and the task follows when its turn has come. Unlike there, schedulers
    run tasks themselves: a task that a node can start before another node comes for it needs no probe. Lost probes are
    sent again after some seconds. Data counts for nothing, as in Sparrow without constraints.

    Helps with many short jobs: no queue is long by accident. Hurts when nodes are few or all are busy: a round trip per
    task for nothing.
    """

    mode: ClassVar[str] = "invite"
    from_head: ClassVar[bool] = True

    probes: Annotated[int, Meta(ge=1, le=100, description="reservations per task")] = 2
    count: Annotated[int, Meta(ge=1, le=1_000_000, description="tasks handed over at once")] = 1

    def guests(self, view: View, fresh: int, rng: Rng) -> list[tuple[NodeId, int]]:
        """The nodes to invite for `fresh` new tasks, and for how many tasks each. No node is drawn twice before all
        were drawn."""
        others = len(view.members) - (1 if view.node in view.members else 0)
        if not others:
            return []
        rounds, more = divmod(self.probes * fresh, others)
        drawn = draw(view, rng, min(self.probes * fresh, others))
        return [(node, rounds + (number < more)) for number, node in enumerate(drawn)]

    def amount(self, view: View, available: int) -> int:
        return min(available, self.count)

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons:
        return {"probes": self.probes, "waiting": view.shared_count, "members": len(view.members), "choice": -1}
