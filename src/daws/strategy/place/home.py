"""Tasks go to the node that the planner chose."""

from copy import copy

from daws.model.task import NodeId, Ready
from daws.strategy.answer import Answer
from daws.strategy.decisions import DEDICATED, Reasons, Rng, View
from daws.strategy.place.able import draw_able, may_run


class PlaceHome(Answer, frozen=True):
    """A task goes to its home; if that is gone, to the node with most of its input bytes; else it stays here.

    ADAGE (2021), section III-C, the decision maker. What is kept is dedicated: only `give` moves it. (The paper's
    listing of the best node prefers the one with the least data; its text says what is meant, and that is done
    here.)

    Helps when the planner knew lengths and sizes well. Hurts when it did not, by as much as `give` cannot mend.
    """

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        spec = ready.spec
        node = view.node
        home = spec.home
        if home < 0 or not may_run(view, home, spec.needs):
            home = _best(view, ready)
        if home < 0:
            home = node if may_run(view, node, spec.needs) else draw_able(view, spec.needs, rng)
        return DEDICATED if home < 0 or home == node else home

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        return {
            "home": ready.spec.home,
            "home_can_run": may_run(view, ready.spec.home, ready.spec.needs),
            "held_bytes": _held(view, ready),
            "choice": self.choose(view, ready, copy(rng)),
        }


def _held(view: View, ready: Ready) -> dict[NodeId, int]:
    """How many of the task's input bytes each node has, among those that can run it."""
    held: dict[NodeId, int] = {}
    for object_, size, _, places, _ in ready.inputs:
        for place in places:
            held[place] = held.get(place, 0) + size
        if view.node not in places and view.has(object_):
            held[view.node] = held.get(view.node, 0) + size
    return {node: size for node, size in held.items() if size and may_run(view, node, ready.spec.needs)}


def _best(view: View, ready: Ready) -> NodeId:
    """The node with most input bytes, this one if it has as many as any other; -1 if nobody has any."""
    held = _held(view, ready)
    if not held:
        return -1
    best = max(held, key=held.__getitem__)
    return view.node if held.get(view.node) == held[best] else best
