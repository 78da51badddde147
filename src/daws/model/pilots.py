"""Pilots as a strategy sees them: resources, the demand of a workload, and requests.

A pilot is a batch job that starts nodes. It waits in the queue of a resource, is active for its walltime at most, and
its nodes leave with it.
"""

from math import ceil, inf

from msgspec import Struct

from daws.model.errors import UsageError

WALLTIME_S_MIN = 60.0


class Resource(Struct, frozen=True):
    """A machine with a batch queue.

    `waits` are past waits, smallest jobs first: (cores of a job at most, mean seconds in the queue). Jobs larger than
    all of them wait as long as the last.
    """

    name: str
    cores: int  # of each node
    nodes: int
    walltime_s: float = inf  # no pilot may be longer
    waits: tuple[tuple[int, float], ...] = ()

    def wait_s(self, cores: int) -> float:
        """The time that jobs of this size have waited, in seconds; 0 if no past wait is known."""
        for most, seconds in self.waits:
            if cores <= most:
                return seconds
        return self.waits[-1][1] if self.waits else 0.0


class Stage(Struct, frozen=True):
    """Tasks that may run together: the cores they need in all, and the longest of them."""

    cores: int
    longest_s: float


class Demand(Struct, frozen=True):
    """The rest of a workload: its stages in order, and the cores of its widest task."""

    stages: tuple[Stage, ...]
    widest: int = 1

    @property
    def peak_cores(self) -> int:
        """The number of cores that can be busy at once."""
        return max((stage.cores for stage in self.stages), default=0)

    @property
    def longest_s(self) -> float:
        return max((stage.longest_s for stage in self.stages), default=0.0)

    @property
    def path_s(self) -> float:
        """The shortest possible run time with unlimited cores, if each stage waits for the one before."""
        return sum(stage.longest_s for stage in self.stages)

    def run_s(self, cores: int) -> float:
        """The longest possible run time with this many cores, if each stage waits for the one before."""
        return sum(ceil(stage.cores / cores) * stage.longest_s for stage in self.stages)


class PilotRequest(Struct, frozen=True):
    """A request for one pilot: the position of its resource among those offered, its cores, and its walltime.

    The pilot starts no new tasks in its last `drain_s` seconds. Tasks that still run at its end run again elsewhere.
    """

    resource: int
    cores: int
    walltime_s: float
    drain_s: float = 0.0


def usable(resources: tuple[Resource, ...], demand: Demand) -> list[int]:
    """The positions of the resources that can run every task; UsageError if there are none."""
    found = [
        number
        for number, resource in enumerate(resources)
        if resource.cores >= demand.widest and resource.walltime_s > demand.longest_s
    ]
    if not found:
        raise UsageError(
            f"no resource can run every task: the widest needs {demand.widest} core(s) of one node, "
            f"the longest {demand.longest_s:g} s of walltime"
        )
    return found


def by_wait(resources: tuple[Resource, ...], positions: list[int], cores: int) -> list[int]:
    """The positions sorted by how long jobs of this size waited there, shortest first."""
    return sorted(positions, key=lambda number: resources[number].wait_s(cores))


def request(resource: Resource, position: int, cores: int, walltime_s: float, demand: Demand) -> PilotRequest:
    """A request within the limits of the resource. The pilot drains once the longest task would not end in time."""
    walltime_s = min(max(walltime_s, WALLTIME_S_MIN), resource.walltime_s)
    cores = min(max(cores, demand.widest), resource.cores * resource.nodes)
    return PilotRequest(position, cores, walltime_s, min(demand.longest_s, walltime_s))
