"""The common part of thieves: wishes, and stealing without asking for loads first."""

from functools import cached_property
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from daws.model.context import RANK_MAX, Wish
from daws.model.errors import StrategyError
from daws.model.task import NodeId
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.balance.neighbours import NS_PER_MS
from daws.strategy.decisions import Reasons, View


class Thief(ParameterizedAnswer, frozen=True, dict=True, kw_only=True):
    """A base for answers by which idle nodes ask for work. The wish travels in their requests; the victim fulfils it.

    Constellation (2011) and its code have the steal strategies biggest, smallest, range and any, apart from the order
    in which executors take tasks themselves. A thief has no wish by default: the victim uses its own order, which costs
    nothing. A wish makes it search its whole queue.
    """

    take: Annotated[
        Literal["order", "biggest", "smallest", "any"],
        Meta(description="which rank to ask for; order: as the victim would run them; any: the oldest"),
    ] = "order"
    take_low: Annotated[int, Meta(ge=-RANK_MAX, le=RANK_MAX, description="lowest rank to ask for")] = -RANK_MAX
    take_high: Annotated[int, Meta(ge=-RANK_MAX, le=RANK_MAX, description="highest rank to ask for")] = RANK_MAX

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.take_high < self.take_low:
            raise StrategyError(f"take-high={self.take_high} is less than take-low={self.take_low}")

    @cached_property
    def wish(self) -> Wish | None:
        wish = Wish(self.take, self.take_low, self.take_high)
        return None if wish == Wish() else wish

    def wished(self) -> Reasons:
        """The wish, for `explain`."""
        return {"take": self.take, "take_low": self.take_low, "take_high": self.take_high}


class PlainThief(Thief, frozen=True, dict=True):
    """A base for thieves that ask one node at a time, without asking for its load first, about every `delay-ms`.

    Constellation (2011), section 3.3; size and delay from its code. Subclasses choose the node to ask.
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

    def pick(self, view: View, loads: list[tuple[NodeId, int]]) -> NodeId:
        return next((node for node, load in loads if load > 0), -1)

    def amount(self, view: View, available: int) -> int:
        return min(available, self.count)

    def after_success(self, view: View) -> tuple[int, int]:
        return self.start_poll_ns(), 1

    def after_failure(self, view: View) -> tuple[int, int]:
        return self.next_poll_ns(view), 1

    def next_poll_ns(self, view: View) -> int:
        """The time to the next request. A node that has been idle for long asks more rarely than in the original.

        It loses at most a hundredth of that time again, and tasks that run for hours do not cause millions of requests.
        """
        return max(self.start_poll_ns(), (view.now_ns - view.idle_since_ns) // 100)

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons:
        reasons: Reasons = {"loads": dict(loads), "poll_ns": self.next_poll_ns(view), **self.wished()}
        return reasons | {"choice": self.pick(view, loads)}
