"""The description of a simulated cluster: how many nodes, with which executors, how fast, in which clusters."""

import re
from numbers import Integral

from msgspec import Struct

from daws.model.cluster import ExecutorClass, NodeInfo
from daws.model.context import parse_context
from daws.model.errors import ClusterError
from daws.model.numbers import read_number, read_whole

NODE_COUNT_MAX = 1_000_000
CORE_COUNT_MAX = 100_000
CORE_TOTAL_MAX = 10_000_000
SPEED_MAX = 1000.0
MEMORY_GB_MAX = 1e6
BYTES_PER_GB = 1e9

_GROUP = re.compile(r"(?P<count>\d{1,12})x(?P<executors>[^:]+)(?::(?P<keys>.*))?", re.ASCII)
_EXECUTORS = re.compile(r"(?P<count>\d{1,12})(?:\[(?P<context>[^\[\]]*)\])?", re.ASCII)
_PLUS = re.compile(r"\+(?![^\[\]]*\])")  # not those inside brackets
_MEMORY = f"more than 0 and at most {MEMORY_GB_MAX:.0f} GB of memory, or no limit if it is not given"
_POOL = re.compile(r"[A-Za-z0-9_.-]{1,100}", re.ASCII)
_KEYS = ("speed", "cluster", "memory-gb", "pool", "steals")
_GROUP_FORM = "NODESxCORES[:speed=S,cluster=K,memory-gb=G,pool=P,steals=P+Q], where CORES is 8, 8[gpu>any] or 8+1[gpu]"


class NodeGroup(Struct, frozen=True):
    """`count` equal nodes. Each executor is one core; those that offer the same context form a class.

    `memory_bytes` is what tasks that run on a node together may declare to need; 0 is without limit. `pool` and
    `steals_from` are as in `NodeInfo`.
    """

    count: int
    executors: tuple[ExecutorClass, ...] = (ExecutorClass(2),)
    speed: float = 1.0
    cluster: int = 0
    memory_bytes: int = 0
    pool: str = ""
    steals_from: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (*filter(None, (self.pool,)), *self.steals_from):
            if not _POOL.fullmatch(name):
                raise ClusterError(f"pool {_shown(name)}: a name has 1 to 100 letters, digits and any of _ . -")
        _check_range("nodes", self.count, NODE_COUNT_MAX, "a group has", "nodes")
        for one in self.executors:
            _check_range("cores", one.count, CORE_COUNT_MAX, "a class of executors has", "cores")
        _check_range("cores", self.cores, CORE_COUNT_MAX, "a node has", "cores")
        _check_speed("speed", self.speed)
        if not _is_whole(self.cluster) or not 0 <= self.cluster < NODE_COUNT_MAX:
            raise ClusterError(f"cluster={self.cluster}: clusters are numbered from 0 to {NODE_COUNT_MAX - 1}")
        if not _is_whole(self.memory_bytes) or not 0 <= self.memory_bytes <= MEMORY_GB_MAX * BYTES_PER_GB:
            raise ClusterError(f"memory_bytes={self.memory_bytes}: a node has {_MEMORY}")

    @property
    def cores(self) -> int:
        """The number of cores of one node."""
        return sum(one.count for one in self.executors)


class SimulatedCluster(Struct, frozen=True):
    """Groups of nodes, in the order of their ids; ClusterError if there are none or too many to simulate."""

    groups: tuple[NodeGroup, ...]

    def __post_init__(self) -> None:
        _check_range("nodes", self.node_count, NODE_COUNT_MAX, "a cluster has", "nodes")
        _check_range("cores", self.core_count, CORE_TOTAL_MAX, "all nodes together have", "cores")
        pools = dict.fromkeys(group.pool for group in self.groups if group.pool)
        for name in (name for group in self.groups for name in group.steals_from if name not in pools):
            raise ClusterError(f"steals={name}: no node is in this pool; the pools are {', '.join(pools) or 'none'}")

    def infos(self) -> tuple[NodeInfo, ...]:
        infos: list[NodeInfo] = []
        for group in self.groups:
            for _ in range(group.count):
                infos.append(
                    NodeInfo(
                        *(len(infos), group.executors, group.cluster, group.speed, group.memory_bytes),
                        *(group.pool, group.steals_from),
                    )
                )
        return tuple(infos)

    @property
    def node_count(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def core_count(self) -> int:
        """The number of cores of all nodes together."""
        return sum(group.count * group.cores for group in self.groups)

    @property
    def capacity(self) -> float:
        """Seconds of work (as measured on a node of speed 1) that all cores do in a second."""
        return sum(group.count * group.cores * group.speed for group in self.groups)

    @property
    def cores_per_node(self) -> int:
        """The number of cores of each node, or 0 if nodes differ."""
        sizes = {group.cores for group in self.groups}
        return sizes.pop() if len(sizes) == 1 else 0


def cluster_of(
    nodes: int,
    cores: int = 2,
    clusters: int = 1,
    slow: float = 0.0,
    slow_speed: float = 0.5,
    memory_bytes: int = 0,
) -> SimulatedCluster:
    """Equal nodes in `clusters` equal clusters; a share of each (`slow`) runs at another speed."""
    _check_range("nodes", nodes, NODE_COUNT_MAX, "a cluster has", "nodes")
    _check_range("cores", cores, CORE_COUNT_MAX, "a node has", "cores")
    if not _is_whole(clusters) or not 1 <= clusters <= nodes:
        raise ClusterError(f"clusters={clusters}: {nodes} nodes can form between 1 and {nodes} clusters")
    if not 0 <= slow <= 1:
        raise ClusterError(f"slow={slow:g}: the share of slow nodes is between 0 and 1")
    _check_speed("slow-speed", slow_speed)
    groups: list[NodeGroup] = []
    executors = (ExecutorClass(cores),)
    for cluster in range(clusters):
        count = nodes * (cluster + 1) // clusters - nodes * cluster // clusters
        late = round(count * slow)
        if count - late:
            groups.append(NodeGroup(count - late, executors, 1.0, cluster, memory_bytes))
        if late:
            groups.append(NodeGroup(late, executors, slow_speed, cluster, memory_bytes))
    return joined(groups)


def joined(groups: list[NodeGroup]) -> SimulatedCluster:
    """The cluster made of these groups."""
    return SimulatedCluster(tuple(groups))


def parse_group(text: str) -> NodeGroup:
    """Read `16x8` (16 nodes of 8 cores), `4x2[gpu>any]:speed=2,memory-gb=64`, or `4x8+1[gpu]` (two sorts of executors).

    The text in brackets is the context that these executors offer, as `parse_context` reads it.
    """
    found = _GROUP.fullmatch(text.strip())
    if found is None:
        raise ClusterError(f"group {_shown(text)}: expected {_GROUP_FORM}")
    count = int(found["count"])
    _check_range("nodes", count, NODE_COUNT_MAX, f"group {_shown(text)} has", "nodes")
    executors = tuple(_parse_executors(part, text) for part in _PLUS.split(found["executors"]))
    _check_range(
        "cores", sum(one.count for one in executors), CORE_COUNT_MAX, f"a node of group {_shown(text)} has", "cores"
    )
    return NodeGroup(count, executors, *_parse_keys(found["keys"], text))


def _parse_executors(part: str, text: str) -> ExecutorClass:
    found = _EXECUTORS.fullmatch(part.strip())
    if found is None or found["context"] == "":
        raise ClusterError(f"group {_shown(text)}: cannot read {_shown(part)}; expected {_GROUP_FORM}")
    _check_range("cores", int(found["count"]), CORE_COUNT_MAX, "a node has", "cores")
    return ExecutorClass(int(found["count"]), parse_context(found["context"] or ""))


def memory_of(gigabytes: float) -> int:
    """Convert GB to bytes. Raise ClusterError if no node has this much memory, or this little."""
    if not 0 < gigabytes <= MEMORY_GB_MAX:
        raise ClusterError(f"memory-gb={gigabytes:g}: a node has {_MEMORY}")
    return max(1, round(gigabytes * BYTES_PER_GB))


def _parse_keys(text: str | None, whole: str) -> tuple[float, int, int, str, tuple[str, ...]]:
    given: dict[str, str] = {}
    for pair in text.split(",") if text is not None else ():
        key, _, value = (part.strip() for part in pair.partition("="))
        if key not in _KEYS or key in given:
            keys = "=…, ".join(_KEYS)
            raise ClusterError(f"group {_shown(whole)}: expected {keys}=… once each, not {_shown(pair)}")
        if key in ("pool", "steals"):
            if not all(map(_POOL.fullmatch, value.split("+") if key == "steals" else (value,))):
                raise ClusterError(f"group {_shown(whole)}: {key}={_shown(value)} is not the name of a pool")
        elif read_number(value) is None:
            raise ClusterError(f"group {_shown(whole)}: {key}={_shown(value)} is not a number")
        given[key] = value
    speed = float(given.get("speed", "1"))
    _check_speed("speed", speed)
    cluster = read_whole(given.get("cluster", "0"))
    if cluster is None or not 0 <= cluster < NODE_COUNT_MAX:
        raise ClusterError(f"cluster={given['cluster']}: clusters are numbered from 0 to {NODE_COUNT_MAX - 1}")
    memory_bytes = memory_of(float(given["memory-gb"])) if "memory-gb" in given else 0
    steals = tuple(given["steals"].split("+")) if "steals" in given else ()
    return speed, cluster, memory_bytes, given.get("pool", ""), steals


def _check_range(key: str, value: int, high: int, whose: str, what: str) -> None:
    if not _is_whole(value):
        raise ClusterError(f"{key}={value!r} is not a whole number")
    if not 1 <= value <= high:
        raise ClusterError(f"{key}={value}: {whose} between 1 and {high} {what}")


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_speed(key: str, value: float) -> None:
    if not 0.001 <= value <= SPEED_MAX:
        raise ClusterError(f"{key}={value:g}: a speed is between 0.001 and {SPEED_MAX:g} times that of a plain node")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
