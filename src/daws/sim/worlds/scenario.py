"""A scenario, which is everything that a seed decides, and the outcome of its run."""

from msgspec import Struct

from daws.core.events import NEVER_NS
from daws.model.graph import Graph
from daws.sim.cluster import SimulatedCluster
from daws.sim.faults import FaultPlan
from daws.sim.servers import ServerPlan
from daws.sim.user import UserPlan
from daws.strategy.decisions import Strategy

LEASE_S = 1.0


class Scenario(Struct, frozen=True):
    """Everything that a seed decides."""

    seed: int
    kind: str
    graph: Graph
    cluster: SimulatedCluster
    strategy: Strategy
    plan: FaultPlan
    shards: int
    lease_s: float = LEASE_S
    memory_bytes: int = 1 << 62  # of each node, for copies
    # how the cluster is set up
    freed_batch: int = 2  # references that a node collects before it releases them
    direct: bool = False  # whether the store tells children of the same shard itself
    shared_links: bool = False  # whether transfers share links; else a link carries one after the other
    retired_max: int = 0  # records of ended tasks that the store keeps
    # what happens, beside the plan
    servers: ServerPlan | None = None  # what happens to the store
    user: UserPlan | None = None  # who submits task by task, instead of a graph
    cancelled: tuple[tuple[int, int], ...] = ()  # tasks that the client cancels, and when
    leaves: tuple[tuple[int, int, int], ...] = ()  # nodes that are told to leave, when, and with which deadline
    returns: bool = False  # whether a node that has left comes back as a new incarnation
    killers: tuple[int, ...] = ()  # tasks that kill their node each time they run
    # faults that wait for their moment: how often each of them strikes
    deaths_after_call: int = 0  # a node dies while its call to the store is delayed for long
    deaths_in_takeover: int = 0  # a node dies while it takes over from a dead node
    partial_takeovers: int = 0  # a node dies when one shard has let it take over, and the others know nothing of it
    late_clears: int = 0  # a node dies right after a new intent, and its clear of the old one arrives a second time
    store_cuts: int = 0  # a busy node cannot reach the store for longer than a lease
    worker_deaths: int = 0  # a run loses its worker while it waits for tasks, or is about to

    @property
    def is_forgetful(self) -> bool:
        """Whether the store may lose what it has acknowledged."""
        return self.servers is not None and self.servers.failovers > 0

    @property
    def is_peaceful(self) -> bool:
        """Whether nodes leave without a deadline, and nothing else happens."""
        plan = FaultPlan(horizon_ns=self.plan.horizon_ns)
        hurried = any(deadline != NEVER_NS for _, _, deadline in self.leaves)
        return bool(self.leaves) and self.plan == plan and self.servers is None and not hurried


AIMED = (
    "killers",
    "deaths_after_call",
    "deaths_in_takeover",
    "partial_takeovers",
    "late_clears",
    "store_cuts",
    "worker_deaths",
    "cancelled",
    "leaves",
    "servers",
    "user",
)
"""Fields of a scenario that say what happens beside its plan of faults."""


class WorldOutcome(Struct, frozen=True):
    """The faults that struck, and how the tasks ended."""

    seed: int
    kind: str
    strategy: str
    tasks: int
    failed: int
    cancelled: int
    end_ns: int
    faults: dict[str, int]
    digest: str
