"""Tasks are tied to a pilot before any pilot runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.model.pilots import PilotRequest
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.bind.dealing import dealt
from daws.strategy.decisions import Binding, Reasons

if TYPE_CHECKING:
    from daws.model.graph import Graph


class BindEarly(ParameterizedAnswer, frozen=True):
    """Each pilot gets a part of the tasks, by its cores, when it is asked for. No other pilot runs them.

    AIMES's first strategies, with one pilot. Helps when data can be brought to a resource while its pilot still waits.
    Hurts with several pilots: the last to become active decides when all is done.
    """

    def bind(self, graph: Graph, pilots: tuple[PilotRequest, ...]) -> Binding:
        return Binding(tuple(range(len(pilots))), dealt(graph.task_count, [one.cores for one in pilots]))

    def explain(self, graph: Graph, pilots: tuple[PilotRequest, ...], task: int) -> Reasons:
        share_of = self.bind(graph, pilots).share_of
        assert share_of is not None
        return {"cores": [one.cores for one in pilots], "choice": int(share_of[task])}
