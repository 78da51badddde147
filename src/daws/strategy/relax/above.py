"""Dedicated tasks become shared when they would wait too long, which makes FLDS flexible."""

from typing import Annotated, Literal

from msgspec import Meta

from daws.model.errors import StrategyError
from daws.model.task import GUESS_NS
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import Reasons, View

STALL_NS = 1_000_000_000


class RelaxAbove(ParameterizedAnswer, frozen=True):
    """Dedicated tasks are shared until the estimated run time of the queue is down to `tt`.

    MATRIX: policy FLDS. The estimate is tasks × mean run time here / cores, with a guess of 50 ms before the first task
    has finished here. `tt-rule` moves `tt` within `tt-min` and `tt-max`. `journal` (2015) doubles it after sharing and
    halves it when a steal fails, `bigdata` (2014) does the reverse, `fixed` leaves it. The papers start at 10 s, which
    is long beside tasks of 50 ms. The default is 0.1 s: on a fan-out tree 2 s gave an efficiency of 0.37, and 0.1 s one
    of 0.93. The default rule is `fixed`, because `journal` doubles `tt` whenever it helped, up to `tt-max`: 0.08
    instead of 0.86 on a small fan-out. (`matrix` uses `journal` with a `tt-max` of 0.1 s.)

    The estimate does not include the rest of the current runs. If no run has ended for longer than `tt`, and for a
    second at least, nothing is kept. (A task of 2 ms waited for 15 s at a node that had run short ones before, and so
    did all of its descendants.)

    Helps when one node makes the data of many tasks. Hurts, with a short `tt`, when moving the data takes longer than
    waiting for the node that has it.
    """

    tt: Annotated[float, Meta(ge=0, le=1e6, description="seconds of dedicated work that a node keeps to itself")] = 0.1
    tt_rule: Annotated[
        Literal["fixed", "journal", "bigdata"], Meta(description="how tt moves after sharing and after failed steals")
    ] = "fixed"
    tt_min: Annotated[float, Meta(gt=0, le=1e6, description="seconds; tt never falls below")] = 0.01
    tt_max: Annotated[float, Meta(gt=0, le=1e6, description="seconds; tt never rises above")] = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tt_max < self.tt_min:
            raise StrategyError(f"tt-max={self.tt_max:g} is less than tt-min={self.tt_min:g}")

    def start_tt_ns(self) -> int:
        return round(self.tt * 1e9)

    def excess(self, view: View) -> int:
        count = view.dedicated_count
        if not count or not view.relaxing:
            return 0
        if view.stalled_ns > view.tt_ns:
            return count
        kept = view.tt_ns * view.cores // (view.mean_run_ns or GUESS_NS)
        return count - kept if count > kept else 0

    def stall_ns(self, view: View) -> int:
        return max(STALL_NS, view.tt_ns + 1)

    def after_sharing(self, view: View) -> int:
        return self._moved(view, 2.0 if self.tt_rule == "journal" else 0.5)

    def after_failed_steal(self, view: View) -> int:
        return self._moved(view, 0.5 if self.tt_rule == "journal" else 2.0)

    def explain(self, view: View) -> Reasons:
        mean_ns = view.mean_run_ns or GUESS_NS
        return {
            "dedicated_count": view.dedicated_count,
            "mean_run_ns": mean_ns,
            "queue_ns": view.dedicated_count * mean_ns / view.cores,
            "stalled_ns": view.stalled_ns,
            "tt_ns": view.tt_ns,
            "relaxing": view.relaxing,
            "choice": self.excess(view),
        }

    def _moved(self, view: View, factor: float) -> int:
        if self.tt_rule == "fixed":
            return view.tt_ns
        return round(min(max(view.tt_ns * factor, self.tt_min * 1e9), self.tt_max * 1e9))
