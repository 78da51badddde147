"""Chains of large objects: those that were begun are finished before new ones begin, on real workers."""

from pathlib import Path
from typing import Any

import pytest

from daws.client.cluster import Cluster
from tests.unit.client.finishing_jobs import follow, make

CHAINS = 128
LENGTH = 3


def submit_chains(cluster: Cluster, log: str) -> tuple[Any, dict[str, list[str]]]:
    """The last task, and what each task reads by name. No future is kept that another task stands for."""
    reads: dict[str, list[str]] = {}
    heads = []
    for number in range(CHAINS):
        name = f"{number}.0"
        reads[name] = []
        task = cluster.submit(make, log, name)
        for step in range(1, LENGTH):
            before, name = name, f"{number}.{step}"
            reads[name] = [before]
            task = cluster.submit(follow, log, name, task)
        heads.append((name, task))
    while len(heads) > 1:
        pairs = [heads[i : i + 2] for i in range(0, len(heads), 2)]
        heads = []
        for pair in pairs:
            name = "+".join(one for one, _ in pair)
            reads[name] = [one for one, _ in pair]
            heads.append((name, cluster.submit(follow, log, name, *[task for _, task in pair])))
    return heads[0][1], reads


def most_held(order: list[str], reads: dict[str, list[str]]) -> int:
    held: set[str] = set()
    most = 0
    for name in order:
        held.add(name)
        most = max(most, len(held))
        held -= set(reads[name])
    return most


@pytest.mark.parametrize("form", [{}, {"kind": "threads"}])
def test_two_workers_hold_few_objects_of_many_chains(form: dict[str, Any], tmp_path: Path):
    log = tmp_path / "log"
    log.touch()
    with Cluster(2, **form) as cluster:
        last, reads = submit_chains(cluster, str(log))
        last.result()
    order = log.read_text().splitlines()
    assert sorted(order) == sorted(reads)
    assert most_held(order, reads) <= 32  # of 128; with what a worker has at hand, some more than the tree is deep
