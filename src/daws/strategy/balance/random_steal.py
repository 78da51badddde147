"""Random stealing as in Constellation: one victim, no questions."""

from typing import Annotated, Literal

from msgspec import Meta

from daws.model.task import NodeId
from daws.strategy.balance.neighbours import draw
from daws.strategy.balance.thief import PlainThief
from daws.strategy.decisions import Reasons, Rng, View

TRIES = 16
"""Random draws for a node of the own cluster before all members are searched."""


class BalanceRandomSteal(PlainThief, frozen=True, dict=True):
    """An idle node asks one random node for a task, every `delay-ms`, without asking for loads first.

    Constellation (2011), section 3.3; size and delay from its code. The task that is handed over is the one that
    would run first there, unless `take` asks for another. `pool=cluster` asks within the own cluster first and, after
    a failed try, everywhere once; pools with names, which Constellation has, are left to contexts.

    Helps with long tasks and few nodes. Hurts with short ones: a task per round trip, and most victims have none.
    """

    pool: Annotated[Literal["all", "cluster"], Meta(description="whom to steal from first")] = "all"

    def targets(self, view: View, rng: Rng) -> list[NodeId]:
        # The neighbour count says how far to reach: 1 is the own cluster, 2 is everywhere.
        if self.pool == "cluster" and view.neighbour_count == 1:
            return _draw_near(view, rng) or draw(view, rng, 1)
        return draw(view, rng, 1)

    def after_failure(self, view: View) -> tuple[int, int]:
        return self.next_poll_ns(view), 2 if self.pool == "cluster" and view.neighbour_count == 1 else 1

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons:
        return {"pool": self.pool, "neighbour_count": view.neighbour_count, **super().explain(view, loads)}


def _draw_near(view: View, rng: Rng) -> list[NodeId]:
    """A random other node of the same cluster, if there is one."""
    infos, node = view.members.infos, view.node
    own = view.members.info(node)
    if own is None:
        return []
    for _ in range(TRIES):
        info = infos[rng.below(len(infos))]
        if info.cluster == own.cluster and info.id != node:
            return [info.id]
    near = [info.id for info in infos if info.cluster == own.cluster and info.id != node]
    return [near[rng.below(len(near))]] if near else []
