"""Random stealing as in Constellation: one victim, no questions."""

from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta

from daws.model.cluster import NodeInfo
from daws.model.task import NodeId
from daws.strategy.balance.neighbours import draw
from daws.strategy.balance.thief import PlainThief
from daws.strategy.decisions import Reasons, Rng, View

TRIES = 16
"""Random draws for a node of the own cluster, or of a pool, before all members are searched."""


class BalanceRandomSteal(PlainThief, frozen=True, dict=True):
    """An idle node asks one random node for a task, every `delay-ms`, without asking for loads first.

    Constellation (2011), section 3.3; size and delay from its code. The victim hands over the task that it would run
    first, unless `take` asks for another. `pool=cluster` asks within the own cluster first and, after a failed try,
    everywhere once. `pool=named` asks only nodes of the pools that this node steals from. Nodes name these pools
    themselves; a node that names none steals from its own pool.

    Helps with long tasks and few nodes. Hurts with short ones: a task per round trip, and most victims have none.
    """

    pool: Annotated[
        Literal["all", "cluster", "named"],
        Meta(description="nodes to steal from: all, the own cluster first, or the pools that nodes name"),
    ] = "all"

    def targets(self, view: View, rng: Rng) -> list[NodeId]:
        # The neighbour count says how far to reach: 1 is the own cluster, 2 is everywhere. A node that is no member any
        # more, and does not know it yet, belongs to no cluster.
        own = view.members.info(view.node) if self.pool != "all" else None
        if self.pool == "named":
            return _draw_one(view, rng, own.may_steal_from) if own is not None else []
        if own is not None and view.neighbour_count == 1:
            return _draw_one(view, rng, lambda info: info.cluster == own.cluster) or draw(view, rng, 1)
        return draw(view, rng, 1)

    def after_failure(self, view: View) -> tuple[int, int]:
        return self.next_poll_ns(view), 2 if self.pool == "cluster" and view.neighbour_count == 1 else 1

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons:
        return {"pool": self.pool, "neighbour_count": view.neighbour_count, **super().explain(view, loads)}


def _draw_one(view: View, rng: Rng, suits: Callable[[NodeInfo], bool]) -> list[NodeId]:
    """A random other node that suits, if there is one."""
    infos, node = view.members.infos, view.node
    for _ in range(TRIES):
        info = infos[rng.below(len(infos))]
        if info.id != node and suits(info):
            return [info.id]
    others = [info.id for info in infos if info.id != node and suits(info)]
    return [others[rng.below(len(others))]] if others else []
