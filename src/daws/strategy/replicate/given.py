"""Tasks that are given away run twice."""

from typing import Annotated

from msgspec import Meta, field

from daws.model.task import TaskSpec
from daws.strategy.answer import Answer
from daws.strategy.decisions import Reasons, View


class ReplicateGiven(Answer, frozen=True):
    """A task that is given away stays here too; whichever run ends first counts, the others are cancelled.

    ADAGE (2021), sections III-A and III-D: at most `copies` backups per task. The paper's validator, which asks about
    each copy before it runs, is replaced by the first commit, which wins and has the other runs stopped.

    Helps when nodes are slow or die. Hurts throughput: where both run to the end, one ran in vain.
    """

    copies_max: Annotated[int, Meta(ge=0, le=100, description="copies that may run beside the original")] = field(
        default=2, name="copies"
    )

    def copies(self, view: View, spec: TaskSpec) -> int:
        return self.copies_max  # the core compares it with how many were offered

    def explain(self, view: View, spec: TaskSpec) -> Reasons:
        return {"copies_max": self.copies_max, "offered": view.copied.get(spec.id, 0), "choice": self.copies_max}
