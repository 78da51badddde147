"""Tasks go where they are expected to end first."""

from typing import Annotated, ClassVar

from msgspec import Meta

from daws.model.task import INLINE_BYTES, NodeId, Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import SHARED, Reasons, Rng, View
from daws.strategy.place.able import may_run


class PlaceEarliest(ParameterizedAnswer, frozen=True):
    """The task goes where it would end first: here, at the nodes that have its data, or at nodes that reported last.

    This is the rule of HEFT and ADAGE, applied when a task is ready instead of before the run. A node's queue is the
    load that was last reported (if unknown: as long as here). Each task in it counts with the mean length here, on all
    the node's cores; missing inputs arrive meanwhile, one after the other. The task stays here unless another node ends
    it earlier by more than `gain` of its length: a push costs a message and a claim. A task that stays is shared; a
    pushed task is dedicated to its receiver, so use this with `relax=above`.

    Helps when data is large and some of its holders are busy. Hurts when loads are outdated: many nodes may push to
    one.
    """

    weighs_loads: ClassVar[bool] = True

    heard: Annotated[int, Meta(ge=0, le=64, description="nodes compared beside those that have the data")] = 4
    gain: Annotated[float, Meta(ge=0, le=1000, description="of the run time, that moving a task must save")] = 0.1

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        ends = self._ends_ns(view, ready)
        here_ns = ends.get(view.node)
        best = min(ends, key=ends.__getitem__, default=view.node)
        if best == view.node or here_ns is None:
            return SHARED if best == view.node else best
        return best if ends[best] + self.gain * view.estimate_ns(ready.spec) < here_ns else SHARED

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        return {
            "ends_ns": self._ends_ns(view, ready),
            "estimate_ns": view.estimate_ns(ready.spec),
            "choice": self.choose(view, ready, rng),
        }

    def _ends_ns(self, view: View, ready: Ready) -> dict[NodeId, float]:
        """The time until the task would have ended, for each node that could run it; this node comes first."""
        needs = ready.spec.needs
        total, held = 0, {view.node: 0}
        for one in ready.inputs:
            size = one.size_bytes
            if size > INLINE_BYTES:
                total += size
                for place in one.places:
                    held[place] = held.get(place, 0) + size
                if view.node not in one.places and view.has(one.object):
                    held[view.node] += size
        for node in view.heard_of(self.heard):
            held.setdefault(node, 0)
        own_load = view.load_of(view.node)
        length_ns = view.estimate_ns(ready.spec)
        mean_ns = view.mean_run_ns or length_ns
        here = view.members.info(view.node)
        pace = here.speed if here is not None else 1.0
        ends: dict[NodeId, float] = {}
        for node, size in held.items():
            info = view.members.info(node)
            if info is None or not may_run(view, node, needs):
                continue
            load = view.load_of(node)
            ahead = max(0, (own_load if load < 0 else load) + 1 - info.cores)
            faster = info.speed / pace
            wait_ns = ahead * mean_ns / info.cores / faster
            ends[node] = max(wait_ns, (total - size) * 1e9 / view.net_bytes_per_s) + length_ns / faster
        return ends
