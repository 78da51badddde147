"""From runs to figures: medians with their spread, ratios within repetitions, aims met or not."""

import statistics
from collections.abc import Sequence

from msgspec import Struct

from bench.peers.aims import AIMS, Aim
from bench.peers.runner import Run
from bench.peers.systems import HOMES, system_named
from bench.peers.workloads import WORKLOADS, Workload

US = "daws"


class Spread(Struct, frozen=True):
    """Of some repetitions."""

    median: float
    low: float
    high: float


class Verdict(Struct, frozen=True):
    """An aim, and what came of it: `ours` has to reach `wanted`. Not known if there is nothing to compare with."""

    aim: Aim
    other: str  # the system that is compared with, if any
    ours: float
    wanted: float
    is_met: bool


class Row(Struct, frozen=True):
    """One workload: all systems, and who is the best peer with processes of its own."""

    workload: str
    systems: dict[str, Spread]
    best: str  # "" if no peer did it
    against_floor: Spread | None
    against_best: Spread | None
    verdicts: list[Verdict]


def spread_of(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def summarise(runs: Sequence[Run]) -> list[Row]:
    """A row per workload that was run, in the order of the workloads."""
    return [_row(WORKLOADS[name], runs) for name in WORKLOADS if any(run.workload == name for run in runs)]


def _row(workload: Workload, runs: Sequence[Run]) -> Row:
    mine = [run for run in runs if run.workload == workload.name and run.figures]
    systems = {name: spread_of(found) for name in HOMES if (found := _values(mine, name))}
    best = _best(workload, systems, [name for name in systems if _is_rival(name)])
    return Row(
        workload.name,
        systems,
        best,
        _ratios(mine, "floor"),
        _ratios(mine, best),
        [verdict for aim in AIMS if aim.workload == workload.name and (verdict := _verdict(aim, mine, best))],
    )


def _values(runs: Sequence[Run], system: str, figure: str = "value") -> list[float]:
    return [run.figures[figure] for run in runs if run.system == system and figure in run.figures]


def _is_rival(name: str) -> bool:
    """Threads of one process have nothing to send: they are shown, and not compared with processes."""
    system = system_named(name)
    return system.is_peer and not system.one_process


def _best(workload: Workload, systems: dict[str, Spread], names: Sequence[str]) -> str:
    choose = max if workload.higher_is_better else min
    return choose(names, key=lambda name: systems[name].median) if names else ""


def _ratios(runs: Sequence[Run], other: str) -> Spread | None:
    """Ours to theirs, repetition by repetition."""
    theirs = {run.repetition: run.figures["value"] for run in runs if run.system == other}
    found = [
        run.figures["value"] / theirs[run.repetition]
        for run in runs
        if run.system == US and theirs.get(run.repetition, 0.0) > 0
    ]
    return spread_of(found) if found else None


def _verdict(aim: Aim, runs: Sequence[Run], best: str) -> Verdict | None:
    workload = WORKLOADS[aim.workload]
    ours = _values(runs, US, aim.figure)
    if not ours:
        return None
    other, theirs = "", 0.0
    if aim.against != "nothing":
        other = _other(aim, runs, best)
        figures = _values(runs, other, aim.figure)
        if not figures:
            return None
        theirs = statistics.median(figures)
    mine, wanted = statistics.median(ours), aim.factor * theirs + aim.plus
    return Verdict(aim, other, mine, wanted, mine >= wanted if workload.higher_is_better else mine <= wanted)


def _other(aim: Aim, runs: Sequence[Run], best: str) -> str:
    """Whom an aim speaks of."""
    if aim.against in ("floor", "processes"):
        return aim.against
    workload = WORKLOADS[aim.workload]
    names = [name for name in HOMES if _is_rival(name) and _values(runs, name, aim.figure)]
    if aim.against == "graph":
        names = [name for name in names if system_named(name).keeps_graph]
    medians = {name: spread_of(_values(runs, name, aim.figure)) for name in names}
    return _best(workload, medians, names)
