"""Runs that take much longer than others of their kind get a copy."""

from typing import Annotated

from msgspec import Meta, field

from daws.model.task import TaskSpec
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View

NS_PER_MS = 1_000_000


class ReplicateStragglers(ParameterizedAnswer, frozen=True):
    """A copy for a run that is overdue: longer than `slack` times the `quantile` of its kind's lengths, or of its
    estimate if that is less.

    An idle node that asks for work and finds none gets the copy. The run that ends first counts.

    Backup tasks as in MapReduce (Dean and Ghemawat, 2004), triggered by an observed quantile instead of the end of the
    job. Fewer than `seen` runs of a kind are too few to judge. Copies go only to idle nodes, so this needs a balance by
    which idle nodes ask.

    Helps when single runs hang or a node turns slow. Hurts little: copies run on idle executors. A node that has always
    been slow notices its slow runs only by estimates, since all its runs took as long.
    """

    copies_max: Annotated[int, Meta(ge=1, le=100, description="copies that may run beside the original")] = field(
        default=1, name="copies"
    )
    quantile: Annotated[float, Meta(gt=0, le=1, description="share of the runs of a kind that were shorter")] = 0.9
    slack: Annotated[float, Meta(ge=1, le=1000, description="times as long before a run is overdue")] = 1.5
    seen: Annotated[int, Meta(ge=1, le=64, description="runs of a kind that must have been seen")] = 8
    least_ms: Annotated[float, Meta(ge=0, le=1e9, description="ms that any run may take")] = 50.0

    def copies(self, view: View, spec: TaskSpec) -> int:
        return 0  # a task that is given away is moved

    def overdue_ns(self, view: View, spec: TaskSpec) -> int:
        """The time after which a run should have ended; 0 if unknown."""
        expected_ns = view.quantile_ns(spec, self.quantile, self.seen)
        if spec.estimate_ns:
            expected_ns = min(expected_ns or spec.estimate_ns, spec.estimate_ns)
        return max(int(self.slack * expected_ns), int(self.least_ms * NS_PER_MS)) if expected_ns else 0

    def explain(self, view: View, spec: TaskSpec) -> Reasons:
        return {
            "copies_max": self.copies_max,
            "offered": view.copied.get(spec.id, 0),
            "quantile_ns": view.quantile_ns(spec, self.quantile, self.seen),
            "estimate_ns": spec.estimate_ns,
            "overdue_ns": self.overdue_ns(view, spec),
            "choice": self.copies(view, spec),
        }
