"""Tasks go to random nodes."""

from copy import copy

from daws.model.task import Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import SHARED, Reasons, Rng, View
from daws.strategy.place.able import draw_able


class PlaceRandom(ParameterizedAnswer, frozen=True):
    """Every task is pushed to a random member that can run it; if that is this node, it stays and is shared.

    This is the baseline for comparisons. Helps nothing else. Hurts all tasks that read data.
    """

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        node = draw_able(view, ready.spec.needs, rng)
        return SHARED if node < 0 or node == view.node else node

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        return {
            "able_count": len(view.members.capable(ready.spec.needs)),
            "choice": self.choose(view, ready, copy(rng)),
        }
