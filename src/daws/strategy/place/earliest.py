"""Tasks go where they are believed to end first."""

from typing import Annotated, ClassVar

from msgspec import Meta

from daws.model.task import INLINE_BYTES, NodeId, Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import SHARED, Reasons, Rng, View
from daws.strategy.place.able import may_run


class PlaceEarliest(ParameterizedAnswer, frozen=True):
    """Compares when the task would end here, where its data is, and at the nodes heard of last; it goes to the best.

    The rule of HEFT and ADAGE, asked when a task is ready instead of before all runs. A node's queue is what was last
    heard of its load (unknown: as long as here), each task as long as the mean here, on all its cores; missing inputs
    come meanwhile, one after the other. Here wins unless another ends earlier by more than `gain` of the task's length:
    a push costs a message and a claim. What stays is shared; what is pushed is the receiver's own, so it goes with
    `relax=above`.

    Helps when data is large and some of its holders are busy. Hurts when news are old: many may push to one node.
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
        """By node that could run it, how long until the task has ended there; this node comes first."""
        needs = ready.spec.needs
        total, held = 0, {view.node: 0}
        for object_, size, _, places, _ in ready.inputs:
            if size > INLINE_BYTES:
                total += size
                for place in places:
                    held[place] = held.get(place, 0) + size
                if view.node not in places and view.has(object_):
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
