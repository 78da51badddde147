"""A few nodes, a store and a client, with deliveries in any order, doubled, and with nodes that die: all tasks end.

The invariants of a node are checked after each of its steps.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daws.model.states import DONE, FAILED
from daws.strategy import PRESETS, parse_strategy
from daws.strategy.rng import SplitMix64
from daws.testing import Flock
from daws.wire.store import logged_task
from daws.workloads import parse_workload

WORKLOADS = (
    "bot:tasks=12",
    "fan-out:tasks=12,degree=3,output-mb=1",
    "fan-in:tasks=12,degree=3,output-mb=1",
    "pipeline:tasks=12,size=4,output-mb=1",
    "random:tasks=14,output-mb=1",
    "all-pairs:files=4,file-mb=1",
)


def run(preset: str, workload: str, seed: int, doubled: int = 0, deaths: int = 0, leaves: int = 0) -> Flock:
    graph = parse_workload(workload).build(3, 2, seed % 1000)
    flock = Flock(graph, parse_strategy(preset), SplitMix64(seed), doubled=doubled, deaths=deaths, leaves=leaves)
    flock.run()
    return flock


def check(flock: Flock) -> None:
    """Everything is done, and each task stands in the log once."""
    logged = [logged_task(row) for shard in flock.store.shards for row in shard.log]
    assert sorted(logged) == list(range(flock.client.graph.task_count))
    killed = {task for task, (state, error) in flock.client.ended.items() if state == FAILED and "nodes" in error}
    assert set(flock.client.ended) <= killed
    for task in set(logged) - killed:
        record = flock.store.record(task)
        assert record is None or record.state == DONE or (record.rare is not None and record.rare.remaking)


@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=20)
@given(seed=st.integers(0, 1 << 62), workload=st.sampled_from(WORKLOADS))
def test_any_order_will_do(preset: str, workload: str, seed: int):
    check(run(preset, workload, seed))


@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=20)
@given(seed=st.integers(0, 1 << 62), workload=st.sampled_from(WORKLOADS), doubled=st.integers(3, 12))
def test_anything_may_come_twice(preset: str, workload: str, seed: int, doubled: int):
    check(run(preset, workload, seed, doubled))


@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=20)
@given(
    seed=st.integers(0, 1 << 62),
    workload=st.sampled_from(WORKLOADS),
    doubled=st.sampled_from((0, 4, 10)),
    deaths=st.integers(1, 2),
)
def test_nodes_may_die(preset: str, workload: str, seed: int, doubled: int, deaths: int):
    check(run(preset, workload, seed, doubled, deaths))


@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=20)
@given(
    seed=st.integers(0, 1 << 62),
    workload=st.sampled_from(WORKLOADS),
    doubled=st.sampled_from((0, 4, 10)),
    leaves=st.integers(1, 3),
)
def test_nodes_may_leave(preset: str, workload: str, seed: int, doubled: int, leaves: int):
    flock = run(preset, workload, seed, doubled, leaves=leaves)
    check(flock)
    assert not any(flock.left.values()), "the first node stays: there is somebody to give everything to"
    records = [record for shard in flock.store.shards for record in shard.records.values() if record is not None]
    assert not any(record.attempt for record in records), "nothing began again"
