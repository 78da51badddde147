"""A sample of the recorded digests; `python -m tests.sim.digests` compares all of them.

`test_faults` compares those of the stock seeds that it runs.
"""

import pytest

from daws.sim.worlds import GROWN
from tests.sim.digests import SEEDS, digest_of, how_to_record, recorded

SAMPLE = [seed for seed in SEEDS if seed >= GROWN][::20]


def test_every_seed_is_recorded():
    assert set(recorded()) == set(SEEDS)


@pytest.mark.parametrize("seed", SAMPLE)
def test_a_recorded_seed_runs_as_it_did(seed):
    assert digest_of(seed) == recorded()[seed], how_to_record(seed)
