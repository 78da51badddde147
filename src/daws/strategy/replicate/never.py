"""One run per task."""

from typing import ClassVar

from daws.model.task import TaskSpec
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View


class ReplicateNever(ParameterizedAnswer, frozen=True):
    """A task that is given away is moved; nothing runs twice unless a node dies.

    MATRIX and Constellation. Helps throughput: every result is used. Hurts when some nodes are much slower than
    others.
    """

    copies_max: ClassVar[int] = 0

    def copies(self, view: View, spec: TaskSpec) -> int:
        return 0

    def explain(self, view: View, spec: TaskSpec) -> Reasons:
        return {"copies_max": 0, "offered": view.copied.get(spec.id, 0), "choice": 0}
