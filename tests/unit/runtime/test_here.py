"""What a store keeps of a session that goes on for long."""

from daws.client.cluster import Cluster
from daws.runtime.here import RETIRED_MAX
from daws.runtime.thread import ThreadCluster
from daws.store.memory.store import Shard

WAVE = 4_000


def nothing() -> None:
    pass


def fail() -> None:
    raise ValueError


def shard_of(cluster: Cluster) -> Shard:
    engine = cluster._open().engine
    assert isinstance(engine, ThreadCluster)
    return engine.store.shards[0]


def test_what_nobody_holds_any_more_takes_no_room():
    with Cluster(workers=2) as cluster:
        shard = shard_of(cluster)
        for _ in range(8):
            cluster.gather([cluster.submit(nothing) for _ in range(WAVE)])
            assert len(shard.records) <= RETIRED_MAX + 2 * WAVE and len(shard.log) <= WAVE
        assert sum(record is not None for record in list(shard.records.values())) <= WAVE


def test_tasks_of_chains_and_tasks_that_fail_go_too():
    with Cluster(workers=1) as cluster:
        engine, shard = cluster._open().engine, shard_of(cluster)
        for _ in range(300):
            last = cluster.submit(abs, -1)
            for _ in range(3):
                last = cluster.submit(abs, last)
            assert last.result() == 1
            assert isinstance(cluster.submit(fail).exception(), ValueError)
        del last
        engine.wake()
        assert cluster.submit(abs, -1).result() == 1
        left = [task for task, record in list(shard.records.items()) if record is not None]
        assert len(left) < 150, left  # that failures were spread is told to the store for many at a time
