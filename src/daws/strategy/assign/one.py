"""All tasks to one node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from daws.model.cluster import Members
from daws.model.errors import StrategyError
from daws.model.task import NodeId
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.assign.capable import spread
from daws.strategy.decisions import Newcomer, Plan, Reasons, Site

if TYPE_CHECKING:
    from daws.model.columns import Int64s
    from daws.model.graph import Graph


class AssignOne(ParameterizedAnswer, frozen=True):
    """Every task goes to one node. If that node cannot run it, the task goes to the first node that can.

    This is MATRIX's worst case of submission, and the rule of master–worker. Helps to see how well work spreads by
    itself. Hurts at the start: all other nodes begin with nothing.
    """

    node: Annotated[int, Meta(ge=0, description="position of the node among the members, from 0")] = 0

    def plan(self, graph: Graph, site: Site) -> Plan:
        if self.node >= len(site.members):
            raise StrategyError(f"node={self.node}: expected less than the number of nodes, {len(site.members)}")
        return Plan(spread(graph, site.members, self._choose))

    def home(self, newcomer: Newcomer, members: Members, seed: int) -> NodeId:
        if self.node >= len(members):
            raise StrategyError(f"node={self.node}: expected less than the number of nodes, {len(members)}")
        able = members.capable(newcomer.needs)
        return members.nodes[self.node] if members.nodes[self.node] in able else able[0]

    def explain(self, graph: Graph, site: Site, task: int) -> Reasons:
        return {"node": self.node, "choice": int(self.plan(graph, site).homes[task])}

    def _choose(self, tasks: Int64s, able: Int64s) -> Int64s:
        import numpy as np

        return np.full(len(tasks), self.node if self.node in able else able[0], np.int64)
