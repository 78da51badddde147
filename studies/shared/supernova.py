"""The application of the Constellation paper (2011): it finds supernovae by comparing two pictures of the same sky.

The paper describes it in words and a few numbers (sections 4 and 5):

- There are 1,052 pairs of pictures with 73 GB.
- The largest 30 pairs hold a tenth of the work. They take 65 to 1,040 s on one core, 820 s in the mean.
- The nine steps of a pair take 1 to 8 s each, except for the comparison of tiles. The comparison takes nearly all the
  time and can be spread over cores.
- All pairs take 48 busy cores 5,243 s, and six executors of 8 cores 9,043 s. A pair therefore has 239 s of work in the
  mean, of which about 25 s cannot be shared.

The numbers below were chosen to agree with all of that (`STEPS`, `COMPARE_S`, `SHAPE`, `LARGEST`). The number of tiles
of a picture is not in the paper.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from math import log
from statistics import mean
from typing import NamedTuple, TypeVar

import numpy as np

from daws.compare.jobs import run_each
from daws.model.context import Context, Label
from daws.model.graph_builder import GraphBuilder, TaskHandle
from daws.sim.plot import Floats, busy_over_time
from daws.strategy.rng import SplitMix64

from .runs import RunsProgress
from .study import Asked

Thing = TypeVar("Thing")
Job = TypeVar("Job")
Found = TypeVar("Found")

PAPER = "Ibis/Constellation (2011)"
PAIR_COUNT = 1052
TOTAL_MB = 73_000.0
NS_PER_S = 1_000_000_000

SHAPE = 1.1
LARGEST, SMALLEST = 4.0, 0.1
"""The largest and smallest size of a pair, as multiples of the mean.

Sizes have a Weibull distribution of the shape `SHAPE`. With these values the largest 30 pairs hold a tenth of the work.
"""
CANDIDATES = 0.8
"""The share of tiles that have enough candidates to be compared.

The share differs by pair, by up to a fifth of its mean either way. In one of `FEW` pairs almost no tile has enough.
"""
FEW = 30
LONGEST_S = 1040.0
STEPS = {"prepare": 2.0, "detect": 8.0, "match": 2.0, "equalize": 6.0, "divide": 5.0, "extract": 3.0, "clean": 1.0}
"""Seconds on one core for a pair of mean size; `detect` and `equalize` are done for each of the two pictures."""
TWICE = ("detect", "equalize")
STEPS_S = sum(STEPS.values()) + sum(STEPS[name] for name in TWICE)
STEPS_FIXED = 0.9
"""The part of a step that does not depend on the size of the pair. With 0.8 small tasks gain more than in figure 9."""
COMPARE_S = 196.6
"""The mean time on one core to compare all tiles of a pair."""
TILES = 40
"""The number of tiles of a pair of mean size."""
TEMPORARY_BYTES = 1_000_000
"""The size of the files that a step leaves for the next one. Any size above 0 will do: it makes the next step stay on
the same node.
"""


class Pair(NamedTuple):
    """Two pictures. Lengths are in seconds on a core of the 48-core machine."""

    size_mb: float
    tiles: int
    compare_s: float  # all tiles
    scale: float  # of the other steps

    @property
    def work_s(self) -> float:
        return STEPS_S * self.scale + self.compare_s

    @property
    def rank(self) -> int:
        return round(1000 * self.size_mb)

    def phases(self, cores: int) -> list[tuple[float, int]]:
        """The phases of the program on this number of cores: for how many seconds, and on how many cores at a time."""
        rounds, rest = divmod(self.tiles, cores)
        tile_s = self.compare_s / self.tiles
        tiles = [(rounds * tile_s, cores), (tile_s if rest else 0.0, rest)]
        found: list[tuple[float, int]] = []
        for name, seconds in STEPS.items():
            width = 1 if name not in TWICE else min(2, cores)
            found.append((seconds * self.scale * (2 / width if name in TWICE else 1), width))
            if name == "divide":
                found += tiles
        return [phase for phase in found if phase[0] > 0]

    def seconds(self, cores: int) -> float:
        """The time that the program takes on this number of cores."""
        return sum(seconds for seconds, _ in self.phases(cores))


def make_pairs(seed: int, count: int = PAIR_COUNT) -> list[Pair]:
    """Pairs with the same sizes for every seed. Their order and their amounts of work depend on the seed."""
    rng = SplitMix64(seed)
    sizes = [(-log(1 - (number + 0.5) / count)) ** (1 / SHAPE) for number in range(count)]
    for _ in range(20):  # cutting off the ends moves the mean
        middle = mean(sizes)
        sizes = [min(LARGEST, max(SMALLEST, size / middle)) for size in sizes]
    found = [0.02 if not rng.below(FEW) else 1 + (1 - CANDIDATES) * (2 * rng.unit() - 1) for _ in sizes]
    unit = COMPARE_S / mean(share * size for share, size in zip(found, sizes, strict=True))
    pairs = []
    for size, share in zip(sizes, found, strict=True):
        scale = STEPS_FIXED + (1 - STEPS_FIXED) * size
        compare_s = min(unit * share * size, LONGEST_S - STEPS_S * scale)
        pairs.append(Pair(size * TOTAL_MB / PAIR_COUNT, max(1, round(TILES * size)), compare_s, scale))
    return shuffled(pairs, rng)


def shuffled(things: Sequence[Thing], rng: SplitMix64) -> list[Thing]:
    mixed = list(things)
    for last in range(len(mixed) - 1, 0, -1):
        other = rng.below(last + 1)
        mixed[last], mixed[other] = mixed[other], mixed[last]
    return mixed


def largest(pairs: Sequence[Pair], count: int) -> list[Pair]:
    return sorted(pairs, key=lambda pair: -pair.size_mb)[:count]


def ns_of(seconds: float) -> int:
    return int(seconds * NS_PER_S)


def add_steps(
    builder: GraphBuilder,
    pair: Pair,
    label: Callable[[str], str],
    copy_s: float = 0.0,
    tile_s: Sequence[tuple[str, float]] = (("compare", 1.0),),
) -> None:
    """Add the steps of a pair to a graph: each step is a task, and each tile is one or several tasks.

    The tasks of a tile are given by name and share of the tile's length. `label` is the executor label that a step asks
    for. `copy_s` is the time to copy the pictures to the node.
    """

    def add(name: str, seconds: float, inputs: Iterable[TaskHandle] = ()) -> TaskHandle:
        context: Context = Label(label(name), pair.rank, pair.rank)
        return builder.add_task(name, ns_of(seconds), list(inputs), (TEMPORARY_BYTES,), context)

    length = {name: seconds * pair.scale for name, seconds in STEPS.items()}
    first = add("prepare", length["prepare"] + copy_s)
    matched = add("match", length["match"], [add("detect", length["detect"], [first]) for _ in range(2)])
    divided = add("divide", length["divide"], [add("equalize", length["equalize"], [matched]) for _ in range(2)])
    tiles = []
    for _ in range(pair.tiles):
        tile = divided
        for name, share in tile_s:
            tile = add(name, share * pair.compare_s / pair.tiles, [tile])
        tiles.append(tile)
    add("clean", length["clean"], [add("extract", length["extract"], tiles)])


class Span(NamedTuple):
    """The number of cores that were busy from one time to another, in seconds."""

    start_s: float
    end_s: float
    cores: int = 1


def spans_of(pair: Pair, start_s: float, cores: int, speed: float = 1.0) -> list[Span]:
    """The busy cores while the program runs on a node with this number of cores, from the time when its pictures are
    there.
    """
    spans = []
    for seconds, busy in pair.phases(cores):
        end_s = start_s + seconds / speed
        spans.append(Span(start_s, end_s, busy))
        start_s = end_s
    return spans


BINS = 240


def percent_over_time(spans: Iterable[Span], cores: int, end_s: float) -> tuple[Floats, Floats]:
    """The edges of equal parts of the time, and the percentage of busy cores in each part."""
    spans = list(spans)
    width = np.array([span.cores for span in spans])
    starts, ends = (
        np.repeat(np.array(some, dtype=np.float64) * NS_PER_S, width).astype(np.int64)
        for some in ([span.start_s for span in spans], [span.end_s for span in spans])
    )
    edges_s = np.linspace(0.0, end_s, BINS + 1)
    busy = busy_over_time(starts, ends, edges_s * NS_PER_S)  # type: ignore[arg-type]
    return edges_s, 100 * busy / cores


def run_jobs(run: Callable[[Job], Found], jobs: Sequence[Job], asked: Asked) -> list[Found]:
    """The results of the jobs, in no particular order."""
    found = []
    progress = RunsProgress(len(jobs), asked.quiet)
    with progress, closing(run_each(run, list(jobs), asked.jobs)) as done:
        for one in done:
            found.append(one)
            progress.tick()
    return found
