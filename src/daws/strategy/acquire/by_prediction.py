"""The number of resources that promises the earliest end."""

from math import ceil
from typing import Annotated

from msgspec import Meta

from daws.model.pilots import PilotRequest, Resource, by_wait, request, usable
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import PilotView, Reasons


class AcquireByPrediction(ParameterizedAnswer, frozen=True):
    """One pilot on each of the best one, two, three, … up to `pilots-max` resources: the choice with the earliest end
    wins.

    The prediction assumes that each pilot waits as long as such jobs did before. These are the execution strategies of
    AIMES (2016) with the numbers that its bundles collect and its experiments leave unused. Helps when past waits tell
    resources, or sizes of jobs, apart. Hurts when waits are unlike those before: then asking everywhere
    (`per-resource`) is safer.
    """

    pilots_max: Annotated[int, Meta(ge=1, le=1000, description="resources asked at most, one pilot on each")] = 4
    spare_s: Annotated[float, Meta(ge=0, le=1e6, description="seconds of walltime beside the tasks' own")] = 300.0

    def ask(self, view: PilotView) -> tuple[PilotRequest, ...]:
        if sum(view.queued) or sum(view.active):
            return ()
        return min(self._candidates(view), key=lambda pilots: self._end_s(view, pilots))

    def explain(self, view: PilotView) -> Reasons:
        return {
            "peak_cores": view.demand.peak_cores,
            "queued": sum(view.queued),
            "active": sum(view.active),
            "end_s": {len(pilots): self._end_s(view, pilots) for pilots in self._candidates(view)},
            "choice": [(view.resources[one.resource].name, one.cores, one.walltime_s) for one in self.ask(view)],
        }

    def _candidates(self, view: PilotView) -> list[tuple[PilotRequest, ...]]:
        """The requests with one pilot, with two, and so on. Fewer pilots come first, so that they win if they are as
        good."""
        demand, resources = view.demand, view.resources
        able = usable(resources, demand)
        found = []
        for count in range(1, min(self.pilots_max, len(able)) + 1):
            cores = max(demand.widest, ceil(demand.peak_cores / count))
            best = by_wait(resources, able, cores)[:count]
            found.append(tuple([self._request(view, resources[number], number, cores) for number in best]))
        return found

    def _request(self, view: PilotView, resource: Resource, number: int, cores: int) -> PilotRequest:
        granted = min(cores, resource.cores * resource.nodes)
        return request(resource, number, granted, view.demand.run_s(granted) + self.spare_s, view.demand)

    def _end_s(self, view: PilotView, pilots: tuple[PilotRequest, ...]) -> float:
        """The time at which the work is done, if pilots start in the order of their waits and share it evenly."""
        waits = sorted((view.resources[one.resource].wait_s(one.cores), one.cores) for one in pilots)
        ends, cores = [], 0
        for wait_s, more in waits:
            cores += more
            ends.append(wait_s + view.demand.run_s(cores))
        return min(ends)  # some may come too late to be of use
