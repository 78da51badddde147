"""The configuration that all nodes of a cluster share."""

from msgspec import Struct

SECOND_NS = 1_000_000_000


class Phase:
    """The phases of a node."""

    JOINING = 0  # it starts nothing before the store has agreed
    ACTIVE = 1
    LEAVING = 2  # it starts nothing new, and goes when nothing is left to do
    RESTARTING = 3  # this incarnation was struck: nothing that it does counts any more


class NodeConfig(Struct, frozen=True):
    """The settings that are the same on all nodes of a cluster."""

    shard_count: int = 1
    lease_ns: int = 10 * SECOND_NS
    net_bytes_per_s: float = 1.25e9
    memory_bytes: int = 1 << 62
    ahead_ns: int = 1_000_000  # so much work may wait at an executor itself
    ahead_count_max: int = 64
    ahead_bytes: int = 1 << 62  # ... and tasks that make so much, but one in any case
    next_ns: int = 0  # and one task in any case, if its kind takes no longer than this
    recall_ns: int = 0  # an executor is idle for so long before what waits at others is asked back for it
    audit_ns: int = 600 * SECOND_NS
    commit_delay_ns: int = 100_000_000  # so long may a busy node keep the ends of tasks for which nobody waits
    tick_ns_max: int = 1 << 62  # where leases are long because nobody watches, what is not urgent leaves as often
    freed_batch: int = 4096  # releases that a node collects before it tells the store
    fetches_ahead: bool = True  # else an executor without its inputs waits for them and runs nothing meanwhile
    starts_together: bool = False  # many plain runs are started by one effect
    small_finishes: bool = False  # runs that made one small object are committed by `FinishSmall`
    replicated: bool = False  # the store acknowledges what its replicas do not know yet, and may lose it

    @property
    def short_ns(self) -> int:
        """Kinds of tasks that take no longer may be sent ahead."""
        return max(self.ahead_ns, self.next_ns)

    @property
    def tick_ns(self) -> int:
        return min(self.lease_ns // 4, self.tick_ns_max)
