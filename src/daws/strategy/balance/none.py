"""No node moves work."""

from typing import ClassVar

from daws.model.task import NodeId
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, Rng, View


class BalanceNone(ParameterizedAnswer, frozen=True):
    """Tasks stay where `place` put them.

    Helps to see the effect of placement alone. Hurts whenever placement was wrong.
    """

    mode: ClassVar[str] = "none"
    asks_load: ClassVar[bool] = False
    follows_rumours: ClassVar[bool] = False
    from_head: ClassVar[bool] = False
    wish: ClassVar[None] = None

    def start_poll_ns(self) -> int:
        return 1_000_000_000

    def start_neighbours(self, member_count: int) -> int:
        return 0

    def targets(self, view: View, rng: Rng) -> list[NodeId]:
        return []

    def pick(self, view: View, loads: list[tuple[NodeId, int]]) -> NodeId:
        return -1

    def amount(self, view: View, available: int) -> int:
        return 0

    def after_success(self, view: View) -> tuple[int, int]:
        return view.poll_ns, 0

    def after_failure(self, view: View) -> tuple[int, int]:
        return view.poll_ns, 0

    def explain(self, view: View, loads: list[tuple[NodeId, int]]) -> Reasons:
        return {"choice": -1}
