"""One pilot on each of a few resources."""

from math import ceil
from typing import Annotated

from msgspec import Meta

from daws.model.pilots import PilotRequest, by_wait, request, usable
from daws.strategy.answer import ParameterizedAnswer
from daws.strategy.decisions import PilotView, Reasons


class AcquirePerResource(ParameterizedAnswer, frozen=True):
    """One pilot on each of the `pilots` resources with the shortest known waits, and new ones only when none is left.

    AIMES (2016), section VI: the pilots share the cores that could be busy at once (`concurrency` of them). Each is
    long enough to run everything alone, so the first that becomes active need not wait for the others. Helps when queue
    times vary: with more resources, the first pilot is active sooner. Hurts when all are active soon: each was asked
    for longer than it is needed, and long jobs wait longer.
    """

    pilots: Annotated[int, Meta(ge=1, le=1000, description="resources asked, one pilot on each")] = 2
    concurrency: Annotated[float, Meta(gt=0, le=1, description="share of the cores that could be busy at once")] = 1.0
    spare_s: Annotated[float, Meta(ge=0, le=1e6, description="seconds of walltime beside the tasks' own")] = 300.0

    def ask(self, view: PilotView) -> tuple[PilotRequest, ...]:
        if sum(view.queued) or sum(view.active):
            return ()
        demand = view.demand
        able = usable(view.resources, demand)
        count = min(self.pilots, len(able))
        cores = ceil(demand.peak_cores * self.concurrency / count)
        found = []
        for number in by_wait(view.resources, able, cores)[:count]:
            resource = view.resources[number]
            granted = min(max(cores, demand.widest), resource.cores * resource.nodes)
            walltime_s = demand.run_s(granted) + self.spare_s
            found.append(request(resource, number, granted, walltime_s, demand))
        return tuple(found)

    def explain(self, view: PilotView) -> Reasons:
        asked = self.ask(view)
        cores = ceil(view.demand.peak_cores * self.concurrency / min(self.pilots, len(view.resources)))
        return {
            "peak_cores": view.demand.peak_cores,
            "queued": sum(view.queued),
            "active": sum(view.active),
            "wait_s": {one.name: one.wait_s(cores) for one in view.resources},
            "choice": [(view.resources[one.resource].name, one.cores, one.walltime_s) for one in asked],
        }
