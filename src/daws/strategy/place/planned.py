"""Tasks go where the planner put them; tasks without a plan go by their data."""

from typing import ClassVar

from daws.model.task import INLINE_BYTES, Ready
from daws.strategy.decisions import DEDICATED, SHARED, Reasons, Rng, View
from daws.strategy.place.able import may_run
from daws.strategy.place.daws import PlaceDaws


class PlacePlanned(PlaceDaws, frozen=True):
    """A task that was planned with its whole graph goes to its home; all others go where `place=daws` puts them.

    There is one exception. A task goes by its data if a stolen task made its largest input here, and if fewer tasks
    wait here than there are cores. A chain that has moved then continues where it is, instead of going back and forth.
    The limit is needed: a thief of the root of a large tree would keep the whole tree. Without it a fan-out of 200,000
    tasks took 59 instead of 51 s on 100 nodes.

    This is ADAGE's decision maker (2021), with the rule of MATRIX (2015) for tasks without a plan: those of a live
    client, those without a rank, and those whose home is gone. The same rule dedicates a task to its home if its data
    takes long to move, until `relax` says that it would wait too long. The order is the same for dedicated and shared
    tasks, so a shared task never runs later because it is shared.

    Helps when there is a plan that knew lengths and sizes. Hurts little when it did not: waiting tasks can be stolen.
    """

    one_line: ClassVar[bool] = True

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        spec = ready.spec
        if not (spec.planned and spec.rank and may_run(view, spec.home, spec.needs)):
            return super().choose(view, ready, rng)
        if spec.home != view.node:
            return super().choose(view, ready, rng) if _is_astray(view, ready) else spec.home
        return SHARED if super().choose(view, ready, rng) == SHARED else DEDICATED

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        home = ready.spec.home
        reasons: Reasons = {"planned": ready.spec.planned and ready.spec.rank > 0, "home": home}
        reasons["home_can_run"] = may_run(view, home, ready.spec.needs)
        reasons["astray"] = _is_astray(view, ready)
        return super().explain(view, ready, rng) | reasons


def _is_astray(view: View, ready: Ready) -> bool:
    """Whether few tasks wait, and the largest input was made here by a task that was planned for another node."""
    largest, most = -1, INLINE_BYTES
    for one in ready.inputs:
        if one.size_bytes > most:
            largest, most = one.object, one.size_bytes
    return largest >= 0 and view.strayed(largest) and view.dedicated_count + view.shared_count < view.cores
