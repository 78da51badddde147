"""Runs on pilots for studies: in parallel, each on a simulated day of its own."""

from collections.abc import Iterable
from contextlib import closing
from statistics import mean, stdev
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from daws.compare.jobs import run_each
from daws.sim.pilots import PilotReport, simulate_pilots
from daws.sim.resources import KNOWN, Queue
from daws.sim.simulate import Settings
from daws.sim.waits import Waits
from daws.strategy import parse_strategy
from daws.workloads import parse_workload

from .runs import RunsProgress
from .study import Asked

HOUR_S = 3600.0
PAPER = "AIMES (2016)"
FOUR = ("stampede", "gordon", "supermic", "comet")
FIVE = (*FOUR, "blue-waters")
BAG = "bot:tasks={tasks},length-ms=900000,spread=constant"
"""A bag of tasks of 15 minutes."""

PATIENT = "poll-min-ms=1000,poll-max-ms=60000"
"""The settings for Swift's many pilots: tasks take a quarter of an hour, so idle nodes need not ask others every
second.
"""
MANY_TASKS, SEEDS_MANY = 256, 3
"""A bag with more than this number of tasks takes longer to simulate, and gets this number of runs."""

AllWaits = dict[str, Waits]
"""The waits by the name of a resource."""

# Of the 24 runs of experiment 3 with up to 256 tasks: where all ended within two rounds of 900 s, the second pilot had
# waited TTC - 900 s; where they did not, the first had waited TTC - 1800 s and the second 900 s more at least. A
# lognormal distribution that makes this most likely has these figures. Of SuperMIC and Comet is known only that in
# each of 12 runs of experiment 4 one of the four pilots came more than 900 s after the first: a guess that fits.
# These waits include what AIMES needs to start a pilot.
_SHORT = Waits(median_s=245.0, sigma=1.0)
_LONGER = Waits(median_s=1500.0, sigma=0.8)
AS_AIMES_MET: AllWaits = dict.fromkeys(FOUR[:2], _SHORT) | dict.fromkeys(FIVE[2:], _LONGER)

# Swift's tasks are tied to both resources, so that TTC - 900 s is the longer of two waits, at least where one round is
# enough. Two lognormal distributions, equal for want of anything that tells them apart, make the 12 runs of experiment
# 1 with up to 256 tasks, and the 33 runs of experiment 2, most likely with these figures. Nothing longer was seen.
AS_SWIFT_MET: dict[str, AllWaits] = {
    "1": dict.fromkeys(FOUR[:2], Waits(median_s=2340.0, sigma=2.15, most_s=42_600.0)),
    "2": dict.fromkeys(FOUR[:2], Waits(median_s=24_300.0, sigma=0.8, most_s=103_500.0)),
}
AS_RECORDED: AllWaits = {name: queue.waits for name, queue in KNOWN.items()}
"""The waits of all jobs as XDMoD recorded them, fitted (`daws.sim.resources`)."""


class PilotJob(Struct, frozen=True):
    """One run. The seed decides how full the queues are."""

    strategy: str
    workload: str
    queues: tuple[Queue, ...]
    seed: int

    def __str__(self) -> str:
        return f"{self.workload} with {self.strategy} on pilots"


class Times(NamedTuple):
    """The times of several runs: means and deviations in seconds, and the size of the pilots."""

    ttc_s: float
    deviation_s: float
    tw_s: float
    held_h: float


def seeds_of(tasks: int, seeds: int, asked: Asked) -> int:
    """The number of runs with this number of tasks."""
    if asked.quick:
        return 1
    return SEEDS_MANY if tasks > MANY_TASKS else seeds


def queues_of(names: Iterable[str], waits: AllWaits) -> tuple[Queue, ...]:
    return tuple([replace(KNOWN[name], waits=waits[name]) for name in names])


def run_job(job: PilotJob) -> tuple[PilotJob, PilotReport]:
    graph = parse_workload(job.workload).build(1, 1, 0)
    return job, simulate_pilots(graph, job.queues, parse_strategy(job.strategy), Settings(seed=job.seed))[0]


def run_all(jobs: Iterable[PilotJob], asked: Asked) -> dict[PilotJob, PilotReport]:
    found: dict[PilotJob, PilotReport] = {}
    wanted = list(dict.fromkeys(jobs))
    progress = RunsProgress(len(wanted), asked.quiet)
    with progress, closing(run_each(run_job, wanted, asked.jobs)) as done:
        for job, report in done:
            found[job] = report
            progress.tick()
    return found


def times_of(reports: list[PilotReport]) -> Times:
    ttcs_s = [one.ttc_s for one in reports]
    return Times(
        mean(ttcs_s),
        stdev(ttcs_s) if len(ttcs_s) > 1 else 0.0,
        mean(one.tw_s for one in reports),
        mean(one.held_core_s for one in reports) / HOUR_S,
    )
