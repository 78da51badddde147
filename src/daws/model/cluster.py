"""A cluster as strategies see it: nodes with their executors, and the list of current members."""

from bisect import bisect_left
from functools import cached_property

from msgspec import Struct

from daws.model.context import Context, matches
from daws.model.task import Needs, NodeId


class ExecutorClass(Struct, frozen=True, array_like=True, gc=False):
    """`count` executors of a node that offer the same context."""

    count: int
    context: Context | None = None


class NodeInfo(Struct, frozen=True, array_like=True, gc=False):
    """The public facts about a node. `speed` is relative to the machine that task lengths were measured on.

    `memory_bytes` limits the memory that tasks running there together may declare; 0 means no limit. `pool` is the name
    of the node's steal pool. `steals_from` are the pools that it steals from; its own if none is named. Pools matter
    only to strategies that use them. `addresses` are where the node accepts messages, and where it serves objects; they
    are empty if the driver knows how to reach the node.
    """

    id: NodeId
    executors: tuple[ExecutorClass, ...]
    cluster: int = 0
    speed: float = 1.0
    memory_bytes: int = 0
    pool: str = ""
    steals_from: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @property
    def cores(self) -> int:
        return sum(group.count for group in self.executors)

    def may_steal_from(self, other: "NodeInfo") -> bool:
        """Whether the steal pools allow this node to steal from the other."""
        return other.pool in self.steals_from if self.steals_from else other.pool == self.pool

    def can_run(self, needs: Needs | None) -> bool:
        if needs is None:
            cores, context = 1, None
        else:
            cores, context = needs.cores, needs.context
            if needs.memory_bytes > self.memory_bytes > 0:
                return False
        return any(group.count >= cores and matches(context, group.context) for group in self.executors)


class Members(Struct, frozen=True, dict=True, omit_defaults=True):
    """One version of the list of live nodes. It never changes, so all nodes that know a version share one object.

    `strategy` is the strategy that all of them use, as text; it is empty until one is chosen.
    """

    version: int
    infos: tuple[NodeInfo, ...]
    strategy: str = ""

    @cached_property
    def nodes(self) -> tuple[NodeId, ...]:
        return tuple(info.id for info in self.infos)

    @cached_property
    def _positions(self) -> dict[NodeId, int] | range:
        """The position of each node in the list. As long as no node has joined or left, a node's position is its
        number."""
        everybody = range(len(self.infos))
        if all(map(int.__eq__, everybody, self.nodes)):
            return everybody
        return {info.id: index for index, info in enumerate(self.infos)}

    @cached_property
    def _capable(self) -> dict[Needs | None, tuple[NodeId, ...]]:
        return {}

    def __contains__(self, node: object) -> bool:
        return node in self._positions

    def __len__(self) -> int:
        return len(self.infos)

    def info(self, node: NodeId) -> NodeInfo | None:
        position = self.position(node)
        return self.infos[position] if position >= 0 else None

    def position(self, node: NodeId) -> int:
        """The position of a node in the list; -1 if it is no member."""
        positions = self._positions
        return positions[node] if node in positions else -1  # noqa: SIM401 (a range has no get)

    @cached_property
    def memory_limits(self) -> tuple[int, ...]:
        """Each amount of memory that some node has, ascending; nodes without limit have none."""
        return tuple(sorted({info.memory_bytes for info in self.infos} - {0}))

    def memory_step(self, memory_bytes: int) -> int:
        """The largest memory need that the same nodes can hold. Needs rounded up to such steps have few different
        values."""
        limits = self.memory_limits
        if not memory_bytes or not limits:
            return 0
        step = bisect_left(limits, memory_bytes)
        return limits[step] if step < len(limits) else limits[-1] + 1

    def capable(self, needs: Needs | None) -> tuple[NodeId, ...]:
        """The nodes with an executor that may run such a task, and enough memory for it."""
        if needs is not None and needs.memory_bytes:
            needs = Needs(needs.cores, needs.context, self.memory_step(needs.memory_bytes))
        found = self._capable.get(needs)
        if found is None:
            found = self._capable[needs] = tuple(info.id for info in self.infos if info.can_run(needs))
        return found
