"""Simulations for studies: in parallel, with progress, and each only once, even if several studies ask for it."""

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import msgspec
from msgspec import Struct

from daws.bounds import bound, recursion
from daws.compare.jobs import run_each
from daws.runs.progress import BAR_WIDTH, Progress, clock
from daws.sim.cluster import cluster_of
from daws.sim.plot import Panel, panel_of
from daws.sim.profiles import profile
from daws.sim.simulate import SCATTERED, Result, Settings, simulate
from daws.strategy import parse_strategy
from daws.workloads import parse_workload

from .study import Asked


class Job(Struct, frozen=True):
    """One simulation. `costs` are changes of the profile, `settings` are the settings that differ from the defaults."""

    workload: str
    strategy: str
    nodes: int
    cores: int = 2
    seed: int = 0
    profile: str = "measured"
    costs: tuple[tuple[str, float], ...] = ()
    settings: tuple[tuple[str, Any], ...] = ()
    has_panel: bool = False

    def __str__(self) -> str:
        return f"{self.workload} with {self.strategy} on {self.nodes} nodes"

    @property
    def core_count(self) -> int:
        return self.nodes * self.cores


class Outcome(Struct, frozen=True):
    """The result of a simulation, the bound, which no schedule could beat, and the time of MATRIX's recursion."""

    job: Job
    result: Result
    bound_s: float
    recursion_s: float
    panel: Panel | None

    @property
    def bound_share(self) -> float:
        return self.bound_s / self.result.makespan_s

    @property
    def recursion_share(self) -> float:
        return self.recursion_s / self.result.makespan_s


_known: dict[Job, Outcome] = {}


def run_job(job: Job) -> Outcome:
    costs = msgspec.structs.replace(profile(job.profile), **dict(job.costs))
    cluster = cluster_of(job.nodes, job.cores)
    graph = parse_workload(job.workload).build(job.nodes, job.cores, job.seed)
    best = bound(graph, cluster.groups, costs, evenly=dict(job.settings).get("files") != SCATTERED)
    published = recursion(graph, cluster.core_count, costs.net_bytes_per_s)
    settings = Settings(costs=costs, seed=job.seed, **dict(job.settings))
    result, kernel = simulate(graph, cluster, parse_strategy(job.strategy), settings)
    panel = panel_of(result, kernel, job.strategy) if job.has_panel else None
    return Outcome(job, result, best.seconds, published.seconds, panel)


def run_all(jobs: Sequence[Job], asked: Asked) -> dict[Job, Outcome]:
    """Run all jobs, the largest first, so that no process is left alone with a large one at the end."""
    missing = sorted({job for job in jobs if job not in _known}, key=lambda job: (-job.core_count, str(job)))
    progress = RunsProgress(len(missing), asked.quiet)
    with progress, closing(run_each(run_job, missing, asked.jobs)) as done:
        for outcome in done:
            _known[outcome.job] = outcome
            progress.tick()
    return {job: _known[job] for job in jobs}


class RunsProgress(Progress):
    """A bar with the number of finished runs, and the time that is left. It is an upper estimate, because the longest
    runs come first.
    """

    def tick(self) -> None:
        self.done += 1
        left_s = (time.monotonic() - self.began_s) / self.done * (self.total - self.done)
        full = self.done * BAR_WIDTH // max(1, self.total)
        bar = "█" * full + "░" * (BAR_WIDTH - full)
        self._draw(f"{bar} {self.done:,} of {self.total:,} runs  at most {clock(left_s)} left")
