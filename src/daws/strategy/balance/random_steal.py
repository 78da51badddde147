"""Random stealing as in Constellation: one victim, no questions."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from daws.model.task import NodeId
from daws.strategy.balance.neighbours import NS_PER_MS, draw
from daws.strategy.balance.thief import Thief
from daws.strategy.decisions import Reasons, Rng, View

TRIES = 16
"""Random draws for a node of the own cluster before all members are searched."""


class BalanceRandomSteal(Thief, frozen=True, dict=True):
    """An idle node asks one random node for a task, every `delay-ms`, without asking for loads first.

    Constellation (2011), section 3.3; size and delay from its code. The task that is handed over is the one that
    would run first there, unless `take` asks for another. `pool=cluster` asks within the own cluster first and, after
    a failed try, everywhere once.

    Helps with long tasks and few nodes. Hurts with short ones: a task per round trip, and most victims have none.
    """

    mode: ClassVar[str] = "steal"
    asks_load: ClassVar[bool] = False
    follows_rumours: ClassVar[bool] = False
    from_head: ClassVar[bool] = True

    count: Annotated[int, Meta(ge=1, le=1_000_000, description="tasks handed over at once")] = 1
    delay_ms: Annotated[float, Meta(ge=0.001, le=1e6, description="ms between tries")] = 20.0
    pool: Annotated[Literal["all", "cluster"], Meta(description="whom to steal from first")] = "all"

    def start_poll_ns(self) -> int:
        return int(self.delay_ms * NS_PER_MS)

    def start_neighbours(self, member_count: int) -> int:
        return 1

    def targets(self, view: View, rng: Rng) -> list[NodeId]:
        # The neighbour count says how far to reach: 1 is the own cluster, 2 is everywhere.
        if self.pool == "cluster" and view.neighbour_count == 1:
            return _draw_near(view, rng) or draw(view, rng, 1)
        return draw(view, rng, 1)

    def pick(self, view: View, loads: list[tuple[NodeId, int]]) -> NodeId:
        return next((node for node, load in loads if load > 0), -1)

    def amount(self, view: View, available: int) -> int:
        return min(available, self.count)

    def after_success(self, view: View) -> tuple[int, int]:
        return self.start_poll_ns(), 1

    def after_failure(self, view: View) -> tuple[int, int]:
        return self.start_poll_ns(), 2 if self.pool == "cluster" and view.neighbour_count == 1 else 1

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons:
        return {"loads": dict(loads), "pool": self.pool, **self.wished(), "choice": self.pick(view, loads)}


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
