"""Seeds keep their meaning."""

import json
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from daws.sim.worlds import RANGES, draw_scenario
from daws.sim.worlds.corpus import RANGE_SEEDS
from tests.sim import corpus


def test_remembered_seeds_mean_what_they_meant():
    before = corpus.recorded()
    assert set(corpus.remembered()) <= set(before), "python -m tests.sim.corpus --record adds new seeds"
    found = corpus.fingerprints(list(before))
    assert found == before


def test_a_fingerprint_covers_graph_strategy_plan_and_aimed_faults():
    one = draw_scenario(0)
    other = draw_scenario(1)
    longer = one.graph.changed(length_ns=one.graph.length_ns + np.int64(1))
    changes: list[dict[str, Any]] = [
        {"graph": longer},
        {"strategy": other.strategy},
        {"plan": structs.replace(one.plan, loss=0.5)},
        {"late_clears": 7},
        {"shards": one.shards + 1},
    ]
    prints = {corpus.fingerprint(structs.replace(one, **change)) for change in [{}, *changes]}
    assert len(prints) == len(changes) + 1


def test_ranges_follow_one_another_and_seeds_outside_are_refused():
    assert [one.first for one in RANGES] == [number * RANGE_SEEDS for number in range(len(RANGES))]
    for seed in (-1, len(RANGES) * RANGE_SEEDS):
        with pytest.raises(ValueError, match="no world has seed"):
            draw_scenario(seed)


def test_a_seed_that_means_something_else_is_named(tmp_path, monkeypatch, capsys):
    table = tmp_path / "corpus.json"
    table.write_text(json.dumps({"0": "nothing", "1": corpus.fingerprint(draw_scenario(1))}))
    monkeypatch.setattr(corpus, "RECORDED", table)
    assert corpus.main([]) == 1
    assert "1 of 2 seeds mean what they meant\ndifferent: 0\n" in capsys.readouterr().out
