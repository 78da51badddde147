"""The cases of a comparison: each strategy on each size of cluster with each seed is one case, which gives one
result."""

import re
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from daws.bounds import bound
from daws.model.errors import UsageError
from daws.model.graph import Graph
from daws.model.numbers import read_whole
from daws.sim.cluster import NODE_COUNT_MAX, SimulatedCluster
from daws.sim.simulate import Settings, simulate
from daws.strategy import PRESETS, parse_strategy

SEEDS_MAX = 10_000
DOTS = ("...", "…")


class Case(Struct, frozen=True):
    """One simulation."""

    strategy: str
    nodes: int
    seed: int

    def __str__(self) -> str:
        return f"{self.strategy} on {self.nodes} nodes"


class CaseResult(Struct, frozen=True):
    """The result of a case. `bound_s` is the time that no schedule could beat, `bound_by` the part of it that binds."""

    strategy: str
    nodes: int
    seed: int
    tasks: int
    makespan_s: float
    bound_s: float
    bound_by: str
    efficiency: float
    utilization: float
    bytes_moved: int
    wall_s: float
    peak_bytes: int = 0

    @property
    def case(self) -> Case:
        return Case(self.strategy, self.nodes, self.seed)

    @property
    def bound_share(self) -> float:
        return self.bound_s / self.makespan_s if self.makespan_s else 0.0


class Recipe(Protocol):
    """How the world of a case is made. It travels to other processes, so it must be possible to pickle it."""

    def make(self, nodes: int, seed: int) -> tuple[Graph, SimulatedCluster, Settings]: ...


def run_case(recipe: Recipe, case: Case) -> CaseResult:
    """Simulate it; UsageError says which case does not work."""
    try:
        graph, cluster, settings = recipe.make(case.nodes, case.seed)
        best = bound(graph, cluster.groups, settings.costs)
        result, _ = simulate(graph, cluster, parse_strategy(case.strategy), settings)
    except UsageError as error:
        raise UsageError(f"{case}: {error}") from error
    return CaseResult(
        strategy=case.strategy,
        nodes=case.nodes,
        seed=case.seed,
        tasks=result.tasks,
        makespan_s=result.makespan_s,
        bound_s=best.seconds,
        bound_by=best.binding.name,
        efficiency=result.efficiency,
        utilization=result.utilization,
        bytes_moved=result.bytes_moved,
        wall_s=result.wall_s,
        peak_bytes=result.peak_bytes,
    )


def cases_of(strategies: Sequence[str], sizes: Sequence[int], seeds: int) -> list[Case]:
    """Small clusters first: they say soonest how it looks, and how long the rest will take."""
    if not 1 <= seeds <= SEEDS_MAX:
        raise UsageError(f"--seeds {seeds}: between 1 and {SEEDS_MAX} are possible")
    return [Case(strategy, nodes, seed) for nodes in sizes for seed in range(seeds) for strategy in strategies]


def split_strategies(texts: Sequence[str]) -> list[str]:
    """`a,b:x=1,y=2,c` is three strategies: a comma separates where the name of a preset follows."""
    names = "|".join(map(re.escape, sorted(PRESETS, key=len, reverse=True)))
    found: list[str] = []
    for text in texts:
        for one in re.split(rf",(?=\s*(?:{names})\s*(?:[:,]|$))", text):
            name = one.strip()
            for word in name.partition(":")[0].split(","):
                if word.strip() not in PRESETS:
                    parse_strategy(word)  # says what is wrong with this one alone
            parse_strategy(name)
            if name in found:
                raise UsageError(f"--strategy: {name!r} is given twice")
            found.append(name)
    return found


def read_sizes(text: str) -> list[int]:
    """`1,4,16` or `1,4,...,64`, where dots go on as the two numbers before them do; ascending, each once."""
    found: list[int] = []
    words = [word.strip() for word in text.split(",")]
    for index, word in enumerate(words):
        if word not in DOTS:
            found.append(_read_size(word))
            continue
        if index < 2 or index != len(words) - 2 or words[index - 1] in DOTS or words[index - 2] in DOTS:
            raise UsageError("--nodes: dots stand between two numbers and the last one, as in 1,2,...,64")
        found += _between(found[-2], found[-1], _read_size(words[-1]))
    return sorted(set(found))


def _between(first: int, second: int, last: int) -> list[int]:
    """The numbers that dots stand for."""
    if not first < second < last:
        raise UsageError(f"--nodes: {first},{second},...,{last} does not go up")
    found: list[int] = []
    factor = second // first if second % first == 0 else 0
    value = second
    while True:
        value = value * factor if factor else value + second - first
        if value >= last:
            return found
        found.append(value)


def _read_size(word: str) -> int:
    value = read_whole(word)
    if value is None or not 1 <= value <= NODE_COUNT_MAX:
        raise UsageError(f"--nodes: {word[:40]!r} is not a number of nodes between 1 and {NODE_COUNT_MAX}")
    return value
