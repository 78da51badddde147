"""Some of the session machine's mutants; `make mutants` runs all of them."""

import pytest

from tests.sim.mutants import SOURCE, mutate
from tests.sim.mutations import Mutant
from tests.unit.core.mutants import MUTANTS, TESTS
from tests.unit.store.valkey.mutants import noticed_by

SAMPLE = (
    "tasks are handed out before they are safe",
    "tasks of a dead home are handed out to it",
    "after a failover the log is read on",
    "a client leaves before its tasks are safe",
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_the_text_that_a_mutant_replaces_is_there(mutant: Mutant):
    source = (SOURCE / mutant.module).read_text()
    assert mutate(mutant, source) != source


@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_is_noticed(name: str):
    (mutant,) = [one for one in MUTANTS if one.name == name]
    assert noticed_by(mutant, TESTS).startswith("tests/unit/core/")
