"""Describing a simulated cluster: how many nodes, with which executors, how fast, in which clusters."""

from msgspec import Struct

from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.context import Context
from daws.model.errors import ClusterError

NODE_COUNT_MAX = 10_000_000
CORE_COUNT_MAX = 100_000


class NodeGroup(Struct, frozen=True):
    """`count` equal nodes. `contexts` are the labels of their executors: one executor class each, or plain ones if empty."""

    count: int
    cores: int = 2
    speed: float = 1.0
    cluster: int = 0
    contexts: tuple[Context | None, ...] = (None,)


class Cluster(Struct, frozen=True):
    """Groups of nodes, in the order of their ids."""

    groups: tuple[NodeGroup, ...]

    def infos(self) -> tuple[NodeInfo, ...]:
        infos: list[NodeInfo] = []
        for group in self.groups:
            executors = tuple(ExecutorClass(group.cores, context) for context in group.contexts)
            for _ in range(group.count):
                infos.append(NodeInfo(len(infos), executors, group.cluster, group.speed))
        return tuple(infos)

    @property
    def node_count(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def core_count(self) -> int:
        return sum(group.count * group.cores * len(group.contexts) for group in self.groups)


def cluster_of(nodes: int, cores: int = 2, clusters: int = 1, slow: float = 0.0, slow_speed: float = 0.5) -> Cluster:
    """Equal nodes in `clusters` equal clusters, a share of which (`slow`) runs at another speed."""
    if not 1 <= nodes <= NODE_COUNT_MAX:
        raise ClusterError(f"nodes={nodes}: a cluster has between 1 and {NODE_COUNT_MAX} nodes")
    if not 1 <= cores <= CORE_COUNT_MAX:
        raise ClusterError(f"cores={cores}: a node has between 1 and {CORE_COUNT_MAX} cores")
    if not 1 <= clusters <= nodes:
        raise ClusterError(f"clusters={clusters}: {nodes} nodes can form between 1 and {nodes} clusters")
    if not 0 <= slow <= 1:
        raise ClusterError(f"slow={slow}: the share of slow nodes is between 0 and 1")
    if not 0 < slow_speed <= 1000:
        raise ClusterError(f"slow-speed={slow_speed}: a speed is above 0 and at most 1000")
    groups: list[NodeGroup] = []
    for cluster in range(clusters):
        count = nodes * (cluster + 1) // clusters - nodes * cluster // clusters
        late = round(count * slow)
        if count - late:
            groups.append(NodeGroup(count - late, cores, 1.0, cluster))
        if late:
            groups.append(NodeGroup(late, cores, slow_speed, cluster))
    return Cluster(tuple(groups))
