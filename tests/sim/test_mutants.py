"""Each rule can be taken out, and it shows.

`make mutants` hunts every mutant from the first seed on; here those seeds come first that are known to notice it, and
one of them is enough.
"""

import json

import pytest

from tests.sim.mutants import (
    KEPT,
    MUTANTS,
    SOURCE,
    Hunter,
    StaleMutant,
    fails_anyway,
    hunt_soundly,
    in_order,
    known_seeds,
    main,
    mutate,
)
from tests.sim.mutations import RULES, Mutant

MORE_SEEDS = 60
"""Tried if the known seeds notice nothing any more, as may happen when the core does things at other times."""
NAMES = [one.name for one in MUTANTS]
STORE = "store/memory/store.py"
LINE = '"""The state of the store in memory'
HARMLESS = Mutant("harmless", 1, STORE, LINE, f"# nothing\n{LINE}")
BROKEN = Mutant("broken", 1, STORE, LINE, f"import nothing_of_the_kind\n{LINE}")
DEADLY = Mutant("deadly", 3, STORE, LINE, f"import os\n\nos._exit(3)\n{LINE}")
WILD = Mutant("wild", 2, "core/transfer.py", "    begin_claim(core, ready, core.node, why)\n", "    1 / 0\n")
ROTTEN = Mutant("it rots", 1, STORE, "no such text", "anything")


@pytest.fixture(scope="module")
def hunter():
    one = Hunter()
    yield one
    one.close()


@pytest.fixture
def table(tmp_path, monkeypatch):
    path = tmp_path / "seeds.json"
    monkeypatch.setattr("tests.sim.mutants.TABLE", path)
    return path


def choose(monkeypatch, *mutants):
    monkeypatch.setattr("tests.sim.mutants.MUTANTS", mutants)


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_every_mutant_is_noticed(mutant, hunter):
    known = known_seeds().get(mutant.name, [])
    found = hunt_soundly(hunter, mutant, known)
    if not found.caught:
        found = hunt_soundly(hunter, mutant, in_order(mutant, 5 * MORE_SEEDS, known)[:MORE_SEEDS])
    assert found.caught, (
        f"rule {mutant.rule} ({RULES[mutant.rule]}) can be broken unnoticed: {mutant.name}; {found.message}\n"
        "python -m tests.sim.mutants --record looks for seeds that do notice"
    )
    seen = found.caught[0].message
    assert not seen.startswith("NameError"), f"it is not a rule that {mutant.name!r} takes out, but a name: {seen}"


def test_every_rule_has_mutants():
    assert {one.rule for one in MUTANTS} == set(RULES) == set(range(1, 12))
    for rule in RULES:
        assert sum(one.rule == rule for one in MUTANTS) >= 3
    assert len(MUTANTS) == len(set(NAMES)) >= 24
    assert [one.rule for one in MUTANTS] == sorted(one.rule for one in MUTANTS)


def test_the_table_names_living_mutants():
    table = known_seeds()
    assert set(table) <= set(NAMES)
    assert all(0 < len(seeds) <= KEPT for seeds in table.values())


def test_a_mutant_of_text_that_is_gone_is_an_error():
    with pytest.raises(StaleMutant, match=r"'it rots': .* has the text that it replaces 0 times"):
        mutate(ROTTEN, (SOURCE / ROTTEN.module).read_text())


def test_survivors_and_those_that_cannot_be_hunted_are_told_apart(monkeypatch, capsys):
    choose(monkeypatch, HARMLESS, BROKEN, DEADLY, ROTTEN)
    assert main(["--seeds", "2", "--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert "SURVIVES 2 seeds" in out and "does not even start: ModuleNotFoundError" in out
    assert "its process died" in out and "'it rots'" in out and "0 of 4 mutants caught" in out


def test_seeds_are_recorded_and_kept_while_they_notice(monkeypatch, capsys, table):
    choose(monkeypatch, WILD)
    assert main(["--record", "--jobs", "1", "--seeds", "30"]) == 0
    first = json.loads(table.read_text())["wild"]
    assert len(first) > 1
    table.write_text(json.dumps({"wild": first[:2], "gone": [1]}))
    assert main(["--record", "--jobs", "1", "--seeds", "0"]) == 0
    assert json.loads(table.read_text()) == {"wild": first[:2]}
    assert "(2 tried)" in capsys.readouterr().out


def test_seeds_that_notice_nothing_any_more_are_replaced(monkeypatch, table, hunter):
    choose(monkeypatch, WILD)
    deaf = next(seed for seed in range(100) if not hunter.hunt(WILD, [seed]).caught)
    table.write_text(json.dumps({"wild": [deaf]}))
    assert main(["--record", "--jobs", "1", "--seeds", "30"]) == 0
    assert deaf not in json.loads(table.read_text())["wild"]


def test_a_seed_that_fails_anyway_has_noticed_nothing(monkeypatch, hunter):
    found = hunt_soundly(hunter, WILD, range(30), 2)
    first, second = (one.seed for one in found.caught)
    monkeypatch.setattr("tests.sim.mutants.fails_anyway", lambda seed: seed == first)
    assert [one.seed for one in hunt_soundly(hunter, WILD, range(30)).caught] == [second]


def test_a_seed_that_fails_without_a_mutant_is_told(monkeypatch, capsys):
    def fails(seed, deep=None):
        raise AssertionError("no such luck")

    monkeypatch.setattr("tests.sim.faults.run_scenario", fails)
    assert fails_anyway.__wrapped__(5)
    assert "seed 5 FAILS WITHOUT A MUTANT" in capsys.readouterr().err


def test_seeds_of_promising_scenarios_come_first():
    mutant = Mutant("any", 1, "", "", "", where=("heirs",))
    seeds = in_order(mutant, 100, [3])
    assert seeds[0] == 30 and sorted(seeds) == [seed for seed in range(100) if seed != 3]
