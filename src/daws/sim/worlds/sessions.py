"""Sessions: users who submit task by task, with clients that are killed, detach and come back: the third million seeds.

Nodes, messages and the store fail as in the other worlds, and links of the client besides. In the fourth million users
do more of what live clients do. They put in functions and objects, and hear of ends before they ask. Sweepers end their
sessions.
"""

from msgspec.structs import replace

from daws.model.cluster import ExecutorClass
from daws.sim.cluster import NodeGroup, SimulatedCluster
from daws.sim.faults import FaultPlan, draw_plan
from daws.sim.servers import ServerPlan, draw_failovers, draw_server_plan
from daws.sim.user import CLOSE, DETACH, KILLED, UserPlan, Visit, empty_graph
from daws.sim.worlds.graphs import MS
from daws.sim.worlds.scenario import Scenario
from daws.sim.worlds.strategies import ALTERED, FIRST, PLANNED
from daws.strategy import parse_strategy
from daws.strategy.rng import SplitMix64


def draw_sessions(seed: int) -> Scenario:
    rng = SplitMix64(seed * 0xD1342543DE82EF95 + 2_000_003)
    nodes, cores = 2 + rng.below(4), 1 + rng.below(3)
    names = (*FIRST, *ALTERED, *PLANNED)
    strategy = parse_strategy(names[rng.below(len(names))])
    shards = 1 + rng.below(4)
    peaceful = rng.below(6) == 0
    plan = FaultPlan(horizon_ns=1_500 * MS) if peaceful else draw_plan(rng)
    kind, servers = "session", None
    trouble = rng.below(3)
    if trouble == 1:
        kind, servers = "session, store fails", draw_server_plan(rng)
    elif trouble == 2:
        kind, servers = "session, store forgets", draw_failovers(rng)
    return Scenario(
        seed,
        kind,
        empty_graph(),
        SimulatedCluster((NodeGroup(nodes, (ExecutorClass(cores),)),)),
        strategy,
        _without_cancels(plan),
        shards,
        freed_batch=2,
        direct=rng.below(2) == 0,
        retired_max=1 << 20 if rng.below(2) and not _forgets(servers) else 0,
        servers=servers,
        user=_draw_user(rng, seed),
    )


def draw_live_sessions(seed: int) -> Scenario:
    rng = SplitMix64(seed * 0x9FB21C651E98DF25 + 3_000_017)
    drawn = draw_sessions(seed)
    assert drawn.user is not None
    user = replace(
        drawn.user,
        hands_over=rng.below(3) > 0,
        functions=rng.below(3),
        puts=rng.below(3),
        hints=rng.below(2) == 0,
    )
    return replace(drawn, kind=f"live {drawn.kind}", user=user)


def _forgets(servers: ServerPlan | None) -> bool:
    return servers is not None and servers.failovers > 0


def _without_cancels(plan: FaultPlan) -> FaultPlan:
    """The plan without cancels of tasks of a graph; users cancel their own tasks."""
    return FaultPlan(
        horizon_ns=plan.horizon_ns,
        loss=plan.loss,
        duplication=plan.duplication,
        delay=plan.delay,
        delay_ns_max=plan.delay_ns_max,
        crashes=plan.crashes,
        crashes_at_store=plan.crashes_at_store,
        partitions=plan.partitions,
        slow_nodes=plan.slow_nodes,
        restart_ns_max=plan.restart_ns_max,
    )


def _draw_user(rng: SplitMix64, seed: int) -> UserPlan:
    kept = rng.below(3) > 0
    visits = []
    for _ in range(rng.below(4)):
        how = (KILLED, KILLED, DETACH, CLOSE)[rng.below(4)]
        visits.append(Visit(rng.below(600) * MS, rng.below(900) * MS, how))
    last = KILLED if not kept and rng.below(3) == 0 else CLOSE
    visits.append(Visit(rng.below(600) * MS, (100 + rng.below(900)) * MS, last))
    return UserPlan(
        seed,
        tuple(visits),
        tasks=5 + rng.below(40),
        kept=kept,
        cancels=rng.below(4),
        let_go=rng.below(2) == 0,
        cuts=rng.below(3),
        fan=1 + rng.below(4),
        hops=2 + rng.below(12),
        sweeper_deaths=rng.below(3),
        rivals=rng.below(3),
        last_words=rng.below(2) == 0,
    )
