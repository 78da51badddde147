"""Order by the ranks in tasks' contexts."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from daws.model.context import RANK_MAX, rank_of
from daws.model.errors import StrategyError
from daws.model.task import Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View
from daws.strategy.order.priority import STEP

OUT_OF_RANGE = 2.0**52
"""Added to the keys of tasks outside the range. Ranks beyond it are taken as this large."""


class OrderContextRank(ParameterizedAnswer, frozen=True):
    """The task with the biggest rank in its context first, or the smallest, or the smallest within a range.

    Constellation (2011) and its code: strategies biggest, smallest, range and any. The order serves local executors,
    and thieves as long as they have no wish of their own (`take` of `balance`). With `rank=range` tasks outside of
    `low` to `high` come last instead of never.

    Helps when ranks stand for problem sizes: big ones first keeps the end short. Hurts when ranks mean something else.
    """

    needs_ranks: ClassVar[bool] = False

    rank: Annotated[
        Literal["biggest", "smallest", "range", "any"], Meta(description="which rank goes first; any: as they come")
    ] = "biggest"
    low: Annotated[int, Meta(ge=-RANK_MAX, le=RANK_MAX, description="lowest rank for rank=range")] = 0
    high: Annotated[int, Meta(ge=-RANK_MAX, le=RANK_MAX, description="highest rank for rank=range")] = RANK_MAX

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.high < self.low:
            raise StrategyError(f"high={self.high} is less than low={self.low}")

    def key(self, view: View, ready: Ready) -> float:
        spec = ready.spec
        key = 0.0
        if spec.needs is not None and self.rank != "any":
            key = self._key(rank_of(spec.needs.context))
        elif self.rank == "range":
            key = self._key(0)
        return key - spec.priority * STEP if spec.priority else key

    def explain(self, view: View, ready: Ready) -> Reasons:
        spec = ready.spec
        return {
            "context_rank": 0 if spec.needs is None else rank_of(spec.needs.context),
            "priority": spec.priority,
            "choice": self.key(view, ready),
        }

    def _key(self, rank: int) -> float:
        near = max(-OUT_OF_RANGE, min(OUT_OF_RANGE, rank))
        if self.rank == "biggest":
            return -near
        if self.rank == "range" and not self.low <= rank <= self.high:
            return near + 4 * OUT_OF_RANGE
        return near
