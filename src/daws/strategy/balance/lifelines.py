"""Lifelines: after a few failed tries an idle node leaves its name and waits to be called."""

from typing import Annotated, ClassVar

from msgspec import Meta

from daws.model.task import NodeId
from daws.strategy.balance.neighbours import NS_PER_MS, draw, part
from daws.strategy.balance.thief import Thief
from daws.strategy.decisions import Reasons, Rng, View


class BalanceLifelines(Thief, frozen=True, dict=True):
    """An idle node asks `tries` random nodes in turn, then its lifelines, which remember it. As soon as a lifeline has
    more than it can run, it sends half of it.

    Lifeline-based global load balancing (Saraswat and others, 2011), as in X10. The lifelines of a node are the members
    1, 2, 4, 8, … places after it in the list. As in the paper's hypercubes each node has log n of them, and work
    reaches any node in log n steps, for any number of nodes. Names are left again after some seconds, in case one got
    lost, then after twice as long each time; otherwise an idle node sends nothing.

    Helps when work comes in waves: no node polls, and a waiting node gets work at once. Hurts when tasks are few: they
    reach a far node only through other nodes.
    """

    mode: ClassVar[str] = "steal"
    asks_load: ClassVar[bool] = False
    follows_rumours: ClassVar[bool] = False
    from_head: ClassVar[bool] = False

    tries: Annotated[int, Meta(ge=0, le=1000, description="random nodes asked before the lifelines")] = 2
    share: Annotated[float, Meta(gt=0, le=1, description="part of the victim's shared tasks that is taken")] = 0.5
    most: Annotated[int, Meta(ge=1, le=1_000_000, description="tasks taken at once at most")] = 256
    delay_ms: Annotated[float, Meta(ge=0.001, le=1e6, description="ms between tries")] = 1.0

    def leaves_name(self, view: View) -> bool:
        return view.failed_steals >= self.tries

    def start_poll_ns(self) -> int:
        return int(self.delay_ms * NS_PER_MS)

    def start_neighbours(self, member_count: int) -> int:
        return 1

    def targets(self, view: View, rng: Rng) -> list[NodeId]:
        return self._lifelines(view) if self.leaves_name(view) else draw(view, rng, 1)

    def pick(self, view: View, loads: list[tuple[NodeId, int]]) -> NodeId:
        return next((node for node, load in loads if load > 0), -1)

    def amount(self, view: View, available: int) -> int:
        return min(part(available, self.share), self.most)

    def after_success(self, view: View) -> tuple[int, int]:
        return self.start_poll_ns(), 1

    def after_failure(self, view: View) -> tuple[int, int]:
        return self.start_poll_ns(), 1

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons:
        return {
            "failed_steals": view.failed_steals,
            "tries": self.tries,
            "lifelines": self._lifelines(view),
            **self.wished(),
            "choice": self.pick(view, loads),
        }

    def _lifelines(self, view: View) -> list[NodeId]:
        nodes = view.members.nodes
        if view.node not in view.members:
            return []
        position, count = view.members.position(view.node), len(nodes)
        return [nodes[(position + (1 << power)) % count] for power in range((count - 1).bit_length())]
