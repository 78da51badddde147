"""Tasks by a hash of their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.assign.capable import capable, spread
from daws.strategy.decisions import Newcomer, Plan, Reasons, Site
from daws.strategy.rng import hash_one, hash_u64

if TYPE_CHECKING:
    from daws.model.graph import Graph


class AssignHashed(ParameterizedAnswer, frozen=True):
    """Each task to a node drawn by a hash of its number and the seed.

    MATRIX (2015) names it as one way to submit evenly. Helps when the order of tasks has a pattern that round robin
    would fall in step with. Hurts by the unevenness of chance, which balancing has to mend.
    """

    def plan(self, graph: Graph, site: Site) -> Plan:
        import numpy as np

        return Plan(
            spread(
                graph,
                site.members,
                lambda tasks, able: able[(hash_u64(tasks, site.seed) % np.uint64(len(able))).astype(np.int64)],
            )
        )

    def home(self, newcomer: Newcomer, members: Members, seed: int) -> NodeId:
        able = members.capable(newcomer.needs)
        return able[hash_one(newcomer.number, seed) % len(able)]

    def explain(self, graph: Graph, site: Site, task: int) -> Reasons:
        import numpy as np

        found = capable(graph, site.members)
        return {
            "hash": int(hash_u64(np.array([task]), site.seed)[0]),
            "able_count": len(found.positions[found.class_of[task]]),
            "choice": int(self.plan(graph, site).homes[task]),
        }
