"""The host process is left alone: its garbage collector and scheduling class change on request alone."""

import gc
import os
import threading
from collections.abc import Iterator

import pytest

import daws
from daws.client import tuning


@pytest.fixture(autouse=True)
def default() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_thresholds_are_raised_until_the_last_cluster_is_closed():
    tuning.begin()
    tuning.begin()
    assert gc.get_threshold() == tuning.TUNED
    tuning.end()
    assert gc.get_threshold() == tuning.TUNED
    tuning.end()
    assert gc.get_threshold() == (700, 10, 10)


def test_thresholds_of_the_program_stay():
    gc.set_threshold(1234, 5, 6)
    tuning.begin()
    assert gc.get_threshold() == (1234, 5, 6)
    gc.set_threshold(4321, 5, 6)
    tuning.end()
    assert gc.get_threshold() == (4321, 5, 6)


def scheduling_classes() -> set[int]:
    return {os.sched_getscheduler(thread.native_id) for thread in threading.enumerate() if thread.native_id}


def busy(count: int) -> int:
    return sum(range(count))


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_cluster_changes_nothing_in_the_process_of_its_client(nodes: int):
    seen = set()
    before = gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()
    with daws.Cluster(workers=1, nodes=nodes) as cluster:
        futures = [cluster.submit(busy, 20_000) for _ in range(300)]  # more than one at hand for each worker
        for future in futures:
            future.result()
            seen |= scheduling_classes()
        assert (gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()) == before
    assert seen == {os.SCHED_OTHER}


def test_with_tune_it_does():
    seen = set()
    with daws.Cluster(workers=1, tune=True) as cluster:
        assert gc.get_threshold() == tuning.TUNED
        futures = [cluster.submit(busy, 20_000) for _ in range(300)]
        for future in futures:
            future.result()
            seen |= scheduling_classes()
    assert gc.get_threshold() == (700, 10, 10)
    assert os.SCHED_BATCH in seen


def test_what_tune_takes():
    with pytest.raises(daws.UsageError, match="tune='yes': give True or False"):
        daws.Cluster(tune="yes")  # type: ignore[arg-type]
