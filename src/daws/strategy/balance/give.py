"""Work giving as in ADAGE: loaded nodes act, idle ones wait."""

from typing import Annotated, ClassVar

from msgspec import Meta

from daws.model.errors import StrategyError
from daws.model.task import NodeId
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.balance.neighbours import NS_PER_MS, draw, part, root
from daws.strategy.decisions import Reasons, Rng, View


class BalanceGive(ParameterizedAnswer, frozen=True):
    """A node with more tasks than it can run asks ⌊√n⌋ random nodes for their load, and gives half of its tail to the
    least loaded.

    ADAGE (2021), section III-D. The node gives only if none of them is more loaded, and never to one as loaded as
    itself. The period doubles after a failure and is reset after a gift. It starts at 1 ms in the paper; in the
    published code it goes from 1 s to 120 s. Here it goes from 1 ms to 1 s, or to a twentieth of what tasks take. With
    `replicate=given` the receiver gets copies that race the originals. Unlike in the paper a gift has at most
    `gift-max` tasks: half of a long queue at once would overload its receiver.

    Helps when few nodes are overloaded: the many idle ones send nothing. Hurts when most are: an idle node cannot ask.
    """

    mode: ClassVar[str] = "give"
    asks_load: ClassVar[bool] = True
    follows_rumours: ClassVar[bool] = False
    from_head: ClassVar[bool] = False
    wish: ClassVar[None] = None

    share: Annotated[float, Meta(gt=0, le=1, description="part of the queued tasks that is given")] = 0.5
    gift_max: Annotated[
        int, Meta(ge=1, le=1_000_000, description="tasks given at once at most; a receiver cannot pass copies on")
    ] = 16
    period_ms: Annotated[float, Meta(ge=0.001, le=1e6, description="ms to the next try after a gift")] = 1.0
    period_max_ms: Annotated[float, Meta(ge=0.001, le=1e6, description="ms between tries at most")] = 1000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.period_max_ms < self.period_ms:
            raise StrategyError(f"period-max-ms={self.period_max_ms:g} is less than period-ms={self.period_ms:g}")

    def start_poll_ns(self) -> int:
        return int(self.period_ms * NS_PER_MS)

    def start_neighbours(self, member_count: int) -> int:
        return root(member_count)

    def targets(self, view: View, rng: Rng) -> list[NodeId]:
        return draw(view, rng, root(len(view.members)))

    def pick(self, view: View, loads: list[tuple[NodeId, int]]) -> NodeId:
        own = view.dedicated_count + view.shared_count
        best, least = -1, own
        for node, load in loads:
            if load > own:
                return -1
            if load < least:
                best, least = node, load
        return best

    def amount(self, view: View, available: int) -> int:
        return min(part(available, self.share), self.gift_max)

    def after_success(self, view: View) -> tuple[int, int]:
        return self.start_poll_ns(), root(len(view.members))

    def after_failure(self, view: View) -> tuple[int, int]:
        poll_ns = min(max(2 * view.poll_ns, self.start_poll_ns()), self._longest_ns(view))
        return poll_ns, root(len(view.members))

    def _longest_ns(self, view: View) -> int:
        """The longest period. Nodes become idle when tasks end: if tasks take minutes, asking every second finds
        nothing."""
        return max(int(self.period_max_ms * NS_PER_MS), view.mean_run_ns // 20)

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons:
        return {
            "loads": dict(loads),
            "own_load": view.dedicated_count + view.shared_count,
            "poll_ns": view.poll_ns,
            "poll_after_failure_min_ns": self.start_poll_ns(),
            "poll_after_failure_max_ns": self._longest_ns(view),
            "choice": self.pick(view, loads),
        }
