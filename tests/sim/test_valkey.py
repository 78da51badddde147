"""Fault seeds on the store in memory and the Valkey store side by side: all that nodes and clients really say."""

import pytest

from daws.sim import simulate
from daws.sim.worlds import run_scenario
from tests.twin import TwinStore

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_answer_the_same(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(TwinStore, "compare_every", 50)
    monkeypatch.setattr(simulate, "MemoryStore", TwinStore)
    run_scenario(seed, None)
