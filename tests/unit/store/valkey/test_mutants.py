"""Two of the caller's mutants; `make mutants` runs all of them."""

import pytest

from tests.sim.mutants import SOURCE, mutate
from tests.unit.store.valkey.mutants import MUTANTS, noticed_by

SAMPLE = {
    "an update is safe before disks had their time": "tests/unit/store/valkey/test_safety.py",
    "a server that went back in time is believed": "tests/unit/store/valkey/test_caller.py",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_the_text_that_a_mutant_replaces_is_there(mutant):
    source = (SOURCE / mutant.module).read_text()
    assert mutate(mutant, source) != source


@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_is_noticed(name):
    (mutant,) = [one for one in MUTANTS if one.name == name]
    assert noticed_by(mutant, [SAMPLE[name]]).startswith(SAMPLE[name])
