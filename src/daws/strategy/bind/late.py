"""Tasks go to whichever pilot is active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.model.pilots import PilotRequest
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Binding, Reasons

if TYPE_CHECKING:
    from daws.model.graph import Graph


class BindLate(ParameterizedAnswer, frozen=True):
    """No task is tied to a pilot: work begins with the first that is active; those that come later take a part of it.

    AIMES (2016), section IV-d. Helps when queue times differ: nothing waits for the slowest queue. Hurts when inputs
    lie near one resource and tasks run at another.
    """

    def bind(self, graph: Graph, pilots: tuple[PilotRequest, ...]) -> Binding:
        return Binding((0,) * len(pilots))

    def explain(self, graph: Graph, pilots: tuple[PilotRequest, ...], task: int) -> Reasons:
        return {"pilots": len(pilots), "choice": 0}
