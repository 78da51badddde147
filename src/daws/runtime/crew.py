"""The workers of a node, and how its scheduler is set for live runs."""

from daws.core.node import NodeConfig
from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.context import parse_context
from daws.model.task import NodeId
from daws.wire.crew import Crew

LEASE_NS = 1 << 60
"""Leases are long by default: on one machine a parent process notices deaths."""
TICK_NS = 2_000_000_000
AHEAD_NS = 8_000_000
NEXT_NS = 25_000_000
RECALL_NS = 1_000_000
"""How many tasks are sent ahead to a worker. A worker that has to ask for its next task waits for some tenths of a
millisecond, and longer where all processors are busy: too long for short tasks. Each worker has one more task at hand
if tasks take up to NEXT_NS, and as many as take AHEAD_NS if they are shorter. A task behind a long one is recalled when
another worker has been idle for RECALL_NS. (The node may wait for some milliseconds while every worker has more at
hand, see `Engine._step`.)"""
AHEAD_COUNT_MAX = 256
"""How many tasks share the fixed cost of a batch (system calls, threads and processes that wake up) at most. (The node
sends larger batches of bags.)"""
AHEAD_BYTES = 1 << 20
"""How many bytes the objects of tasks sent ahead may have in all (one task may always have more): the reader of the
first object comes before the next producers."""
AUDIT_NS = 60_000_000_000
"""An object that has waited for its readers for this long is looked up in the store: the node that should have released
it may be dead."""
COPIES_MAX = 100
"""How many copies of a task may race. The strategy says how many do, and can be changed."""
COPIES_SHARE = 4
"""Copies that no task reads just now may take one part in so many of a node's memory."""


def config_of(
    limit_bytes: int,
    lease_ns: int = LEASE_NS,
    replicated: bool = False,
    shard_count: int = 1,
    small_finishes: bool = False,
) -> NodeConfig:
    """The settings of a live node. With `small_finishes` the store is in this process, and takes rows that the garbage
    collector does not look at."""
    return NodeConfig(
        shard_count=shard_count,
        lease_ns=lease_ns,
        tick_ns_max=TICK_NS,
        commit_delay_ns=0,
        ahead_ns=AHEAD_NS,
        next_ns=NEXT_NS,
        recall_ns=RECALL_NS,
        ahead_count_max=AHEAD_COUNT_MAX,
        ahead_bytes=AHEAD_BYTES,
        freed_batch=256,
        audit_ns=AUDIT_NS,
        memory_bytes=limit_bytes // COPIES_SHARE,
        starts_together=True,
        small_finishes=small_finishes,
        replicated=replicated,
    )


def session_config(lease_ns: int, shard_count: int, replicated: bool) -> NodeConfig:
    """The settings of the machine of a session."""
    return NodeConfig(shard_count=shard_count, lease_ns=lease_ns, tick_ns_max=TICK_NS, replicated=replicated)


def info_of(node: NodeId, crew: Crew, addresses: tuple[str, ...] = ()) -> NodeInfo:
    devices = [ExecutorClass(count, parse_context(label)) for label, count in crew.devices]
    return NodeInfo(node, (ExecutorClass(crew.count), *devices), addresses=addresses)
