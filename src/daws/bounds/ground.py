"""The facts about a cluster and its costs that bounds need. The simulator's own descriptions fit; so do those made
here."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from daws.model.cluster import ExecutorClass
from daws.model.context import Context, matches


class Nodes(Protocol):
    """`count` equal nodes; `memory_bytes` 0 is without limit."""

    @property
    def count(self) -> int: ...
    @property
    def executors(self) -> tuple[ExecutorClass, ...]: ...
    @property
    def speed(self) -> float: ...
    @property
    def cluster(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...


class CostModel(Protocol):
    """The part of a simulator's costs that no schedule can avoid."""

    @property
    def latency_ns(self) -> int: ...
    @property
    def net_bytes_per_s(self) -> float: ...
    @property
    def cluster_bytes_per_s(self) -> float: ...
    @property
    def step_ns(self) -> int: ...
    @property
    def message_ns(self) -> int: ...
    @property
    def task_ns(self) -> int: ...
    @property
    def dispatch_ns(self) -> int: ...
    @property
    def store_call_ns(self) -> int: ...
    @property
    def store_row_ns(self) -> int: ...


class AlikeNodes(Struct, frozen=True):
    """Equal nodes of a cluster that is not simulated."""

    count: int
    executors: tuple[ExecutorClass, ...]
    speed: float = 1.0
    cluster: int = 0
    memory_bytes: int = 0


class _NoCosts(Struct, frozen=True):
    latency_ns: int = 0
    net_bytes_per_s: float = 1e18
    cluster_bytes_per_s: float = 1e18
    step_ns: int = 0
    message_ns: int = 0
    task_ns: int = 0
    dispatch_ns: int = 0
    store_call_ns: int = 0
    store_row_ns: int = 0


NO_COSTS: CostModel = _NoCosts()
"""Where nothing is known of the costs: only what tasks themselves take counts."""


def first_start_ns(costs: CostModel) -> int:
    """No run begins earlier: the client's message travels, a node takes it in and hands a task to an executor."""
    return costs.latency_ns + costs.task_ns + costs.step_ns + costs.dispatch_ns


def edge_ns(costs: CostModel) -> int:
    """The least time between the end of a task and the start of a child.

    The node asks the store to commit the task, the answer says which children are ready, and a node hands one to an
    executor.
    """
    to_store_ns = costs.step_ns + costs.message_ns + costs.latency_ns + costs.store_call_ns + costs.store_row_ns
    return to_store_ns + costs.latency_ns + costs.step_ns + costs.dispatch_ns


def link_bytes_per_ns(groups: Sequence[Nodes], costs: CostModel) -> float:
    """The most that arrives at any node."""
    several = len({nodes.cluster for nodes in groups}) > 1
    fastest = max(costs.net_bytes_per_s, costs.cluster_bytes_per_s) if several else costs.net_bytes_per_s
    return fastest / 1e9


def fastest_for(groups: Sequence[Nodes], context: Context | None, cores: int) -> float:
    """The speed of the fastest node with an executor that may run such a task; 0 if there is none."""
    able = (nodes.speed for nodes in groups for one in nodes.executors if _suits(one, context, cores))
    return max(able, default=0.0)


def slots_for(groups: Sequence[Nodes], context: Context | None, cores: int) -> float:
    """How many such tasks can run at a time, those on fast nodes counting for more."""
    return sum(
        nodes.count * nodes.speed * (one.count // cores)
        for nodes in groups
        for one in nodes.executors
        if _suits(one, context, cores)
    )


def _suits(executors: ExecutorClass, context: Context | None, cores: int) -> bool:
    return executors.count >= cores and matches(context, executors.context)
