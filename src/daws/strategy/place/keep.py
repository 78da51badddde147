"""Tasks stay where they became ready, and any node may steal them."""

from typing import ClassVar

from daws.model.task import Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import SHARED, Reasons, Rng, View


class PlaceKeep(ParameterizedAnswer, frozen=True):
    """Every task is shared where it became ready, even if its inputs are elsewhere.

    Constellation (2011): an activity stays in its executor's queue until another executor steals it. Helps when tasks
    read little. Hurts when thieves have to fetch much.
    """

    plain_is_neutral: ClassVar[bool] = True
    small_is_neutral: ClassVar[bool] = True

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        return SHARED

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        return {"choice": SHARED}
