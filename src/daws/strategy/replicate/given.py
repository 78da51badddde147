"""Tasks that are given away run twice."""

from typing import Annotated

from msgspec import Meta, field

from daws.model.task import TaskSpec
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View

NS_PER_S = 1_000_000_000


class ReplicateGiven(ParameterizedAnswer, frozen=True):
    """A task that is given away stays here too. The run that ends first counts; the others are cancelled.

    ADAGE (2021), sections III-A and III-D: at most `copies` backups per task. The first commit wins, and its node tells
    the others to stop. This message can get lost. The validator therefore asks the store every `validate-s` seconds
    (section III-E, with the paper's interval) which of the copied tasks have ended, and drops their copies.

    Helps when nodes are slow or die. Hurts throughput: if both run to the end, the result of one is not used.
    """

    copies_max: Annotated[int, Meta(ge=0, le=100, description="copies that may run beside the original")] = field(
        default=2, name="copies"
    )

    validate_s: Annotated[
        float, Meta(ge=0, le=1e6, description="seconds between looks for copies whose tasks have ended; 0: none")
    ] = 62.5

    @property
    def validate_ns(self) -> int:
        return int(self.validate_s * NS_PER_S)

    def copies(self, view: View, spec: TaskSpec) -> int:
        return self.copies_max  # the core compares it with how many were offered

    def explain(self, view: View, spec: TaskSpec) -> Reasons:
        return {"copies_max": self.copies_max, "offered": view.copied.get(spec.id, 0), "choice": self.copies_max}
