"""How often the garbage collector looks, while clusters are open."""

import gc
from collections.abc import Iterator

import pytest

from daws.client import patience


@pytest.fixture(autouse=True)
def default() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_it_is_patient_until_the_last_cluster_is_closed():
    patience.begin()
    patience.begin()
    assert gc.get_threshold() == patience.PATIENT
    patience.end()
    assert gc.get_threshold() == patience.PATIENT
    patience.end()
    assert gc.get_threshold() == (700, 10, 10)


def test_what_the_program_has_chosen_stays():
    gc.set_threshold(1234, 5, 6)
    patience.begin()
    assert gc.get_threshold() == (1234, 5, 6)
    gc.set_threshold(4321, 5, 6)
    patience.end()
    assert gc.get_threshold() == (4321, 5, 6)
