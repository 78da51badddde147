"""Workers ask the master."""

from typing import Annotated, ClassVar

from msgspec import Meta

from daws.model.task import NodeId
from daws.strategy.balance.neighbours import NS_PER_MS
from daws.strategy.balance.thief import Thief
from daws.strategy.decisions import Reasons, Rng, View


class BalanceMasterWorker(Thief, frozen=True, dict=True):
    """An idle node asks the first member, the master, for a task, every `delay-ms`; the master asks nobody.

    Constellation (2011), section 3.3; size and delay from its code. Goes with `assign=one` and `place=master`,
    which bring the tasks to the master. If the master dies, the next member is the master.

    Helps with long tasks and few nodes, for its simplicity. Hurts at scale: all requests meet at one node.
    """

    mode: ClassVar[str] = "steal"
    asks_load: ClassVar[bool] = False
    follows_rumours: ClassVar[bool] = False
    from_head: ClassVar[bool] = True

    count: Annotated[int, Meta(ge=1, le=1_000_000, description="tasks handed over at once")] = 1
    delay_ms: Annotated[float, Meta(ge=0.001, le=1e6, description="ms between requests")] = 20.0

    def start_poll_ns(self) -> int:
        return int(self.delay_ms * NS_PER_MS)

    def start_neighbours(self, member_count: int) -> int:
        return 1

    def targets(self, view: View, rng: Rng) -> list[NodeId]:
        nodes = view.members.nodes
        return [nodes[0]] if nodes and nodes[0] != view.node else []

    def pick(self, view: View, loads: list[tuple[NodeId, int]]) -> NodeId:
        return next((node for node, load in loads if load > 0), -1)

    def amount(self, view: View, available: int) -> int:
        return min(available, self.count)

    def after_success(self, view: View) -> tuple[int, int]:
        return self.start_poll_ns(), 1

    def after_failure(self, view: View) -> tuple[int, int]:
        return self.start_poll_ns(), 1

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons:
        return {"loads": dict(loads), **self.wished(), "choice": self.pick(view, loads)}
