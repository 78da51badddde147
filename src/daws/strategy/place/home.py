"""Tasks go to the node that the planner chose."""

from copy import copy

from daws.model.task import Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import DEDICATED, Reasons, Rng, View
from daws.strategy.place.able import draw_able, may_run
from daws.strategy.place.held import best_holder, held_bytes


class PlaceHome(ParameterizedAnswer, frozen=True):
    """A task goes to its home; if that is gone, to the node with most of its input bytes; else it stays here.

    ADAGE (2021), section III-C, the decision maker. A task that is kept is dedicated: only `give` moves it. The paper's
    listing for the best node prefers the one with the least data; its text says the opposite, which is done here.

    Helps when the planner knew lengths and sizes well. Hurts when it did not, by as much as `give` cannot mend.
    """

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        spec = ready.spec
        node = view.node
        home = spec.home
        if home < 0 or not may_run(view, home, spec.needs):
            home = best_holder(view, held_bytes(view, ready))
        if home < 0:
            home = node if may_run(view, node, spec.needs) else draw_able(view, spec.needs, rng)
        return DEDICATED if home < 0 or home == node else home

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        return {
            "home": ready.spec.home,
            "home_can_run": may_run(view, ready.spec.home, ready.spec.needs),
            "held_bytes": held_bytes(view, ready),
            "choice": self.choose(view, ready, copy(rng)),
        }
