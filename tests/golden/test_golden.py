"""Yesterday's nodes did the same as today's; and a run is one number, whatever the hash seed."""

import os
import subprocess
import sys

import pytest

from daws.core.journal import Journal, replay
from tests.golden.record import RECIPES, path_of, record

SCRIPT = """
from daws.sim.cluster import cluster_of
from daws.sim.simulate import Settings, simulate
from daws.strategy import PRESETS, parse_strategy
from daws.workloads import parse_workload

for number, name in enumerate(PRESETS):
    kind = ("random:tasks=60,output-mb=2", "all-pairs:files=6", "fan-out:tasks=60,degree=5")[number % 3]
    graph = parse_workload(kind).build(5, 2, 3)
    result, _ = simulate(graph, cluster_of(5, 2), parse_strategy(name), Settings(seed=3, shards=2, digest=True))
    print(name, result.digest)
"""


@pytest.mark.parametrize("name", RECIPES)
def test_a_recorded_node_does_the_same_again(name: str):
    journal = Journal.from_bytes(path_of(name).read_bytes())
    difference = replay(journal)
    assert difference is None, f"{difference}\n(if this is meant to be: python -m tests.golden.record)"


@pytest.mark.parametrize("name", RECIPES)
def test_a_simulation_gives_a_node_what_it_was_given(name: str):
    assert record(name).to_bytes() == path_of(name).read_bytes(), (
        "if this is meant to be: python -m tests.golden.record"
    )


def test_the_journals_are_small():
    assert sum(path_of(name).stat().st_size for name in RECIPES) < 40_000


def test_a_run_is_the_same_under_every_hash_seed():
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "1", "random")
    ]
    digests = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert digests[0] == digests[1] == digests[2]
    lines = dict(line.split() for line in digests[0].splitlines())
    assert len(set(lines.values())) > 3, "nothing was digested"
