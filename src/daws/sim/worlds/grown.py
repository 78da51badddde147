"""The second million seeds: a store, mostly of several shards, loses what it has acknowledged, and graphs grow."""

from msgspec import structs

from daws.sim.servers import draw_failovers
from daws.sim.worlds.graphs import growing_graph
from daws.sim.worlds.plain import draw_plain
from daws.sim.worlds.scenario import Scenario
from daws.sim.worlds.stock import with_setup
from daws.sim.worlds.strategies import PLANNED
from daws.strategy import parse_strategy
from daws.strategy.rng import SplitMix64

UNDIVIDED = (3, 10)
"""The seeds (modulo 16) whose store has one shard."""


def draw_grown(seed: int) -> Scenario:
    rng = SplitMix64(seed * 0x5DEECE66D + 13)
    scenario = draw_plain(seed)
    strategy = parse_strategy(PLANNED[rng.below(len(PLANNED))]) if rng.below(3) == 0 else scenario.strategy
    grown = structs.replace(
        scenario,
        kind="grown",
        strategy=strategy,
        servers=draw_failovers(rng),
        graph=growing_graph(rng, waits=rng.below(3) > 0, held=rng.below(2) == 0),
        shards=1 if seed % 16 in UNDIVIDED else 2 + rng.below(3),
    )
    return with_setup(grown)
