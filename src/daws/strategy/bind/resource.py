"""Tasks are tied to a resource before any pilot runs, and to one of its pilots when that is active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.model.pilots import PilotRequest
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.bind.dealing import dealt
from daws.strategy.decisions import Binding, Reasons

if TYPE_CHECKING:
    from daws.model.graph import Graph


class BindResource(ParameterizedAnswer, frozen=True):
    """Each resource gets a part of the tasks, by the cores asked for there; its pilots share them among each other.

    Swift/K, as AIMES (2016) found it: some tasks are always bound to each resource. Helps as `early` does. Hurts when
    one queue is much slower than the others.
    """

    def bind(self, graph: Graph, pilots: tuple[PilotRequest, ...]) -> Binding:
        cores = _cores_by_resource(pilots)
        number_of = {resource: number for number, resource in enumerate(cores)}
        shares = tuple([number_of[one.resource] for one in pilots])
        return Binding(shares, dealt(graph.task_count, list(cores.values())))

    def explain(self, graph: Graph, pilots: tuple[PilotRequest, ...], task: int) -> Reasons:
        share_of = self.bind(graph, pilots).share_of
        assert share_of is not None
        return {"cores": list(_cores_by_resource(pilots).values()), "choice": int(share_of[task])}


def _cores_by_resource(pilots: tuple[PilotRequest, ...]) -> dict[int, int]:
    cores: dict[int, int] = {}
    for one in pilots:
        cores[one.resource] = cores.get(one.resource, 0) + one.cores
    return cores
