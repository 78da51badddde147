"""The corpus: which seeds belong to which worlds, for ever.

Many seeds are remembered because they once brought a bug to light, or because they notice a mutant; the digests of
others are recorded. Therefore a seed must keep its meaning. Each mixture of worlds owns a range of seeds, and nothing
but the function of that range decides what one of its seeds means. A range is closed: its function does not change any
more. New worlds get a new range at the end of `RANGES`. `tests/sim/corpus.json` has a fingerprint of many scenarios,
and a test compares them.
"""

from collections.abc import Callable
from typing import NamedTuple

from daws.sim.worlds.grown import draw_grown
from daws.sim.worlds.scenario import Scenario
from daws.sim.worlds.sessions import draw_live_sessions, draw_sessions
from daws.sim.worlds.stock import draw_stock

RANGE_SEEDS = 1_000_000
GROWN = 1_000_000
SESSIONS = 2_000_000
LIVE_SESSIONS = 3_000_000


class SeedRange(NamedTuple):
    """The seeds of one mixture of worlds: `RANGE_SEEDS` of them from `first` on."""

    name: str
    first: int
    draw: Callable[[int], Scenario]


RANGES = (
    SeedRange("stock", 0, draw_stock),
    SeedRange("grown", GROWN, draw_grown),
    SeedRange("sessions", SESSIONS, draw_sessions),
    SeedRange("live sessions", LIVE_SESSIONS, draw_live_sessions),
)


def draw_scenario(seed: int) -> Scenario:
    """The scenario of a seed, by the range in which it lies."""
    number = seed // RANGE_SEEDS
    if not 0 <= number < len(RANGES):
        raise ValueError(f"no world has seed {seed}: seeds go from 0 to {len(RANGES) * RANGE_SEEDS - 1}")
    return RANGES[number].draw(seed)
