"""A sample of the recorded digests; `python -m tests.sim.digests` compares all of them."""

import pytest

from tests.sim.digests import SEEDS, digest_of, recorded

SAMPLE = SEEDS[::25]


def test_every_seed_is_recorded():
    assert set(recorded()) == set(SEEDS)


@pytest.mark.parametrize("seed", SAMPLE)
def test_a_recorded_seed_runs_as_it_did(seed):
    found = digest_of(seed)
    assert found == recorded()[seed], (
        f"seed {seed} runs differently now; if that is meant, say so in the commit and run "
        "'python -m tests.sim.digests --record'"
    )
