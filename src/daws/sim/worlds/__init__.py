"""Worlds: small clusters with a graph, a strategy and a plan of faults, each drawn from one number.

A *seed* is a number. A *world* is a kind of cluster in which something special happens: a function from a seed to a
`Scenario`. A *scenario* is all that the seed decides. `run_scenario(seed)` returns how the run ended, or raises a
`Violation` that names the seed; the same seed gives the same run.

    corpus       which seeds belong to which worlds; a new world gets a range of seeds of its own
    scenario     the fields of a scenario, and the outcome of its run
    run          a kernel made from a scenario, its run, and the checks at its end
    aimed        faults that wait for the worst moment
    watch        checkers for these runs
    graphs, strategies      graphs and strategies that several worlds draw from

    stock        the mixture of the first million seeds, out of the worlds that follow
    plain        a preset on a usual workload; most other worlds begin with it
    special      several shards, little memory, unlike nodes, partitions, deaths at the worst moment …
    leaving      nodes that are told to leave
    born_late    tasks that are created after the task that they wait for was cancelled
    rush         leases that are very short
    lost_workers workers that die while their runs wait
    failover     a store that loses what it has acknowledged
    grown        the same with graphs that grow: the second million seeds
    sessions     users with clients that come and go, instead of a graph: the third million seeds, and with more
                 of what live clients do the fourth
"""

from daws.sim.worlds.corpus import GROWN, LIVE_SESSIONS, RANGES, SESSIONS, draw_scenario
from daws.sim.worlds.run import make_scenario_kernel, run_scenario
from daws.sim.worlds.scenario import Scenario, WorldOutcome

__all__ = [
    "GROWN",
    "LIVE_SESSIONS",
    "RANGES",
    "SESSIONS",
    "WorldOutcome",
    "Scenario",
    "draw_scenario",
    "make_scenario_kernel",
    "run_scenario",
]
