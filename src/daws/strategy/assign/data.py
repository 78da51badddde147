"""Tasks where their data is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.model.cluster import Members
from daws.model.task import NodeId
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.assign.capable import capable, in_turn, spread, where_most_is
from daws.strategy.decisions import Newcomer, Plan, Reasons, Site

if TYPE_CHECKING:
    from daws.model.columns import Int64s
    from daws.model.graph import Graph


class AssignData(ParameterizedAnswer, frozen=True):
    """Each task to the node that has most bytes of its external inputs; round robin for tasks that read none.

    Only data from outside has a place when a graph is submitted. Tasks that read only outputs of other tasks go around
    the nodes; `place` brings them to their data when they are ready. MATRIX's clients that submit to chosen schedulers
    are similar.

    Helps when the data is spread evenly. Hurts when it is all on one node: so are the tasks.
    """

    def plan(self, graph: Graph, site: Site) -> Plan:
        import numpy as np

        homes = spread(graph, site.members, in_turn)
        tasks, places, sizes = _held(graph, site)
        # By task, then by bytes falling, then by position: the first of each task is its home.
        order = np.lexsort((places, -sizes, tasks))
        tasks, places = tasks[order], places[order]
        first = np.ones(len(tasks), np.bool_)
        np.not_equal(tasks[1:], tasks[:-1], out=first[1:])
        homes[tasks[first]] = places[first]
        return Plan(homes)

    def home(self, newcomer: Newcomer, members: Members, seed: int) -> NodeId:
        return where_most_is(newcomer, members)

    def explain(self, graph: Graph, site: Site, task: int) -> Reasons:
        tasks, places, sizes = _held(graph, site)
        own = tasks == task
        return {
            "held_bytes": dict(zip(places[own].tolist(), sizes[own].tolist(), strict=True)),
            "choice": int(self.plan(graph, site).homes[task]),
        }


def _held(graph: Graph, site: Site) -> tuple[Int64s, Int64s, Int64s]:
    """Rows of (task, position of a node that can run it, bytes of its inputs that are there)."""
    import numpy as np

    outside = np.flatnonzero(graph.inputs >= graph.external_start)
    objects = graph.inputs[outside]
    tasks = np.searchsorted(graph.input_start, outside, side="right") - 1
    places = np.asarray(site.places, np.int64)[objects - graph.external_start]
    found = capable(graph, site.members)
    able = np.zeros((len(found.positions), len(site.members)), np.bool_)
    for number, positions in enumerate(found.positions):
        able[number, positions] = True
    keep = (places >= 0) & (graph.object_bytes[objects] > 0)
    keep[keep] = able[found.class_of[tasks[keep]], places[keep]]
    pairs, row_of = np.unique(tasks[keep] * len(site.members) + places[keep], return_inverse=True)
    sizes = np.zeros(len(pairs), np.int64)
    np.add.at(sizes, row_of, graph.object_bytes[objects[keep]])
    return pairs // len(site.members), pairs % len(site.members), sizes
