"""The first million seeds: a mixture of worlds.

Worlds were added one after the other, each to seeds that were plain until then; that is why this file has so many
remainders. The mixture is closed. A change of any rule in here would give remembered seeds another meaning.
"""

from msgspec import structs

from daws.sim.servers import draw_server_plan
from daws.sim.worlds.born_late import draw_born_late
from daws.sim.worlds.failover import draw_failover
from daws.sim.worlds.leaving import draw_leaving
from daws.sim.worlds.lost_workers import draw_lost_workers
from daws.sim.worlds.plain import draw_plain
from daws.sim.worlds.rush import draw_rush
from daws.sim.worlds.scenario import Scenario
from daws.sim.worlds.special import draw_special
from daws.sim.worlds.strategies import LATER, PLANNED
from daws.strategy import parse_strategy
from daws.strategy.rng import SplitMix64

BY_DEFAULT = (0, 10, 13, 20, 28, 29)
"""The seeds (modulo 31) that run the default strategy or a variant of it."""
LOST_WORKERS = (29, 38)
"""The seeds (modulo 43) in which workers die whose runs wait; in the second the store forgets as well."""
LOGGED = (0, 8, 10)
"""The seeds (modulo 23) whose store may fail and comes back from its log."""
REPLICATED = (3, 6)
"""The seeds (modulo 23) whose store loses what it has acknowledged."""
WITH_LATER = (3, 12, 15)
"""The seeds (modulo 19) that run a preset that was added later."""
LEAVING = (6, 12)
"""The seeds (modulo 17) in which nodes leave."""
SPECIAL = (2, 3)
"""The seeds (modulo 7) in one of the special worlds."""
BORN_LATE, RUSH = 4, 9
"""The seeds (modulo 29) of these two worlds."""
RETIRED_MAX = 1 << 20


def draw_stock(seed: int) -> Scenario:
    scenario = _draw_world(seed)
    if seed % 31 in BY_DEFAULT:
        scenario = structs.replace(scenario, strategy=parse_strategy(PLANNED[seed // 31 % len(PLANNED)]))
    return with_setup(scenario)


def with_setup(scenario: Scenario) -> Scenario:
    """The scenario with a cluster that is set up as its seed says."""
    seed = scenario.seed
    return structs.replace(
        scenario,
        freed_batch=4096 if seed % 3 == 0 else 2,
        direct=seed % 2 == 0,
        shared_links=seed % 19 == 1,
        retired_max=RETIRED_MAX if seed % 4 == 0 else 0,
    )


def _draw_world(seed: int) -> Scenario:
    if seed % 43 in LOST_WORKERS:
        return draw_lost_workers(seed, forgets=seed % 43 == LOST_WORKERS[1])
    if seed % 23 in REPLICATED:
        return draw_failover(seed)
    scenario = _draw_first(seed)
    if seed % 19 in WITH_LATER:
        scenario = structs.replace(scenario, strategy=parse_strategy(LATER[seed // 19 % len(LATER)]))
    if seed % 23 in LOGGED:
        scenario = structs.replace(scenario, servers=draw_server_plan(SplitMix64(seed * 0x5DEECE66D + 11)))
    return scenario


def _draw_first(seed: int) -> Scenario:
    if seed % 29 == BORN_LATE:
        return draw_born_late(seed)
    if seed % 29 == RUSH:
        return draw_rush(seed)
    if seed % 17 in LEAVING:
        return draw_leaving(seed)
    return draw_special(seed) if seed % 7 in SPECIAL else draw_plain(seed)
