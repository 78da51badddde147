"""One task after the other around the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.assign.capable import capable, in_turn, next_in_turn, spread
from daws.strategy.decisions import Newcomer, Plan, Reasons, Site

if TYPE_CHECKING:
    from daws.model.graph import Graph


class AssignRoundRobin(ParameterizedAnswer, frozen=True):
    """The first task to the first node, the second to the second, and so on around the nodes that can run them.

    This is MATRIX's best case of submission. Helps bags of tasks: all nodes begin with an equal share. Hurts when
    neighbouring tasks read the same data.
    """

    def plan(self, graph: Graph, site: Site) -> Plan:
        return Plan(spread(graph, site.members, in_turn))

    def home(self, newcomer: Newcomer, members: Members, seed: int) -> NodeId:
        return next_in_turn(newcomer, members)

    def explain(self, graph: Graph, site: Site, task: int) -> Reasons:
        found = capable(graph, site.members)
        number = found.class_of[task]
        return {
            "turn": int((found.class_of[:task] == number).sum()),
            "able_count": len(found.positions[number]),
            "choice": int(self.plan(graph, site).homes[task]),
        }
