"""Clusters as values and as text."""

import pytest

from daws.model.cluster import ExecutorClass
from daws.model.context import parse_context
from daws.model.errors import ClusterError, ContextError, UsageError
from daws.sim.cluster import NodeGroup, SimulatedCluster, cluster_of, joined, parse_group


def test_equal_nodes():
    cluster = cluster_of(5, 3)
    assert [(info.id, info.cores, info.speed, info.cluster) for info in cluster.infos()] == [
        (i, 3, 1.0, 0) for i in range(5)
    ]
    assert (cluster.node_count, cluster.core_count, cluster.cores_per_node, cluster.capacity) == (5, 15, 3, 15.0)


def test_clusters_and_slow_nodes():
    infos = cluster_of(10, 2, clusters=3, slow=0.5, slow_speed=0.25).infos()
    assert [info.cluster for info in infos] == [0] * 3 + [1] * 3 + [2] * 4
    assert [info.speed for info in infos].count(0.25) == 6  # half of 3, 3 and 4, each rounded
    assert [info.id for info in infos] == list(range(10))
    assert {info.speed for info in cluster_of(4, slow=1.0, slow_speed=2.0).infos()} == {2.0}


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": 0},
        {"nodes": -1},
        {"nodes": 1_000_001},
        {"nodes": 2.5},
        {"nodes": True},
        {"cores": 1.5},
        {"clusters": 1.5},
        {"cores": 0},
        {"cores": 100_001},
        {"nodes": 1_000_000, "cores": 11},
        {"clusters": 0},
        {"clusters": 5},
        {"slow": -0.1},
        {"slow": 1.1},
        {"slow_speed": 0.0},
        {"slow_speed": 1e9},
    ],
)
def test_impossible_clusters_are_refused(wrong):
    with pytest.raises(ClusterError, match=next(reversed(wrong)).replace("_", "-")):
        cluster_of(**{"nodes": 4, "cores": 2} | wrong)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SimulatedCluster(()), "nodes=0: a cluster has between 1 and 1000000 nodes"),
        (lambda: SimulatedCluster((NodeGroup(600_000), NodeGroup(600_000))), "nodes=1200000: a cluster has"),
        (lambda: NodeGroup(-2), "nodes=-2: a group has between 1 and 1000000 nodes"),
        (
            lambda: NodeGroup(float(1)),  # type: ignore[arg-type]
            r"nodes=1\.0 is not a whole number",
        ),
        (lambda: NodeGroup(1, ()), "cores=0: a node has between 1 and 100000 cores"),
        (lambda: NodeGroup(1, (ExecutorClass(3), ExecutorClass(-1))), "cores=-1: a class of executors has"),
        (lambda: NodeGroup(1, speed=0.0), "speed=0: a speed is"),
        (lambda: NodeGroup(1, cluster=-1), "cluster=-1: clusters are numbered from 0"),
    ],
)
def test_impossible_values_are_refused_in_one_line(make, message):
    with pytest.raises(ClusterError, match=f"^{message}.*$"):
        make()


def test_groups_as_text():
    gpu = parse_context("gpu>any")
    assert parse_group("16x8") == NodeGroup(16, (ExecutorClass(8),))
    assert parse_group(" 4x2[gpu>any]:speed=2.5,cluster=1 ") == NodeGroup(4, (ExecutorClass(2, gpu),), 2.5, 1)
    assert parse_group("1x8+1[c++|gpu@1..3]").executors == (
        ExecutorClass(8),
        ExecutorClass(1, parse_context("c++|gpu@1..3")),
    )


def test_groups_say_their_memory():
    assert parse_group("4x2:memory-gb=1.5") == NodeGroup(4, (ExecutorClass(2),), memory_bytes=1_500_000_000)
    assert parse_group("4x2:speed=25e-1,cluster=1e0") == NodeGroup(4, (ExecutorClass(2),), 2.5, 1)
    assert parse_group("4x2:speed=2,memory-gb=64,cluster=1").memory_bytes == 64 * 10**9
    cluster = joined([parse_group("1x2"), parse_group("1x2:memory-gb=2")])
    assert [info.memory_bytes for info in cluster.infos()] == [0, 2 * 10**9]
    assert {info.memory_bytes for info in cluster_of(4, slow=0.5, memory_bytes=7).infos()} == {7}
    for text in ("4x2:memory-gb=0", "4x2:memory-gb=1e9", "4x2:memory-gb=2000000", "4x2:memory=1"):
        with pytest.raises(ClusterError, match="memory"):
            parse_group(text)
    with pytest.raises(ClusterError, match="memory_bytes=-1: a node has more than 0"):
        NodeGroup(1, memory_bytes=-1)


def test_groups_name_pools():
    group = parse_group("4x2:pool=slow,steals=slow+fast")
    assert group == NodeGroup(4, (ExecutorClass(2),), pool="slow", steals_from=("slow", "fast"))
    info = joined([group, parse_group("1x1:pool=fast")]).infos()[0]
    assert (info.pool, info.steals_from) == ("slow", ("slow", "fast"))
    with pytest.raises(ClusterError, match=r"^steals=fast: no node is in this pool; the pools are slow$"):
        joined([group])
    for text in ("4x2:pool=", "4x2:pool=a+b", "4x2:steals=a+", "4x2:pool=a b"):
        with pytest.raises(ClusterError, match="is not the name of a pool"):
            parse_group(text)
    with pytest.raises(ClusterError, match="pool 'a,b'"):
        NodeGroup(1, pool="a,b")


def test_unlike_groups_make_one_cluster():
    cluster = joined([parse_group("2x4"), parse_group("1x1+1[gpu]:speed=3,cluster=1")])
    assert [(info.id, info.cores, info.cluster, info.speed) for info in cluster.infos()] == [
        (0, 4, 0, 1.0),
        (1, 4, 0, 1.0),
        (2, 2, 1, 3.0),
    ]
    assert (cluster.core_count, cluster.cores_per_node, cluster.capacity) == (10, 0, 14.0)
    with pytest.raises(ClusterError, match="nodes=0"):
        joined([])


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "x",
            "4",
            "4x",
            "x4",
            "0x2",
            "4x0",
            "4x2+0",
            "-4x2",
            "4x2[",
            "4x2[]",
            "4x2[gpu",
            "4x2]",
            "٤x2",
            "4x2[a=b]",
        ),
        *("4x2:", "4x2:speed", "4x2:speed=", "4x2:speed=0", "4x2:speed=nan", "4x2:speed=-1", "4x2:speed=1,speed=1"),
        *("4x2:speed=1e30", "4x2:cluster=1.5", "4x2:cluster=-1", "4x2:memory-gb=1e999"),
        *(
            "4x2:cluster=0.5",
            "4x2:cluster=9999999",
            "4x2:colour=red",
            "9999999x1",
            "1x999999",
            "1x50000+50001",
            "4x2[@1]",
        ),
    ],
)
def test_unreadable_groups_are_refused_in_one_line(text):
    with pytest.raises(UsageError) as refused:
        parse_group(text)
    assert isinstance(refused.value, ClusterError | ContextError)
    assert "\n" not in str(refused.value)
