"""Many pilots of one size."""

from math import ceil
from typing import Annotated

from msgspec import Meta

from daws.model.pilots import PilotRequest, by_wait, request, usable
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import PilotView, Reasons


class AcquireManySmall(ParameterizedAnswer, frozen=True):
    """Up to `pilots-each` pilots of `pilot-cores` cores are queued or active on every resource, while there is work.

    This is Swift/K with Coasters, as AIMES (2016) used it in its experiments 1 and 2. A pilot lives for `rounds` of the
    longest task of each stage, and `spare-s`. Helps when queues prefer small and short jobs. Hurts when they do not:
    every round of tasks waits in the queue again, and the last pilot to become active decides.
    """

    pilots_each: Annotated[int, Meta(ge=1, le=1000, description="queued or active on each resource")] = 20
    pilot_cores: Annotated[int, Meta(ge=1, le=100_000, description="of each pilot")] = 16
    rounds: Annotated[int, Meta(ge=1, le=10_000, description="of the longest tasks that fit into a pilot")] = 1
    spare_s: Annotated[float, Meta(ge=0, le=1e6, description="seconds of walltime beside the tasks' own")] = 300.0

    def ask(self, view: PilotView) -> tuple[PilotRequest, ...]:
        demand = view.demand
        able = usable(view.resources, demand)
        # No more pilots than there are tasks for; but every resource gets one, as Swift sends some tasks to each of
        # them.
        wanted = min(self.pilots_each, ceil(demand.peak_cores / len(able) / self.pilot_cores))
        walltime_s = demand.path_s * self.rounds + self.spare_s
        found: list[PilotRequest] = []
        for number in by_wait(view.resources, able, self.pilot_cores):
            missing = wanted - view.queued[number] - view.active[number]
            asked = request(view.resources[number], number, self.pilot_cores, walltime_s, demand)
            found += [asked] * missing
        return tuple(found)

    def explain(self, view: PilotView) -> Reasons:
        asked = self.ask(view)
        return {
            "peak_cores": view.demand.peak_cores,
            "queued": sum(view.queued),
            "active": sum(view.active),
            "choice": [(view.resources[one.resource].name, one.cores, one.walltime_s) for one in asked],
        }
