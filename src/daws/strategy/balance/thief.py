"""What thieves may wish for: which of the tasks that they could run, by the ranks in their contexts."""

from functools import cached_property
from typing import Annotated, Literal

from msgspec import Meta

from daws.model.context import RANK_MAX, Wish
from daws.model.errors import StrategyError
from daws.strategy.answer import Answer
from daws.strategy.decisions import Reasons


class Thief(Answer, frozen=True, dict=True, kw_only=True):
    """A base for answers by which idle nodes ask for work. The wish travels in their requests; the victim fulfils it.

    Constellation (2011) and its code: steal strategies biggest, smallest, range and any, set apart from the order in
    which executors take tasks themselves. By default there is no wish: the victim goes by its own order, which costs
    nothing; for a wish it searches its whole queue.
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
        """For `explain`."""
        return {"take": self.take, "take_low": self.take_low, "take_high": self.take_high}
