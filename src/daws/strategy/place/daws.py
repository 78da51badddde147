"""Data-aware placement: MATRIX's Algorithm 1 with its threshold, in the forms of both papers."""

from math import inf
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from daws.model.errors import StrategyError
from daws.model.task import INLINE_BYTES, Input, Needs, Ready
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import DEDICATED, SHARED, Reasons, Rng, View
from daws.strategy.place.able import may_run

T = 0.05
RATE_GBPS = 5.0


class PlaceDaws(ParameterizedAnswer, frozen=True):
    """Tasks whose data is quick to move are shared; the others are kept where their largest input is.

    MATRIX, Algorithm 1 (journal 2015): a task is shared if moving all its inputs takes at most `t` times its estimated
    run time, or else if moving the largest one does. Otherwise it is dedicated to a node that has the largest. `t=inf`
    is MLB. `t=0` is MDL: every task that reads data stays with it. `form=rate` is the older form (BigData 2014): bytes
    per second of estimated run time against `rate-gbps`, for any network; only 0 and inf count as values of `t`
    then.

    Both papers have `t=0.5`, with which tasks of 50 ms may move 12 MB at 4 Gbit/s: on most workloads that is MLB. With
    0.05 FLDS beats MLB on all-pairs. RLDS, which cannot relax, is better off with 0.5 except on fan-in
    (`docs/strategies.md` has the numbers).

    The paper leaves two cases open. Objects that travel inside records cost nothing here (except at `t=0`). A task is
    shared if no member has its data, or only members that may not run it.

    Helps when tasks read much and run briefly. Hurts when one node makes the data of many tasks (then let `relax` share
    them again) and when estimates are far off.
    """

    plain_is_neutral: ClassVar[bool] = True
    small_is_neutral: ClassVar[bool] = True

    t: Annotated[float, Meta(ge=0, description="seconds of transfer tolerated per second of run time; 0 to inf")] = T
    form: Annotated[
        Literal["ratio", "rate"], Meta(description="compare transfer to run time (2015) or bytes per second (2014)")
    ] = "ratio"
    rate_gbps: Annotated[float, Meta(gt=0, description="Gbit read per second of run time, for form=rate")] = RATE_GBPS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form == "ratio" and self.rate_gbps != RATE_GBPS:
            raise StrategyError(f"rate-gbps={self.rate_gbps:g} counts only with form=rate; with form=ratio set t")
        if self.form == "rate" and self.t not in (0, T, inf):
            other = "(or as 0 or inf); with form=rate set rate-gbps"
            raise StrategyError(f"t={self.t:g} counts only with form=ratio {other}")

    def choose(self, view: View, ready: Ready, rng: Rng) -> int:
        inputs = ready.inputs
        threshold = view.threshold
        if not inputs or threshold == inf:
            return SHARED
        if len(inputs) == 1:  # most tasks of most graphs
            largest = inputs[0]
            size = largest.size_bytes
            if (size <= INLINE_BYTES and threshold) or size <= self._limit_bytes(view, ready, threshold):
                return SHARED
            if ready.spec.needs is None and view.node in largest.places:
                return DEDICATED
            return _where(view, largest, ready.spec.needs)
        limit = self._limit_bytes(view, ready, threshold)
        free = INLINE_BYTES if threshold else 0
        total = 0
        largest_bytes = -1
        largest = inputs[0]
        for item in inputs:
            size = item.size_bytes
            if size > free:
                total += size
                if size > largest_bytes:
                    largest_bytes = size
                    largest = item
        if total <= limit or largest_bytes <= limit:
            return SHARED
        return _where(view, largest, ready.spec.needs)

    def explain(self, view: View, ready: Ready, rng: Rng) -> Reasons:
        free = INLINE_BYTES if view.threshold else 0
        sizes = [item.size_bytes if item.size_bytes > free else 0 for item in ready.inputs]
        largest = max(range(len(sizes)), key=sizes.__getitem__, default=-1)
        return {
            "total_bytes": sum(sizes),
            "largest_bytes": max(sizes, default=0),
            "largest_object": ready.inputs[largest].object if sizes else -1,
            "largest_places": ready.inputs[largest].places if sizes else (),
            "limit_bytes": self._limit_bytes(view, ready, view.threshold),
            "threshold": view.threshold,
            "estimate_ns": view.estimate_ns(ready.spec),
            "choice": self.choose(view, ready, rng),
        }

    def _limit_bytes(self, view: View, ready: Ready, threshold: float) -> float:
        if self.form == "ratio":
            return threshold * view.net_bytes_per_s * view.estimate_ns(ready.spec) * 1e-9
        if not threshold or threshold == inf:  # adapt sets these values to mean MDL and MLB, in both forms
            return threshold
        return self.rate_gbps * 0.125e9 * view.estimate_ns(ready.spec) * 1e-9


def _where(view: View, item: Input, needs: Needs | None) -> int:
    """This node if it has the object, else the first of its places that is alive, among nodes that can run the task."""
    node, places = view.node, item.places
    here = node in places or view.has(item.object) or (not places and item.size_bytes <= INLINE_BYTES)
    if here and may_run(view, node, needs):
        return DEDICATED
    for place in places:
        if place != node and may_run(view, place, needs):
            return place
    return SHARED
