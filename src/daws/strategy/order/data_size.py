"""Order by data: the task that reads most goes first."""

from typing import ClassVar

from daws.model.task import INLINE_BYTES, Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View
from daws.strategy.order.priority import STEP


class OrderDataSize(ParameterizedAnswer, frozen=True):
    """The task with most input bytes first, so that the tasks left for thieves are cheap to move.

    Objects that travel inside records cost nothing: tasks that read nothing else run in the order in which they came.

    MATRIX (2014, 2015): both ready queues are max heaps by data size. Helps when tasks are stolen from the tail. Hurts
    when a small task holds up a long chain.
    """

    needs_ranks: ClassVar[bool] = False
    plain_is_neutral: ClassVar[bool] = True
    small_is_neutral: ClassVar[bool] = True

    def key(self, view: View, ready: Ready) -> float:
        total = 0
        for item in ready.inputs:
            if item.size_bytes > INLINE_BYTES:
                total += item.size_bytes
        priority = ready.spec.priority
        return -total - priority * STEP if priority else -total

    def explain(self, view: View, ready: Ready) -> Reasons:
        return {
            "input_bytes": sum(item.size_bytes for item in ready.inputs if item.size_bytes > INLINE_BYTES),
            "priority": ready.spec.priority,
            "choice": self.key(view, ready),
        }
