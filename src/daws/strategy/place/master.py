"""All ready tasks are collected at one node."""

from copy import copy

from daws.model.task import Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import SHARED, Reasons, Rng, View
from daws.strategy.place.able import draw_able, may_run


class PlaceMaster(ParameterizedAnswer, frozen=True):
    """Every task goes to the first member, the master, which shares its tasks.

    Constellation (2011), section 3.3: "designate a single executor as master and store all unprocessed activities
    there". Tasks that the master cannot run itself stay here, or go to a random node that can run them. A task that
    arrives at the master is dedicated to it, as all pushed tasks are. Use this with `relax=above,tt=0`, which shares it
    at once.

    Helps when tasks are long and nodes are few, for its simplicity. Hurts at scale: one node sees every task.
    """

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        nodes = view.members.nodes
        if not nodes or nodes[0] == view.node:
            return SHARED
        needs = ready.spec.needs
        if may_run(view, nodes[0], needs):
            return nodes[0]
        if may_run(view, view.node, needs):
            return SHARED
        other = draw_able(view, needs, rng)
        return SHARED if other < 0 else other

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        nodes = view.members.nodes
        return {
            "master": nodes[0] if nodes else -1,
            "master_can_run": bool(nodes) and may_run(view, nodes[0], ready.spec.needs),
            "choice": self.choose(view, ready, copy(rng)),
        }
