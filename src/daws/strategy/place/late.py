"""Late binding as in Albatross: to the data if its node has room, else to the first node that pulls."""

from typing import Annotated, ClassVar

from msgspec import Meta

from daws.model.task import INLINE_BYTES, NodeId, Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import DEDICATED, SHARED, Reasons, Rng, View
from daws.strategy.place.able import may_run
from daws.strategy.place.held import best_holder, held_bytes


class PlaceLate(ParameterizedAnswer, frozen=True):
    """A task that reads data goes to the node that has most of it, unless that node is overloaded. All other tasks stay
    in the queue where they became ready, and are bound to a node only when one pulls them.

    Albatross (2016), as ADAGE (2021) describes it in section II: the balancer tries the best node by locality. If that
    node is overloaded, the task stays in the local queue, and the attempt is repeated when it is pulled from there.
    Here the second attempt is the puller itself, which takes it (with `relax=above` also from where it was sent). A
    node is overloaded if more than `overload` tasks per core wait or run there, by the last report of its load.

    Helps when data is large and spread evenly. Hurts when loads change faster than reports of them.
    """

    weighs_loads: ClassVar[bool] = True
    plain_is_neutral: ClassVar[bool] = True
    small_is_neutral: ClassVar[bool] = True

    overload: Annotated[
        float, Meta(ge=0, le=1e6, description="tasks per core that wait or run where nothing more is sent to")
    ] = 4.0

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        if not any(item.size_bytes > INLINE_BYTES for item in ready.inputs):
            return SHARED
        best = best_holder(view, held_bytes(view, ready))
        if best < 0:
            return SHARED
        if best == view.node:
            return DEDICATED
        return SHARED if self._is_overloaded(view, best) and may_run(view, view.node, ready.spec.needs) else best

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        held = held_bytes(view, ready)
        best = best_holder(view, held)
        return {
            "held_bytes": held,
            "best": best,
            "best_load": view.load_of(best) if best >= 0 else -1,
            "load_max": self._most(view, best),
            "choice": self.choose(view, ready, rng),
        }

    def _is_overloaded(self, view: View, node: NodeId) -> bool:
        return view.load_of(node) > self._most(view, node)

    def _most(self, view: View, node: NodeId) -> float:
        info = view.members.info(node)
        return self.overload * (info.cores if info is not None else 0)
