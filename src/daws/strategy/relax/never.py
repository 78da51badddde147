"""Dedicated tasks stay dedicated."""

from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View


class RelaxNever(ParameterizedAnswer, frozen=True):
    """A task that is dedicated to a node is run by it, however long its queue gets.

    MATRIX: policies MDL and RLDS. Helps when moving the data always costs more than waiting. Hurts when one node makes
    the data of many tasks: they all queue up there.
    """

    def start_tt_ns(self) -> int:
        return 0

    def excess(self, view: View) -> int:
        return 0

    def after_sharing(self, view: View) -> int:
        return view.tt_ns

    def after_failed_steal(self, view: View) -> int:
        return view.tt_ns

    def explain(self, view: View) -> Reasons:
        return {"dedicated_count": view.dedicated_count, "choice": 0}
