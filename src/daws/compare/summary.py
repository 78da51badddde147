"""Runs added up: mean and spread of each strategy on each size of cluster, and the time that is left."""

from collections.abc import Iterable, Sequence
from math import sqrt

from msgspec import Struct

from daws.compare.cases import Case, CaseResult


class Cell(Struct, frozen=True):
    """One strategy on one size, over its seeds. Spreads are standard deviations, 0 for a single run."""

    strategy: str
    nodes: int
    runs: int
    makespan_s: float
    makespan_spread_s: float
    bound_s: float
    bound_share: float
    bound_share_spread: float
    efficiency: float
    bytes_moved: float
    peak_bytes: float = 0.0


def cells_of(runs: Iterable[CaseResult]) -> list[Cell]:
    """The cells by size, then in the order of the results' strategies."""
    groups: dict[tuple[int, str], list[CaseResult]] = {}
    for run in runs:
        groups.setdefault((run.nodes, run.strategy), []).append(run)
    cells = [_cell(group) for group in groups.values()]
    return sorted(cells, key=lambda cell: cell.nodes)


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    return mean, sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def seconds_left(done: Iterable[CaseResult], todo: Iterable[Case], jobs: int) -> float | None:
    """The estimated rest in seconds, by how long runs of the same size took, else of the next smaller size, scaled by
    the number of nodes."""
    took: dict[int, list[float]] = {}
    for run in done:
        took.setdefault(run.nodes, []).append(run.wall_s)
    if not took:
        return None
    means = {nodes: sum(values) / len(values) for nodes, values in took.items()}
    total_s = 0.0
    for case in todo:
        near = max((nodes for nodes in means if nodes <= case.nodes), default=min(means))
        total_s += means[near] * case.nodes / near
    return total_s / jobs


def _cell(runs: list[CaseResult]) -> Cell:
    makespan_s, spread_s = mean_and_spread([run.makespan_s for run in runs])
    share, share_spread = mean_and_spread([run.bound_share for run in runs])
    return Cell(
        strategy=runs[0].strategy,
        nodes=runs[0].nodes,
        runs=len(runs),
        makespan_s=makespan_s,
        makespan_spread_s=spread_s,
        bound_s=mean_and_spread([run.bound_s for run in runs])[0],
        bound_share=share,
        bound_share_spread=share_spread,
        efficiency=mean_and_spread([run.efficiency for run in runs])[0],
        bytes_moved=mean_and_spread([run.bytes_moved for run in runs])[0],
        peak_bytes=mean_and_spread([run.peak_bytes for run in runs])[0],
    )
