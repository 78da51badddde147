"""Two of the mutants of the store's server and the driver of a session; `make mutants` runs all of them."""

import pytest

from tests.sim.mutants import SOURCE, mutate
from tests.sim.mutations import Mutant
from tests.unit.runtime.cluster.mutants import FOLDER, MUTANTS
from tests.unit.store.valkey.mutants import noticed_by

SAMPLE = {
    "an old link cuts off the client that is back": f"{FOLDER}/test_serving.py",
    "answers of an earlier life count": f"{FOLDER}/direct/test_calls.py",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_the_text_that_a_mutant_replaces_is_there(mutant: Mutant):
    source = (SOURCE / mutant.module).read_text()
    assert mutate(mutant, source) != source


@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_is_noticed(name: str):
    (mutant,) = [one for one in MUTANTS if one.name == name]
    assert noticed_by(mutant, [SAMPLE[name]]).startswith(SAMPLE[name])
