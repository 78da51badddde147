"""A view of a node that never was, and short ways to make tasks and members."""

from dataclasses import dataclass, field

from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.context import parse_context
from daws.model.task import Input, Needs, NodeId, Ready, TaskSpec
from daws.strategy.decisions import Lately


def members_of(count: int, cores: int = 2, contexts: dict[int, str] | None = None, clusters: int = 1) -> Members:
    """Nodes 0 .. count - 1; `contexts` names what some of them offer, `clusters` deals them out in turn."""
    offered = contexts or {}
    return Members(
        1,
        tuple(
            NodeInfo(i, (ExecutorClass(cores, parse_context(offered.get(i, ""))),), cluster=i % clusters)
            for i in range(count)
        ),
    )


ObjectAt = tuple[int, int, int, tuple[int, ...]]
"""An input without its value, which no decision looks at."""


def ready_of(
    *inputs: ObjectAt,
    context: str = "",
    cores: int = 1,
    priority: int = 0,
    rank: int = 0,
    home: NodeId = -1,
    planned: bool = False,
) -> Ready:
    needs = Needs(cores, parse_context(context)) if context or cores > 1 else None
    objects = tuple(item[0] for item in inputs)
    spec = TaskSpec(1, inputs=objects, needs=needs, priority=priority, rank=rank, home=home, planned=planned)
    return Ready(spec, 1, 1, tuple(Input(*item, b"") for item in inputs))


@dataclass
class FakeView:
    node: NodeId = 0
    now_ns: int = 0
    members: Members = field(default_factory=lambda: members_of(4))
    cores: int = 2
    net_bytes_per_s: float = 1e9
    threshold: float = 0.5
    tt_ns: int = 100_000_000
    relaxing: bool = True
    poll_ns: int = 1_000_000
    neighbour_count: int = 4
    done_count: int = 0
    run_ns: int = 0
    mean_run_ns: int = 0  # follows from the two above
    idle_since_ns: int = 0
    moved_bytes: int = 0
    read_bytes: int = 0
    failed_steals: int = 0
    stalled_ns: int = 0
    copied: dict[int, int] = field(default_factory=dict)
    shared_count: int = 0
    dedicated_count: int = 0
    idle_count: int = 0
    mean_ns: int = 1_000_000_000
    adapted: tuple[int, int, int, int] = (0, 0, 0, 0)
    objects: frozenset[int] = frozenset()
    strays: frozenset[int] = frozenset()
    quantile: int = 0
    loads: dict[NodeId, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.done_count:
            self.mean_run_ns = self.run_ns // self.done_count

    @property
    def lately(self) -> Lately:
        now = (self.done_count, self.run_ns, self.moved_bytes, self.read_bytes)
        return Lately(*[count - before for count, before in zip(now, self.adapted, strict=True)])

    def estimate_ns(self, spec: TaskSpec) -> int:
        return self.mean_ns

    def has(self, object_: int) -> bool:
        return object_ in self.objects

    def strayed(self, object_: int) -> bool:
        return object_ in self.strays

    def load_of(self, node: NodeId) -> int:
        return self.loads.get(node, -1)

    def heard_of(self, most: int) -> list[NodeId]:
        return [node for node in self.loads if node != self.node][:most]

    def quantile_ns(self, spec: TaskSpec, share: float, least: int) -> int:
        return self.quantile
