"""Each rule can be taken out, and it shows.

`make mutants` hunts every mutant from the first seed on; here those seeds come first that are known to notice it.
"""

import pytest

from tests.sim.mutants import SOURCE, StaleMutant, fails_anyway, hunt, known_seeds, main, mutate
from tests.sim.mutations import MUTANTS, RULES, Mutant

MORE_SEEDS = 60
"""Tried if the known seeds notice nothing any more, as may happen when the core does things at other times."""
NAMES = [one.name for one in MUTANTS]


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_every_mutant_is_noticed(mutant):
    known = known_seeds().get(mutant.name, [])
    found = hunt(mutant, [*known, *(seed for seed in range(MORE_SEEDS) if seed not in known)])
    assert found.seed >= 0, (
        f"rule {mutant.rule} ({RULES[mutant.rule]}) can be broken unnoticed: {mutant.name}; {found.message}\n"
        "python -m tests.sim.mutants --record looks for seeds that do notice"
    )
    assert not fails_anyway(found.seed), f"seed {found.seed} fails without the mutant too"


def test_every_rule_has_mutants():
    assert {one.rule for one in MUTANTS} == set(RULES) == set(range(1, 11))
    for rule in range(1, 6):
        assert sum(one.rule == rule for one in MUTANTS) >= 3
    assert len(MUTANTS) == len(set(NAMES)) >= 24


def test_the_table_names_living_mutants():
    assert set(known_seeds()) <= set(NAMES)


def test_a_mutant_of_text_that_is_gone_is_an_error():
    mutant = Mutant("it rots", 1, "store/memory.py", "no such text", "anything")
    with pytest.raises(StaleMutant, match=r"'it rots': .* has the text that it replaces 0 times"):
        mutate(mutant, (SOURCE / mutant.module).read_text())


def test_a_harmless_mutant_survives_and_one_that_cannot_start_is_told_apart(monkeypatch, capsys):
    line = '"""The store in one process'
    harmless = Mutant("harmless", 1, "store/memory.py", line, f"# nothing\n{line}")
    broken = Mutant("broken", 1, "store/memory.py", line, f"import nothing_of_the_kind\n{line}")
    monkeypatch.setattr("tests.sim.mutants.MUTANTS", (harmless, broken))
    assert main(["--seeds", "2"]) == 1
    out = capsys.readouterr().out
    assert "SURVIVES 2 seeds" in out and "does not even start: ModuleNotFoundError" in out
